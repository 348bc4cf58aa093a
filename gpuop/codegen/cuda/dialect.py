"""CUDA C++ dialect, compiled with `--fmad=false` (OPTIONS) so that results equal those of every other device."""

from __future__ import annotations

from gpuop.codegen.c.dialect import Dialect
from gpuop.codegen.cuda import atomics, packed_words, saturation

ARGUMENT_BYTES = 4096  # that every driver takes
OPTIONS = ("--std=c++17", "--fmad=false")

LOAD_HALF = """
// half in memory is float in registers
__device__ inline float load_half(const unsigned short *p)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(*p));
    return x;
}
"""
STORE_HALF = """
__device__ inline void store_half(unsigned short *p, float x)
{
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(*p) : "f"(x));
}
"""
ROUND_HALF = """
// the nearest half, as a float
__device__ inline float round_half(float x)
{
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}
"""
ROUND_DOUBLE = """
// the nearest half of a double, as a float
__device__ inline float round_double(double x)
{
    unsigned short bits;
    float y;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(x));
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(bits));
    return y;
}
"""
PACK_HALF = """
__device__ inline unsigned short pack_half(float x)
{
    unsigned short code;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(x));
    return code;
}
"""
UNPACK_HALF = """
__device__ inline float unpack_half(unsigned short code)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(code));
    return x;
}
"""
BY_VALUE = """
// numbers that are passed by value
template <class T, int n>
struct by_value
{
    T at[n];
};
"""
NEIGHBOURS = """
// neighbouring values in memory, aligned so that one access takes them all
template <class T, int n>
struct alignas(n * sizeof(T)) neighbours
{
    T at[n];

    __device__ static void load(T (&lanes)[n], const T *p)
    {
        const neighbours all = *(const neighbours *)p;
        for (int k = 0; k < n; k++) lanes[k] = all.at[k];
    }

    __device__ static void store(T *p, const T (&lanes)[n])
    {
        neighbours all;
        for (int k = 0; k < n; k++) all.at[k] = lanes[k];
        *(neighbours *)p = all;
    }
};
"""
NEIGHBOUR_HALVES = """
// neighbouring halves in memory, which are floats in registers
template <int n>
struct alignas(n * sizeof(short)) neighbour_halves
{
    unsigned short at[n];

    __device__ static void load(float (&lanes)[n], const unsigned short *p)
    {
        const neighbour_halves all = *(const neighbour_halves *)p;
        for (int k = 0; k < n; k++) asm("cvt.f32.f16 %0, %1;" : "=f"(lanes[k]) : "h"(all.at[k]));
    }

    __device__ static void store(unsigned short *p, const float (&lanes)[n])
    {
        neighbour_halves all;
        for (int k = 0; k < n; k++) asm("cvt.rn.f16.f32 %0, %1;" : "=h"(all.at[k]) : "f"(lanes[k]));
        *(neighbour_halves *)p = all;
    }
};
"""
LOW = """
// the low {bits} bits; a plain conversion is compared as if what it is made of could not overflow, or is left out
__device__ inline {type} {name}(unsigned int x)
{{
    int y;
    asm("cvt.s32.s{bits} %0, %1;" : "=r"(y) : "r"(x));
    return ({type})y;
}}
"""
REMQUO = """
// the sign and the low seven bits of the quotient that remainder rounds
template <class T>
__device__ inline int remquo_bits(T x, T y)
{
    const T near = fmod(x, 128 * y);  // exact
    return (int)rint((near - remainder(near, y)) / y) % 128;
}
"""
HIDDEN = """
// x, as a number that the compiler does not know: some compute wrongly with negations that they see
__constant__ int hidden_zero;
__device__ inline int hidden(int x)
{
    return x + hidden_zero;
}
"""
LOADED = """
// x, which has been asked for when what follows is computed: the compiler would load it just before it is used
template <class T>
__device__ inline T loaded(T x)
{
    if (sizeof(T) == 8) asm volatile("" : "+l"(*(unsigned long long *)&x));
    else if (sizeof(T) == 4) asm volatile("" : "+r"(*(unsigned *)&x));
    else if (sizeof(T) == 2) asm volatile("" : "+h"(*(unsigned short *)&x));
    else {
        unsigned wide = (unsigned char)x;
        asm volatile("" : "+r"(wide));
        x = (T)wide;
    }
    return x;
}
"""
BALLOT = """
// a bit for each thread of the warp whose x is not 0; the compiler would shift a bit of x down to vote on it
__device__ inline unsigned int ballot(unsigned int x)
{
    asm("" : "+r"(x));
    return __ballot_sync(~0u, x);
}
"""
BITS = """
template <class To, class From>
__device__ inline To bits(From x)
{
    union { From from; To to; } u;
    u.from = x;
    return u.to;
}
"""
ROOTN = """
// pow, times what the rounded 1 / n lacks of the exponent: x^(1/n) = x^inverse * (1 + (1/n - inverse) * log(x) + ...)
template <class T>
__device__ inline T rootn(T x, int n)
{
    const T a = fabs(x), inverse = (T)1 / n, power = pow(a, inverse);
    const T lacks = fma(-inverse, (T)n, (T)1) / n;
    const T root = power > 0 && isfinite(power) ? fma(power, lacks * log(a), power) : power;
    return n & 1 ? copysign(root, x) : n == 0 || x < 0 ? (T)nan("") : root;
}
"""
POWR = """
// a power of what is not negative; NaN where the limit is not defined
template <class T>
__device__ inline T powr(T x, T y)
{
    const bool undefined = !(x >= 0) || isnan(y) || (x == 0 && y == 0) || (isinf(x) && y == 0) || (x == 1 && isinf(y));
    return undefined ? (T)nan("") : pow(fabs(x), y);
}
"""
NATIVE = """
// the instruction, which rounds numbers below 2^-126 to 0
__device__ inline float native_{name}(float x)
{{
    float y;
    asm("{instruction}.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}}
"""

NAN_EXTREME = """
// NaN where either is
__device__ inline float nan_{name}(float x, float y)
{{
    float z;
    asm("{name}.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}}
"""
# CUDA counts in 32 or 64 bits; the count is an int, which becomes of x's type
COUNTS = {
    "clz char": "(signed char)(__clz((unsigned char)({0})) - 24)", "clz uchar": "(unsigned char)(__clz({0}) - 24)",
    "clz short": "(short)(__clz((unsigned short)({0})) - 16)", "clz ushort": "(unsigned short)(__clz({0}) - 16)",
    "clz int": "__clz({0})", "clz uint": "(unsigned int)__clz({0})", "clz long": "(long long)__clzll({0})",
    "clz ulong": "(unsigned long long)__clzll({0})",
    "popcount char": "(signed char)__popc((unsigned char)({0}))", "popcount uchar": "(unsigned char)__popc({0})",
    "popcount short": "(short)__popc((unsigned short)({0}))", "popcount ushort": "(unsigned short)__popc({0})",
    "popcount int": "__popc({0})", "popcount uint": "(unsigned int)__popc({0})", "popcount long": "(long long)__popcll({0})",
    "popcount ulong": "(unsigned long long)__popcll({0})",
}  # fmt: skip

SHUFFLE = "__shfl{}_sync(~0u, {{0}}, {{1}}, {{n}})"
MOST_BLOCKS = 65535  # along rows and layers; columns have 2³¹ - 1


def grid_of(threads: tuple[int, int, int], group: tuple[int, int, int]) -> tuple[int, int, int]:
    """Blocks along (columns, rows, layers × elements); all in the first where the others do not hold as many."""
    columns, rows, layers = (n // size for n, size in zip(threads, group, strict=True))
    return (columns, rows, layers) if max(rows, layers) <= MOST_BLOCKS else (columns * rows * layers, 1, 1)


CUDA = Dialect(
    name="CUDA C++",
    kernel='extern "C" __global__ void __launch_bounds__({threads})',
    pointer="{const}{type} *{restrict}{name}",
    structure="const __grid_constant__ by_value<{type}, {n}> {name}",
    argument_bytes=ARGUMENT_BYTES,
    restrict="__restrict__ ",
    types={
        "uchar": "unsigned char", "char": "signed char", "ushort": "unsigned short", "uint": "unsigned int", "long": "long long",
        "ulong": "unsigned long long", "half": "unsigned short",
    },
    position={
        "global": tuple(f"(blockIdx.{d} * blockDim.{d} + threadIdx.{d})" for d in "xyz"),  # type: ignore[dict-item]
        "local": ("threadIdx.x", "threadIdx.y", "threadIdx.z"),
        "group": ("blockIdx.x", "blockIdx.y", "blockIdx.z"),
    },
    suffix={"uint": "u", "long": "LL", "ulong": "ULL"},
    special={
        "float nan": 'nanf("")', "float inf": "__int_as_float(0x7f800000)", "double nan": 'nan("")',
        "double inf": "__longlong_as_double(0x7ff0000000000000LL)",
    },
    calls={
        "pown float": "(float)pow((double){0}, (double){1})",  # a float does not hold every exponent
        "pown double": "pow({0}, (double){1})",
        "nan": 'nanf("")',
        "min float": "nan_min({0}, {1})",
        "max float": "nan_max({0}, {1})",
        **COUNTS,
        "bytes_of": "__byte_perm({0}, {1}, {2})",
        "mul_hi long": "__mul64hi({0}, {1})",
        "mul_hi ulong": "__umul64hi({0}, {1})",
        "native_log2": "__log2f({0})",
        "native_sin": "__sinf({0})",
        "native_cos": "__cosf({0})",
        "native_tan": "__tanf({0})",
        "native_divide": "__fdividef({0}, {1})",
    },
    crowded={},
    forked={},
    conversions={
        "wrap uint char": "low_char({x})", "wrap uint short": "low_short({x})", "double half": "round_double({x})",
        "half bits": "pack_half({x})", "bits half": "unpack_half({x})", **saturation.OF_FLOATS,
    },
    clips=saturation.CLIPS,
    saturate="saturate<{type}, {source}>({x}, {low}, {high}, {lowest}, {highest})",
    load_half="load_half(&{pointer}[{offset}])",
    store_half="store_half(&{pointer}[{offset}], {x})",
    bits="bits<{type}>({x})",
    helpers={
        "saturate": saturation.SATURATE, "load_half": LOAD_HALF, "store_half": STORE_HALF, "round_half": ROUND_HALF,
        "round_double": ROUND_DOUBLE, "low_char": LOW.format(bits=8, type="signed char", name="low_char"),
        "low_short": LOW.format(bits=16, type="short", name="low_short"), "pack_half": PACK_HALF, "unpack_half": UNPACK_HALF,
        "by_value": BY_VALUE, "remquo_bits": REMQUO, "neighbours": NEIGHBOURS,
        "neighbour_halves": NEIGHBOUR_HALVES, "bits": BITS, "hidden": HIDDEN,
        "ballot": BALLOT,
        "loaded": LOADED, "rootn": ROOTN, "powr": POWR, "native_exp2": NATIVE.format(name="exp2", instruction="ex2"),
        "nan_min": NAN_EXTREME.format(name="min"), "nan_max": NAN_EXTREME.format(name="max"),
        "native_sqrt": NATIVE.format(name="sqrt", instruction="sqrt"), **packed_words.HELPERS, **atomics.HELPERS,
        **saturation.HELPERS,
    },
    head="// compile with --fmad=false: results equal those of every other device\n"
    "#pragma nv_diag_suppress 39, 128, 177, 222, 550  // x / 0.0f is infinite; what is named need not be used",
    unroll="#pragma unroll {n}",
    rolled="#pragma unroll 1",
    local="__shared__ __align__(16)",  # so that neighbours are accessed at once
    constant="static __constant__",
    barrier={"local": "__syncthreads()", "global": "__syncthreads()"},
    atomics=atomics.ATOMICS,
    shuffles={
        "warp shuffle": SHUFFLE.format(""), "warp up": SHUFFLE.format("_up"), "warp down": SHUFFLE.format("_down"),
        "warp ballot": "ballot({0})",
    },
    wide={
        "part": "({type} (&)[{n}]){lanes}[{first}]",
        "load": "neighbours<{type}, {n}>::load({lanes}, {pointer})",
        "store": "neighbours<{type}, {n}>::store({pointer}, {lanes})",
        "load words": "neighbours<{type}, {n}>::load({lanes}, (const {type} *){pointer})",
        "store words": "neighbours<{type}, {n}>::store(({type} *){pointer}, {lanes})",
        "load half": "neighbour_halves<{n}>::load({lanes}, {pointer})",
        "store half": "neighbour_halves<{n}>::store({pointer}, {lanes})",
    },
    volatile="({type} *){p}",
    long="ll",
    most_groups=MOST_BLOCKS,
)  # fmt: skip
