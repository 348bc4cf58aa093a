// What the kernels written by hand have in common. H and W, the rows and columns, and ROWS, those of a thread, are defined by who
// compiles them. A thread computes 4 columns; points near the edges, at most MARGIN, are left out.
#define MARGIN 24
#define EACH _Pragma("unroll")
#define COLUMN const int c = min(max(int(blockIdx.x * blockDim.x + threadIdx.x) * 4, MARGIN), W - 2 * MARGIN)
#define FIRST max(int(blockIdx.y * blockDim.y + threadIdx.y) * ROWS, MARGIN)
#define END min(int(blockIdx.y * blockDim.y + threadIdx.y + 1) * ROWS, H - MARGIN)

// columns c - X … c + 3 + X of a row, by loads of 16 bytes
template <int X> __device__ void load(const float *__restrict__ image, int r, int c, float *p) {
    constexpr int aligned = (X + 3) / 4 * 4;
    const float *at = image + (long)r * W + c - aligned;
    float t[4 + 2 * aligned];
    EACH for (int k = 0; k < 4 + 2 * aligned; k += 4) {
        const float4 v = *reinterpret_cast<const float4 *>(at + k);
        t[k] = v.x;
        t[k + 1] = v.y;
        t[k + 2] = v.z;
        t[k + 3] = v.w;
    }
    EACH for (int k = 0; k < 4 + 2 * X; k++) p[k] = t[aligned - X + k];
}

// a thread goes down its rows, and keeps those in registers that the next ones need again; f computes a point of a window
template <int Y, int X, class F> __device__ void rolling(const float *__restrict__ image, float *__restrict__ out, F f) {
    COLUMN;
    const int first = FIRST, end = END;
    float p[2 * Y + 1][4 + 2 * X];
    if (first >= end) return;
    EACH for (int k = 0; k < 2 * Y; k++) load<X>(image, first - Y + k, c, p[k]);
    for (int r = first; r < end; r++) {
        load<X>(image, r + Y, c, p[2 * Y]);
        float4 v;
        EACH for (int l = 0; l < 4; l++) reinterpret_cast<float *>(&v)[l] = f(p, l);
        *reinterpret_cast<float4 *>(out + (long)r * W + c) = v;
        EACH for (int i = 0; i < 2 * Y; i++)
            EACH for (int k = 0; k < 4 + 2 * X; k++) p[i][k] = p[i + 1][k];
    }
}

__device__ inline float chain(float x) { return fminf(sqrtf(fabsf(x * 1.25f - 0.5f)) * 2.0f + x, 1.5f) * 0.5f; }
