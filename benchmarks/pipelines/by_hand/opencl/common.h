// What the kernels written by hand have in common. H and W, the rows and columns, are defined by who compiles them.
#define LOAD(p, r, c) vload16(0, (p) + (r) * W + (c))
#define STORE(v, p, r, c) vstore16(v, 0, (p) + (r) * W + (c))
#define EACH _Pragma("unroll")

// the six rows and three columns of vectors around four rows of 16 points; at the edges whole vectors are moved inwards
#define FOUR_ROWS                                                                  \
    const int c = clamp((int)get_global_id(0) * 16, 1, W - 17), r = get_global_id(1) * 4; \
    float16 p[6][3];                                                               \
    EACH for (int i = 0; i < 6; i++)                                               \
        EACH for (int j = 0; j < 3; j++) p[i][j] = LOAD(image, clamp(r + i - 1, 0, H - 1), c + j - 1);

float16 chain(float16 x) { return fmin(sqrt(fabs(x * 1.25f - 0.5f)) * 2.0f + x, 1.5f) * 0.5f; }
