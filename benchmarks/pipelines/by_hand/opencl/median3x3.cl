// 16 columns and 4 rows for a work-item; columns of three are sorted, and of these the middle is found
kernel void median3x3(global const float *restrict image, global float *restrict out) {
    FOUR_ROWS
    EACH for (int i = 0; i < 4; i++) {
        float16 low[3], middle[3], high[3];
        EACH for (int j = 0; j < 3; j++) {
            const float16 a = p[i][j], less = fmin(p[i+1][j], p[i+2][j]), more = fmax(p[i+1][j], p[i+2][j]);
            low[j] = fmin(a, less);
            high[j] = fmax(a, more);
            middle[j] = fmax(less, fmin(a, more));
        }
        const float16 a = fmax(fmax(low[0], low[1]), low[2]), c3 = fmin(fmin(high[0], high[1]), high[2]);
        const float16 b = fmax(fmin(middle[1], middle[2]), fmin(middle[0], fmax(middle[1], middle[2])));
        STORE(fmax(fmin(b, c3), fmin(a, fmax(b, c3))), out, r + i, c);
    }
}
