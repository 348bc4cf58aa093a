// a histogram for each warp in local memory, 16 bytes for a thread at once; blocks of 256 threads
extern "C" __global__ void histogram(const uint4 *__restrict__ levels, int *__restrict__ counts) {
    __shared__ int own[8][257];
    for (int i = threadIdx.x; i < 8 * 257; i += 256) own[0][i] = 0;
    __syncthreads();
    int *mine = own[threadIdx.x / 32];
    for (long i = (long)blockIdx.x * 256 + threadIdx.x; i < (long)H * W / 16; i += (long)gridDim.x * 256) {
        const uint4 v = levels[i];
        EACH for (int k = 0; k < 4; k++)
            EACH for (int b = 0; b < 32; b += 8) atomicAdd(mine + (reinterpret_cast<const unsigned *>(&v)[k] >> b & 255), 1);
    }
    __syncthreads();
    int sum = 0;
    EACH for (int w = 0; w < 8; w++) sum += own[w][threadIdx.x];
    atomicAdd(counts + threadIdx.x, sum);
}
