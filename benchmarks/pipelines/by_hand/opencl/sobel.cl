// 16 columns and 4 rows for a work-item, whose loads the rows share
kernel void sobel(global const float *restrict image, global float *restrict out) {
    FOUR_ROWS
    EACH for (int i = 0; i < 4; i++) {
        const float16 x = p[i][2] + 2 * p[i+1][2] + p[i+2][2] - p[i][0] - 2 * p[i+1][0] - p[i+2][0];
        const float16 y = p[i+2][0] + 2 * p[i+2][1] + p[i+2][2] - p[i][0] - 2 * p[i][1] - p[i][2];
        STORE(sqrt(x * x + y * y), out, r + i, c);
    }
}
