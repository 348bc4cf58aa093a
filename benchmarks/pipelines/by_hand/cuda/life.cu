// 16 columns of bytes for a thread, four in a word, added at once; rolling rows
typedef unsigned int word;

__device__ void load_cells(const unsigned char *__restrict__ cells, int r, int c, word *sums, word *own) {
    const word *at = reinterpret_cast<const word *>(cells + (long)r * W + c);
    const uint4 middle = *reinterpret_cast<const uint4 *>(at);
    const word w[6] = {at[-1], middle.x, middle.y, middle.z, middle.w, at[4]};
    EACH for (int k = 0; k < 4; k++) {
        own[k] = w[k + 1];
        sums[k] = __byte_perm(w[k], w[k + 1], 0x6543) + w[k + 1] + __byte_perm(w[k + 1], w[k + 2], 0x4321);
    }
}

extern "C" __global__ void life(const unsigned char *__restrict__ cells, unsigned char *__restrict__ out) {
    const int c = min(max(int(blockIdx.x * blockDim.x + threadIdx.x) * 16, 32), W - 64), first = FIRST, end = END;
    word above[4], here[4], below[4], before[4], own[4], next[4];
    if (first >= end) return;
    load_cells(cells, first - 1, c, above, before);
    load_cells(cells, first, c, here, own);
    for (int r = first; r < end; r++) {
        load_cells(cells, r + 1, c, below, next);
        uint4 v;
        EACH for (int k = 0; k < 4; k++) {
            const word neighbours = above[k] + here[k] + below[k] - own[k], differs = (neighbours | own[k]) ^ 0x03030303u;
            reinterpret_cast<word *>(&v)[k] = ~(((differs & 0x7f7f7f7fu) + 0x7f7f7f7fu) | differs) >> 7 & 0x01010101u;
            above[k] = here[k];
            here[k] = below[k];
            own[k] = next[k];
        }
        *reinterpret_cast<uint4 *>(out + (long)r * W + c) = v;
    }
}
