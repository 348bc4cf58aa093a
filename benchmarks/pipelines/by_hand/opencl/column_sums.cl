// strips of 64 columns and 256 rows, then the strips
kernel void column_sums(global const float *restrict image, global float *restrict strips) {
    const int c = get_global_id(0) * 64, r0 = get_global_id(1) * 256;
    float16 s[4] = {0, 0, 0, 0};
    for (int r = r0; r < r0 + 256; r++)
        EACH for (int k = 0; k < 4; k++) s[k] += chain(LOAD(image, r, c + 16 * k));
    EACH for (int k = 0; k < 4; k++) STORE(s[k], strips, get_global_id(1), c + 16 * k);
}

kernel void sum_strips(global const float *restrict strips, global float *restrict sums) {
    float sum = 0;
    for (int k = 0; k < H / 256; k++) sum += strips[k * W + get_global_id(0)];
    sums[get_global_id(0)] = sum;
}
