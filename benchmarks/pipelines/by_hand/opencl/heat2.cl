// two steps at once: 16 rows and 32 layers for a work-item, which keeps three layers of the first step in private memory
#define N W
#define ROWS 16
#define LAYERS 32

void first_step(global const float *restrict u, private float *restrict line, int z, int y) {
    global const float *own = u + (z * N + y) * N;
    global const float *up = u + (max(z - 1, 0) * N + y) * N, *down = u + (min(z + 1, N - 1) * N + y) * N;
    global const float *north = u + (z * N + max(y - 1, 0)) * N, *south = u + (z * N + min(y + 1, N - 1)) * N;
    for (int x = 0; x < N; x += 16) {
        const float16 v = vload16(0, own + x);
        float16 west = vload16(0, own + max(x - 1, 0)), east = vload16(0, own + min(x + 1, N - 16));
        if (x == 0) west = (float16)(v.s0, v.s0123, v.s4567, v.s89ab, v.scde);
        if (x == N - 16) east = (float16)(v.s1234, v.s5678, v.s9abc, v.sdef, v.sf);
        const float16 sum = vload16(0, up + x) + vload16(0, down + x) + vload16(0, north + x) + vload16(0, south + x) + west + east;
        vstore16(v + 0.1f * (sum - 6.0f * v), 0, line + x);
    }
    line[-1] = line[0];
    line[N] = line[N - 1];
}

kernel void heat2(global const float *restrict u, global float *restrict out) {
    const int y0 = get_global_id(0) * ROWS, z0 = get_global_id(1) * LAYERS;
    float once[3][ROWS + 2][N + 32];
    #define LINE(z, y) (&once[((z) + 3) % 3][(y) - y0 + 1][16])
    for (int z = z0 - 1; z <= z0 + LAYERS; z++) {
        for (int y = y0 - 1; y <= y0 + ROWS; y++) first_step(u, LINE(z, y), clamp(z, 0, N - 1), clamp(y, 0, N - 1));
        for (int y = y0; z > z0 && y < y0 + ROWS; y++) {
            private const float *own = LINE(z - 1, y), *up = LINE(z - 2, y), *down = LINE(z, y);
            private const float *north = LINE(z - 1, y - 1), *south = LINE(z - 1, y + 1);
            for (int x = 0; x < N; x += 16) {
                const float16 v = vload16(0, own + x);
                const float16 sum = vload16(0, up + x) + vload16(0, down + x) + vload16(0, north + x) + vload16(0, south + x)
                                  + vload16(0, own + x - 1) + vload16(0, own + x + 1);
                vstore16(v + 0.1f * (sum - 6.0f * v), 0, out + ((z - 1) * N + y) * N + x);
            }
        }
    }
}
