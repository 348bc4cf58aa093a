"""OpenCL C 1.2."""

from __future__ import annotations

from gpuop.codegen.dialect import Dialect

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
TO_UINT = """
// saturates; NaN gives 0, which convert_uint_sat alone does not on every device
uint to_uint(float x)
{
    return isnan(x) ? 0 : convert_uint_sat(x);
}
"""
REMQUO = """
// the sign and the low bits of the quotient that remainder rounds
int remquo_bits(float x, float y)
{
    int quotient;
    remquo(x, y, &quotient);
    return quotient;
}
"""

OPENCL = Dialect(
    name="OpenCL C 1.2",
    kernel="__kernel void",
    pointer="__global {const}{type} *restrict {name}",
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
    calls={},
    conversions={"float uint": "to_uint({x})", "double half": "round_double({x})"},
    saturate="convert_{name}_sat({x})",
    load_half="vload_half({offset}, {pointer})",
    store_half="vstore_half({x}, {offset}, {pointer})",
    bits="as_{name}({x})",
    helpers={"round_half": ROUND_HALF, "round_double": ROUND_DOUBLE, "to_uint": TO_UINT, "remquo_bits": REMQUO},
    head="#pragma OPENCL FP_CONTRACT OFF",
    unroll="#pragma unroll {n}",
)
