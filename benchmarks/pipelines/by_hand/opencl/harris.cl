// a tile of 512 columns and 32 rows for a work-item: the three products of three rows go round in private memory
#define TILE 512
#define ROWS 32
#define AT(p, i, k) vload16(0, p[i] + 16 + c + (k))
#define ROW(p, i) AT(p, i, -1) + AT(p, i, 0) + AT(p, i, 1)
#define BOX(p) (ROW(p, above) + ROW(p, here) + ROW(p, below))

kernel void harris(global const float *restrict image, global float *restrict out) {
    const int c0 = get_global_id(0) * TILE, r0 = get_global_id(1) * ROWS;
    float xx[3][TILE + 32], yy[3][TILE + 32], xy[3][TILE + 32];
    for (int r = r0 - 1; r <= r0 + ROWS; r++) {
        const int below = (r + 3) % 3, north = clamp(r - 1, 0, H - 1), own = clamp(r, 0, H - 1), south = clamp(r + 1, 0, H - 1);
        for (int c = -16; c < TILE + 16; c += 16) {
            const int at = clamp(c0 + c, 1, W - 17), to = at - c0 + 16;
            const float16 a0 = LOAD(image, north, at - 1), a1 = LOAD(image, north, at), a2 = LOAD(image, north, at + 1);
            const float16 b0 = LOAD(image, own, at - 1), b2 = LOAD(image, own, at + 1);
            const float16 d0 = LOAD(image, south, at - 1), d1 = LOAD(image, south, at), d2 = LOAD(image, south, at + 1);
            const float16 x = (a2 + 2 * b2 + d2 - a0 - 2 * b0 - d0) * (1.0f / 12);
            const float16 y = (d0 + 2 * d1 + d2 - a0 - 2 * a1 - a2) * (1.0f / 12);
            vstore16(x * x, 0, xx[below] + to);
            vstore16(y * y, 0, yy[below] + to);
            vstore16(x * y, 0, xy[below] + to);
        }
        const int above = (r + 1) % 3, here = (r + 2) % 3;
        for (int c = 0; r > r0 && c < TILE; c += 16) {
            const float16 a = BOX(xx), b = BOX(yy), d = BOX(xy), trace = a + b;
            STORE(a * b - d * d - 0.04f * trace * trace, out, r - 1, c0 + c);
        }
    }
}
