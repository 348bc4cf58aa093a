// 8 columns for a thread at once, shuffles, and the sums of the blocks, which a second launch adds up; blocks of 256 threads
__device__ float of_block(float sum) {
    __shared__ float warps[8];
    EACH for (int k = 16; k; k /= 2) sum += __shfl_xor_sync(~0u, sum, k);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = warps[threadIdx.x % 8];
    EACH for (int k = 4; k; k /= 2) sum += __shfl_xor_sync(~0u, sum, k);
    return sum;
}

__device__ float of_four(float4 v) { return (chain(v.x) + chain(v.y)) + (chain(v.z) + chain(v.w)); }

extern "C" __global__ void sum(const float4 *__restrict__ image, float *__restrict__ blocks) {
    float a = 0, b = 0;
    const long step = (long)gridDim.x * 256, all = (long)H * W / 4;
    for (long i = (long)blockIdx.x * 256 + threadIdx.x; i < all; i += 2 * step) {
        a += of_four(image[i]);
        if (i + step < all) b += of_four(image[i + step]);
    }
    a = of_block(a + b);
    if (threadIdx.x == 0) blocks[blockIdx.x] = a;
}

extern "C" __global__ void sum_blocks(const float *__restrict__ blocks, float *__restrict__ result, int n) {
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 256) sum += blocks[i];
    sum = of_block(sum);
    if (threadIdx.x == 0) *result = sum;
}
