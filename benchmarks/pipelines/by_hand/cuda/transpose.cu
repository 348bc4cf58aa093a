// tiles of 64×64 in local memory, 4 columns for a thread; blocks of 16×16 threads
extern "C" __global__ void transpose(const float *__restrict__ image, float *__restrict__ out) {
    __shared__ float tile[64][65];
    const int x = threadIdx.x * 4, c0 = blockIdx.x * 64, r0 = blockIdx.y * 64;
    for (int y = threadIdx.y; y < 64; y += 16) {
        const float4 v = *reinterpret_cast<const float4 *>(image + (long)(r0 + y) * W + c0 + x);
        tile[y][x] = chain(v.x);
        tile[y][x + 1] = chain(v.y);
        tile[y][x + 2] = chain(v.z);
        tile[y][x + 3] = chain(v.w);
    }
    __syncthreads();
    for (int y = threadIdx.y; y < 64; y += 16)
        *reinterpret_cast<float4 *>(out + (long)(c0 + y) * H + r0 + x) = make_float4(tile[x][y], tile[x + 1][y], tile[x + 2][y], tile[x + 3][y]);
}
