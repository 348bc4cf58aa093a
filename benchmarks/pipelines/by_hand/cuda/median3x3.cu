// rolling rows; columns of three are sorted, and of these the middle is found
extern "C" __global__ void median3x3(const float *image, float *out) {
    rolling<1, 1>(image, out, [](float p[3][6], int l) {
        float low[3], middle[3], high[3];
        EACH for (int j = 0; j < 3; j++) {
            const float a = p[0][l + j], less = fminf(p[1][l + j], p[2][l + j]), more = fmaxf(p[1][l + j], p[2][l + j]);
            low[j] = fminf(a, less);
            high[j] = fmaxf(a, more);
            middle[j] = fmaxf(less, fminf(a, more));
        }
        const float a = fmaxf(fmaxf(low[0], low[1]), low[2]), c = fminf(fminf(high[0], high[1]), high[2]);
        const float b = fmaxf(fminf(middle[1], middle[2]), fminf(middle[0], fmaxf(middle[1], middle[2])));
        return fmaxf(fminf(b, c), fminf(a, fmaxf(b, c)));
    });
}
