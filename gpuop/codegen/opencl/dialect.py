"""OpenCL C 1.2 dialect."""

from __future__ import annotations

from dataclasses import replace

from gpuop.codegen.c.dialect import Dialect
from gpuop.codegen.opencl import atomics, saturation
from gpuop.codegen.opencl.vectors import HELPERS

ROUND_HALF = """
// the nearest half, as a float
float round_half(float x)
{
    ushort bits;
    vstore_half(x, 0, (__private half *)&bits);
    return vload_half(0, (__private half *)&bits);
}
"""
ROUND_DOUBLE = """
// the nearest half of a double, as a float
float round_double(double x)
{
    ushort bits;
    vstore_half(x, 0, (__private half *)&bits);
    return vload_half(0, (__private half *)&bits);
}
"""
PACK_HALF = """
ushort pack_half(float x)
{
    ushort bits;
    vstore_half(x, 0, (__private half *)&bits);
    return bits;
}
"""
UNPACK_HALF = """
float unpack_half(ushort bits)
{
    return vload_half(0, (__private half *)&bits);
}
"""
HIDDEN = """
// x, as a number that the compiler does not know: some compute wrongly with negations that they see
int hidden(int x)
{
    return x + (int)get_global_offset(0);  // which is 0
}
"""
ASSUME = """
// what a compiler may take for granted, if it can be told
#ifdef __has_builtin
#if __has_builtin(__builtin_assume)
#define assume(condition) __builtin_assume(condition)
#endif
#endif
#ifndef assume
#define assume(condition)
#endif
"""
REMQUO = """
// the sign and the low seven bits of the quotient that remainder rounds
int remquo_bits(float x, float y)
{
    int quotient;
    remquo(x, y, &quotient);
    return quotient % 128;
}
"""
BYTES_OF = """
// the word of four bytes of two words, which the digits of the selector number
uint bytes_of(uint x, uint y, uint selector)
{
    const ulong both = upsample(y, x);
    uint word = 0;
    for (uint k = 0; k < 32; k += 8) word |= ((uint)(both >> 8 * (selector >> k / 2 & 7)) & 0xff) << k;
    return word;
}
"""
HALVES = """
// of both halves, which are unsigned
uint halves_{op}(uint x, uint y)
{{
    return {op}(x & 0xffff, y & 0xffff) | {op}(x >> 16, y >> 16) << 16;
}}
"""
REMQUO_DOUBLE = REMQUO.replace("remquo_bits", "remquo_bits_double").replace("float", "double")

# The Intel compiler crashes on many `min` and `max` of integers that need one another, as sorting networks have,
# and of choices, unless a pair of them makes the same comparison; in a large tree no pair does.
EXTREMES = {"min": "lesser", "max": "greater"}
INTEGERS = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong")
EXTREME = """
{apart}{c} {name}_{c}({c} x, {c} y)
{{
    return x < y ? {below} : {above};
}}
"""
APART = "__attribute__((noinline)) "


def _extremes(suffix: str, apart: str) -> tuple[dict[str, str], dict[str, str]]:
    """Calls of the least and the greatest of two integers, and the functions that are called."""
    calls, functions = {}, {}
    for op, name in EXTREMES.items():
        for c in INTEGERS:
            below, above = "xy" if op == "min" else "yx"
            calls[f"{op} {c}"] = f"{name}{suffix}_{c}({{0}}, {{1}})"
            functions[f"{name}{suffix}_{c}"] = EXTREME.format(
                apart=apart, c=c, name=f"{name}{suffix}", below=below, above=above
            )
    return calls, functions


CROWDED, CROWDED_HELPERS = _extremes("", "")
FORKED, FORKED_HELPERS = _extremes("_apart", APART)

LOAD = "vstore{n}(*(const __global {type}{n} *){pointer}, 0, {lanes})"
STORE = "*(__global {type}{n} *){pointer} = vload{n}(0, {lanes})"
OPENCL = Dialect(
    name="OpenCL C 1.2",
    kernel="__kernel {group}void",
    fixed_group="__attribute__((reqd_work_group_size({}, {}, {}))) ",
    pointer="__global {const}{type} *{restrict}{name}",
    constant_pointer="__constant {const}{type} *{restrict}{name}",
    restrict="restrict ",
    types={},
    position={
        "global": ("get_global_id(0)", "get_global_id(1)", "get_global_id(2)"),
        "local": ("get_local_id(0)", "get_local_id(1)", "get_local_id(2)"),
        "group": ("get_group_id(0)", "get_group_id(1)", "get_group_id(2)"),
    },
    suffix={"uint": "u", "long": "L", "ulong": "UL"},
    special={
        "float nan": "NAN",
        "float inf": "INFINITY",
        "double nan": "(double)NAN",
        "double inf": "(double)INFINITY",
    },
    calls={
        # the NVIDIA compiler inverts comparisons of such a 16-bit extreme
        **{f"{op} {c}": f"({c}){op}({{ints[0]}}, {{ints[1]}})" for op in ("max", "min") for c in ("short", "ushort")},
        "loaded": "{0}",
        "abs": "(int)abs({0})",  # the result is an unsigned integer
        "nan ushort": "nan((uint){0})",
        "native_sqrt": "sqrt({0})",  # quotients of 14 bits where they are inexact
        "rsqrt": "(1.0f / sqrt({0}))",  # the Intel function has other last bits in vectors, as on wide grids
        "remquo_bits double": "remquo_bits_double({0}, {1})",
    },
    crowded=CROWDED,
    forked=FORKED,
    conversions={
        **saturation.CONVERSIONS,
        # the NVIDIA compiler decides `(short)(-x) > 0` as if -x could not overflow; this keeps the conversion
        "wrap uint char": "convert_char((int)({x}))",
        "wrap uint short": "convert_short((int)({x}))",
        "double half": "round_double({x})",
        "half bits": "pack_half({x})",
        "bits half": "unpack_half({x})",
    },
    saturate="convert_{name}_sat({x})",
    load_half="vload_half({offset}, {pointer})",
    store_half="vstore_half({x}, {offset}, {pointer})",
    bits="as_{name}({x})",
    helpers={
        **HELPERS,
        **saturation.HELPERS,
        **CROWDED_HELPERS,
        **FORKED_HELPERS,
        "round_half": ROUND_HALF,
        "round_double": ROUND_DOUBLE,
        "pack_half": PACK_HALF,
        "unpack_half": UNPACK_HALF,
        **atomics.HELPERS,
        "hidden": HIDDEN,
        "assume": ASSUME,
        "bytes_of": BYTES_OF,
        "halves_max": HALVES.format(op="max"),
        "halves_min": HALVES.format(op="min"),
        "remquo_bits": REMQUO,
        "remquo_bits_double": REMQUO_DOUBLE,
    },
    head="#pragma OPENCL FP_CONTRACT OFF",
    unroll="#pragma unroll {n}",
    local="__local",
    constant="__constant",
    barrier={
        "local": "barrier(CLK_LOCAL_MEM_FENCE)",
        "global": "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)",
    },
    atomics=atomics.ATOMICS,
    wide={
        "part": "&{lanes}[{first}]",
        # vloada and a dereferenced vector promise the alignment, which vload does not
        "load": LOAD,
        "store": STORE,
        "load words": LOAD,
        "store words": STORE,
        "load half": "vstore{n}(vloada_half{n}(0, {pointer}), 0, {lanes})",
        "store half": "vstorea_half{n}(vload{n}(0, {lanes}), 0, {pointer})",
    },
    volatile="{p}",
    long="l",
    int_position="assume({place} < 0x7fffffff);",
)

CPU = replace(
    OPENCL,
    wide={  # any alignment; "stream" bypasses the caches
        "load": "vstore{n}(vload{n}(0, {pointer}), 0, {lanes})",
        "store": "vstore{n}(vload{n}(0, {lanes}), 0, {pointer})",
        "load half": "vstore{n}(vload_half{n}(0, {pointer}), 0, {lanes})",
        "store half": "vstore_half{n}(vload{n}(0, {lanes}), 0, {pointer})",
        "stream": "stream_{type}{n}(vload{n}(0, {lanes}), {pointer})",
    },
    # the Intel compiler vectorizes threads: it miscompiles vectors of a thread, and scatters their stores
    wide_kernel="__kernel {group}__attribute__((intel_reqd_sub_group_size(1))) void",
    # the Intel compiler gathers and scatters at this number as such, because it could be a narrowed one
    int_position="__builtin_assume({place} < 0x7fffffff);",
)
