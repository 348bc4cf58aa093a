// a row for a work-item, in four sums of vectors
kernel void row_sums(global const float *restrict image, global float *restrict sums) {
    const int r = get_global_id(0);
    float16 s[4] = {0, 0, 0, 0};
    for (int c = 0; c < W; c += 64)
        EACH for (int k = 0; k < 4; k++) s[k] += chain(LOAD(image, r, c + 16 * k));
    const float16 all = (s[0] + s[1]) + (s[2] + s[3]);
    const float8 half8 = all.lo + all.hi;
    const float4 half4 = half8.lo + half8.hi;
    sums[r] = (half4.x + half4.y) + (half4.z + half4.w);
}
