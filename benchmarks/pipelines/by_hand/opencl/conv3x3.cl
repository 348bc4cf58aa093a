// 16 columns and 4 rows for a work-item, whose loads the rows share
constant float weights[9] = {0.05f, 0.11f, 0.07f, 0.13f, 0.28f, 0.12f, 0.06f, 0.1f, 0.08f};

kernel void conv3x3(global const float *restrict image, global float *restrict out) {
    FOUR_ROWS
    EACH for (int i = 0; i < 4; i++) {
        float16 sum = weights[0] * p[i][0];
        EACH for (int k = 1; k < 9; k++) sum += weights[k] * p[i + k / 3][k % 3];
        STORE(sum, out, r + i, c);
    }
}
