// sums of values and of squares down the columns into tiles of local memory, then along their rows
extern "C" __global__ void mean_variance(const float *__restrict__ image, float *__restrict__ mean, float *__restrict__ variance) {
    __shared__ float values[HEIGHT][PITCH], squares[HEIGHT][PITCH];
    const int c0 = blockIdx.x * TILE, r0 = blockIdx.y * HEIGHT;
    for (int i = threadIdx.x; i < HEIGHT / DOWN * PITCH; i += 256) {
        const int x = i % PITCH, y = i / PITCH * DOWN;
        float v[DOWN + 2 * R];
        column(image, r0 + y, bordered(c0 + x - R, W), v);
        EACH for (int l = 0; l < DOWN; l++) {
            float sum = v[l], sum2 = v[l] * v[l];
            EACH for (int k = 1; k <= 2 * R; k++) {
                sum = sum + v[l + k];
                sum2 = sum2 + v[l + k] * v[l + k];
            }
            values[y + l][x] = sum;
            squares[y + l][x] = sum2;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < HEIGHT * TILE / 4; i += 256) {
        const int x = i % (TILE / 4) * 4, y = i / (TILE / 4);
        float v[4 + 2 * R], w[4 + 2 * R];
        float4 m, d;
        across(values[y], x, v);
        across(squares[y], x, w);
        EACH for (int l = 0; l < 4; l++) {
            float sum = v[l], sum2 = w[l];
            EACH for (int k = 1; k <= 2 * R; k++) {
                sum = sum + v[l + k];
                sum2 = sum2 + w[l + k];
            }
            sum = sum * (1.f / 225);
            reinterpret_cast<float *>(&m)[l] = sum;
            reinterpret_cast<float *>(&d)[l] = sum2 * (1.f / 225) - sum * sum;
        }
        if (r0 + y < H && c0 + x < W) {
            *reinterpret_cast<float4 *>(mean + (long)(r0 + y) * W + c0 + x) = m;
            *reinterpret_cast<float4 *>(variance + (long)(r0 + y) * W + c0 + x) = d;
        }
    }
}
