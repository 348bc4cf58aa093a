// 16 columns for a work-item, with the exponential function of vectors
constant float near[25] = {SPATIAL};

kernel void bilateral5x5(global const float *restrict image, global float *restrict out) {
    const int c = clamp((int)get_global_id(0) * 16, 2, W - 18), r = get_global_id(1);
    const float16 own = LOAD(image, r, c);
    float16 total = 0, weights = 0;
    EACH for (int k = 0; k < 25; k++) {
        const float16 value = LOAD(image, clamp(r + k / 5 - 2, 0, H - 1), c + k % 5 - 2), difference = value - own;
        const float16 weight = exp(-(difference * difference) * 22.222222f) * near[k];
        total += weight * value;
        weights += weight;
    }
    STORE(total / weights, out, r, c);
}
