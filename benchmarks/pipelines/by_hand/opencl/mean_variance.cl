// a tile of 1024 columns and 32 rows for a work-item: sums of values and of squares down the columns, then along the rows
#define TILE 1024
#define ROWS 32

kernel void mean_variance(global const float *restrict image, global float *restrict mean, global float *restrict variance) {
    const int c0 = get_global_id(0) * TILE, r0 = get_global_id(1) * ROWS;
    float values[TILE + 32], squares[TILE + 32];
    for (int r = r0; r < r0 + ROWS; r++) {
        for (int c = -16; c < TILE + 16; c += 16) {
            const int at = clamp(c0 + c, 0, W - 16);
            float16 sum = 0, sum2 = 0;
            EACH for (int k = -7; k <= 7; k++) {
                const float16 value = LOAD(image, clamp(r + k, 0, H - 1), at);
                sum += value;
                sum2 += value * value;
            }
            vstore16(sum, 0, values + c + 16);
            vstore16(sum2, 0, squares + c + 16);
        }
        for (int c = 0; c < TILE; c += 16) {
            float16 sum = 0, sum2 = 0;
            EACH for (int k = -7; k <= 7; k++) {
                sum += vload16(0, values + c + 16 + k);
                sum2 += vload16(0, squares + c + 16 + k);
            }
            sum *= 1.0f / 225;
            STORE(sum, mean, r, c0 + c);
            STORE(sum2 * (1.0f / 225) - sum * sum, variance, r, c0 + c);
        }
    }
}
