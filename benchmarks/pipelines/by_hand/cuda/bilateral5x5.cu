// rolling rows; EXP is expf, or __expf for native functions
extern "C" __global__ void bilateral5x5(const float *image, float *out) {
    rolling<2, 2>(image, out, [](float p[5][8], int l) {
        const float near[25] = {SPATIAL};
        float total = 0, weights = 0;
        EACH for (int k = 0; k < 25; k++) {
            const float value = p[k / 5][l + k % 5], difference = value - p[2][l + 2];
            const float weight = EXP(-(difference * difference) * 22.222222f) * near[k];
            total = total + weight * value;
            weights = weights + weight;
        }
        return total / weights;
    });
}
