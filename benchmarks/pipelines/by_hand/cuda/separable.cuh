// A tile in local memory: sums down the columns of TILE columns and R at both sides, 16 rows for a thread, then sums along the rows,
// 4 columns for a thread. Blocks of 256 threads.
#define TILE 128
#define DOWN 16
#define PITCH (TILE + 2 * R)

__device__ inline int bordered(int k, int n) {
#ifdef REFLECT
    k = abs(k);
    return k < n ? k : 2 * n - 2 - k;
#else
    return min(max(k, 0), n - 1);
#endif
}

// values[k] = image[r - R + k][c]
__device__ inline void column(const float *__restrict__ image, int r, int c, float *values) {
    const bool inside = r >= R && r + DOWN + R <= H;
    EACH for (int k = 0; k < DOWN + 2 * R; k++)
        values[k] = image[(long)(inside ? r - R + k : bordered(min(r - R + k, H - 1 + R), H)) * W + c];
}

// values[k] = the tile's row[c - R + k], by loads of 16 bytes; R is a multiple of 4, or PAD more elements lie before
__device__ inline void across(const float *row, int c, float *values) {
    EACH for (int k = 0; k < 4 + 2 * R; k++) values[k] = row[c + k];
}
