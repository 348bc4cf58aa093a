"""Pairs of unsigned 16-bit numbers in a word: instructions of newer devices, and CUDA functions for older ones."""

FUNCTION = """
// of both halves, which are unsigned
__device__ inline unsigned int halves_{op}(unsigned int x, unsigned int y)
{{
#if __CUDA_ARCH__ >= 900 && __CUDACC_VER_MAJOR__ >= 12
    unsigned int z;
    asm("{op}.u16x2 %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y));
    return z;
#else
    return __v{op}u2(x, y);
#endif
}}
"""

HELPERS = {f"halves_{op}": FUNCTION.format(op=op) for op in ("max", "min")}
