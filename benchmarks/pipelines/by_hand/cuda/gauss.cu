// down the columns into a tile of local memory, then along its rows
__constant__ const float weights[2 * R + 1] = {WEIGHTS};

extern "C" __global__ void gauss(const float *__restrict__ image, float *__restrict__ out) {
    __shared__ float tile[HEIGHT][PITCH];
    const int c0 = blockIdx.x * TILE, r0 = blockIdx.y * HEIGHT;
    for (int i = threadIdx.x; i < HEIGHT / DOWN * PITCH; i += 256) {
        const int x = i % PITCH, y = i / PITCH * DOWN;
        float v[DOWN + 2 * R];
        column(image, r0 + y, bordered(min(c0 + x - R, W - 1 + R), W), v);
        EACH for (int l = 0; l < DOWN; l++) {
            float sum = weights[0] * v[l];
            EACH for (int k = 1; k <= 2 * R; k++) sum = sum + weights[k] * v[l + k];
            tile[y + l][x] = sum;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < HEIGHT * TILE / 4; i += 256) {
        const int x = i % (TILE / 4) * 4, y = i / (TILE / 4);
        float v[4 + 2 * R];
        float4 result;
        across(tile[y], x, v);
        EACH for (int l = 0; l < 4; l++) {
            float sum = weights[0] * v[l];
            EACH for (int k = 1; k <= 2 * R; k++) sum = sum + weights[k] * v[l + k];
            reinterpret_cast<float *>(&result)[l] = sum;
        }
        if (r0 + y < H && c0 + x < W) *reinterpret_cast<float4 *>(out + (long)(r0 + y) * W + c0 + x) = result;
    }
}
