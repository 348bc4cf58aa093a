// rolling rows: three rows of the image and of the three products stay in registers
struct Products {
    float xx[3][6], yy[3][6], xy[3][6];
};

__device__ void multiply(const float p[3][8], Products &s, int k) {
    EACH for (int j = 0; j < 6; j++) {
        const float x = (p[0][j+2] + 2 * p[1][j+2] + p[2][j+2] - p[0][j] - 2 * p[1][j] - p[2][j]) * (1 / 12.f);
        const float y = (p[2][j] + 2 * p[2][j+1] + p[2][j+2] - p[0][j] - 2 * p[0][j+1] - p[0][j+2]) * (1 / 12.f);
        s.xx[k][j] = x * x;
        s.yy[k][j] = y * y;
        s.xy[k][j] = x * y;
    }
}

__device__ float box(const float s[3][6], int l) {
    return s[0][l] + s[0][l+1] + s[0][l+2] + s[1][l] + s[1][l+1] + s[1][l+2] + s[2][l] + s[2][l+1] + s[2][l+2];
}

__device__ void down(float p[3][8]) {
    EACH for (int k = 0; k < 8; k++) { p[0][k] = p[1][k]; p[1][k] = p[2][k]; }
}

extern "C" __global__ void harris(const float *__restrict__ image, float *__restrict__ out) {
    COLUMN;
    const int first = FIRST, end = END;
    float p[3][8];
    Products s;
    if (first >= end) return;
    load<2>(image, first - 2, c, p[0]);
    load<2>(image, first - 1, c, p[1]);
    EACH for (int k = 0; k < 2; k++) {
        load<2>(image, first + k, c, p[2]);
        multiply(p, s, k);
        down(p);
    }
    for (int r = first; r < end; r++) {
        load<2>(image, r + 2, c, p[2]);
        multiply(p, s, 2);
        float4 v;
        EACH for (int l = 0; l < 4; l++) {
            const float a = box(s.xx, l), b = box(s.yy, l), d = box(s.xy, l), trace = a + b;
            reinterpret_cast<float *>(&v)[l] = a * b - d * d - 0.04f * trace * trace;
        }
        *reinterpret_cast<float4 *>(out + (long)r * W + c) = v;
        down(p);
        EACH for (int k = 0; k < 2; k++)
            EACH for (int j = 0; j < 6; j++) { s.xx[k][j] = s.xx[k+1][j]; s.yy[k][j] = s.yy[k+1][j]; s.xy[k][j] = s.xy[k+1][j]; }
    }
}
