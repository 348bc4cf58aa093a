"""Saturating conversions in CUDA: floats truncate and NaN gives 0; narrow integers use an instruction.

The NVIDIA assembler (13.0, sm_90, all levels but -O0) miscompiles comparisons of integers that CUDA C++ clips to 8 or 16 bits:
`min`, `max` and a 16-bit comparison give 255 <= 0. It does not see through `cvt.sat`.
"""

from __future__ import annotations

SATURATE = """
// truncates; saturates at the bounds, whose targets are given; NaN gives 0
template <class To, class From>
__device__ inline To saturate(From x, From low, From high, To lowest, To highest)
{
    if constexpr ((From)0.5 > 0) {  // of floats
        if (isnan(x)) return (To)0;
    }
    return x <= low ? lowest : x >= high ? highest : (To)x;
}

// an instruction does all of that
template <>
__device__ inline int saturate(float x, float, float, int, int)
{
    return __float2int_rz(x);
}

// of a double that is NaN it gives the least integer
template <>
__device__ inline int saturate(double x, double, double, int, int)
{
    return isnan(x) ? 0 : __double2int_rz(x);
}
"""

CLIP = """
// the nearest number that {type} holds: comparisons of what compilers see being clipped come out wrong
__device__ inline {type} {name}({source} x)
{{
    int y;
    asm("cvt.sat.{code}.{wide} %0, %1;" : "=r"(y) : "{register}"(x));
    return ({type})y;
}}
"""
NARROW = {
    "char": ("signed char", "s8"),
    "uchar": ("unsigned char", "u8"),
    "short": ("short", "s16"),
    "ushort": ("unsigned short", "u16"),
}
WIDE = {
    "int": ("int", "s32", "r"), "uint": ("unsigned int", "u32", "r"),
    "long": ("long long", "s64", "l"), "ulong": ("unsigned long long", "u64", "l"),
}  # fmt: skip


def _clip(arg: str, result: str) -> str:
    source, wide, register = WIDE[arg]
    type_, code = NARROW[result]
    return CLIP.format(type=type_, name=f"{arg}_to_{result}", source=source, code=code, wide=wide, register=register)


OF_FLOAT = """
// truncates; saturates at the ends of the type; NaN gives 0
__device__ inline {type} {name}(float x)
{{
    int y;
    asm("cvt.rzi.{code}.f32 %0, %1;" : "=r"(y) : "f"(x));
    return ({type})y;
}}
"""
OF_FLOATS = {f"float {result}": f"float_to_{result}({{x}})" for result in NARROW}
CLIPS = {f"{arg} {result}": f"{arg}_to_{result}({{x}})" for arg in WIDE for result in NARROW}
HELPERS = {f"{arg}_to_{result}": _clip(arg, result) for arg in WIDE for result in NARROW} | {
    f"float_to_{result}": OF_FLOAT.format(type=type_, code=code, name=f"float_to_{result}")
    for result, (type_, code) in NARROW.items()
}
