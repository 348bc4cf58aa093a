"""Vectors with more lanes than OpenCL has, for narrow integers: a Clang extension, and compilers for CPUs are based on Clang.

They have operators but no functions, so conversions and extremes are spelled here.
"""

from __future__ import annotations

from gpuop.ir.types import CHAR, INT, SHORT, UCHAR, UINT, USHORT

LONGEST = 16  # lanes of OpenCL vectors
LENGTHS = (32, 64)
KINDS = tuple(dtype.c for dtype in (CHAR, UCHAR, SHORT, USHORT, INT, UINT))
TYPE = """
// {n} lanes, which are more than OpenCL's own vectors have
typedef {c} {c}{n} __attribute__((ext_vector_type({n})));
#define convert_{c}{n}(x) __builtin_convertvector(x, {c}{n})
"""
EXTREME = """
{c}{n} {op}_{c}{n}({c}{n} x, {c}{n} y)
{{
    return x {sign} y ? x : y;
}}
"""
HELPERS = {f"{c}{n}": TYPE.format(c=c, n=n) for c in KINDS for n in LENGTHS} | {
    f"{op}_{c}{n}": EXTREME.format(c=c, n=n, op=op, sign=sign)
    for op, sign in (("min", "<"), ("max", ">"))
    for c in KINDS
    for n in LENGTHS
}
