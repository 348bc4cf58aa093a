// 16 columns for a work-item; the torus closes only where a vector touches its edge
float16 west(global const float *p, int r, int c, float16 v) {
    return c ? LOAD(p, r, c - 1) : (float16)(p[r * W + W - 1], v.s0123, v.s4567, v.s89ab, v.scde);
}

float16 east(global const float *p, int r, int c, float16 v) {
    return c < W - 16 ? LOAD(p, r, c + 1) : (float16)(v.s1234, v.s5678, v.s9abc, v.sdef, p[r * W]);
}

kernel void gray_scott(global const float *restrict u, global const float *restrict v, global float *restrict next_u, global float *restrict next_v) {
    const int c = get_global_id(0) * 16, r = get_global_id(1), north = (r + H - 1) % H, south = (r + 1) % H;
    const float16 a = LOAD(u, r, c), b = LOAD(v, r, c), abb = a * b * b;
    const float16 du = LOAD(u, north, c) + LOAD(u, south, c) + west(u, r, c, a) + east(u, r, c, a) - 4.0f * a;
    const float16 dv = LOAD(v, north, c) + LOAD(v, south, c) + west(v, r, c, b) + east(v, r, c, b) - 4.0f * b;
    STORE(a + (0.16f * du - abb + 0.035f * (1.0f - a)), next_u, r, c);
    STORE(b + (0.08f * dv + abb - 0.095f * b), next_v, r, c);
}
