// a tile of 1024 columns and 16 rows for a work-item: sums down the columns of 4 rows at a time, whose loads these share, go into
// private memory with R columns at both sides, and are then summed along the rows
#define TILE 1024
#define ROWS 16
constant float weights[2 * R + 1] = {WEIGHTS};

kernel void gauss(global const float *restrict image, global float *restrict out) {
    const int c0 = get_global_id(0) * TILE, r0 = get_global_id(1) * ROWS;
    const int left = max(c0 - R, 0), right = min(c0 + TILE + R, W);
    float line[4][TILE + 2 * R + 16];
    for (int r = r0; r < r0 + ROWS; r += 4) {
        int row[2 * R + 4];
        for (int k = 0; k < 2 * R + 4; k++) {
            const int q = abs(r + k - R);
            row[k] = q < H ? q : 2 * H - 2 - q;
        }
        for (int c = left; c < right; c += 16) {
            const int at = min(c, W - 16);
            float16 sum[4] = {0, 0, 0, 0};
            EACH for (int k = 0; k < 2 * R + 4; k++) {
                const float16 value = LOAD(image, row[k], at);
                EACH for (int i = 0; i < 4; i++)
                    if (k >= i && k - i <= 2 * R) sum[i] += weights[k - i] * value;
            }
            EACH for (int i = 0; i < 4; i++) vstore16(sum[i], 0, line[i] + at - c0 + R);
        }
        for (int i = 0; i < 4; i++) {
            private float *l = line[i];
            if (c0 == 0)
                for (int k = 1; k <= R; k++) l[R - k] = l[R + k];
            if (c0 + TILE == W)
                for (int k = 1; k <= R; k++) l[R + TILE - 1 + k] = l[R + TILE - 1 - k];
            for (int c = 0; c < TILE; c += 32) {
                float16 a = weights[0] * vload16(0, l + c), b = weights[0] * vload16(0, l + c + 16);
                EACH for (int k = 1; k <= 2 * R; k++) {
                    a += weights[k] * vload16(0, l + c + k);
                    b += weights[k] * vload16(0, l + c + 16 + k);
                }
                STORE(a, out, r + i, c0 + c);
                STORE(b, out, r + i, c0 + c + 16);
            }
        }
    }
}
