"""Conversions of floats to integers: truncated, saturated at the bounds of the integer, 0 for NaN.

The Intel compiler vectorizes neither `convert_uchar_sat` nor the kernel around it, and on some drivers NaN does not give 0.
Clamping and then converting plainly takes a tenth to a half of the time there, and no longer elsewhere. Integers and 64-bit
results gain nothing.
"""

from __future__ import annotations

import numpy as np

from gpuop.codegen.opencl.lane_calls import LENGTHS
from gpuop.ir.types import DOUBLE, DTYPES, FLOAT, DType

FUNCTION = """
// truncated, saturated; 0 of a NaN
{wanted}{n} {name}({given}{n} x)
{{
    return {value};
}}
"""


def saturating(arg: DType, result: DType, n: int = 1) -> str:
    """The name of the function that converts n floats to integers."""
    return f"{arg.c}_to_{result.c}{n if n > 1 else ''}"


def _function(arg: DType, result: DType, n: int) -> str:
    name, ending = saturating(arg, result, n), str(n) if n > 1 else ""
    test = "x > 0" if result.kind == "u" and result.bits < 64 else "x == x"  # neither holds of a NaN
    number = f"select(({arg.c}{n})(0), x, {test})" if n > 1 else f"{test} ? x : 0"
    value = _clamped(number, arg, result, n) if result.bits < 64 else f"convert_{result.c}{ending}_sat({number})"
    return FUNCTION.format(wanted=result.c, given=arg.c, n=ending, name=name, value=value)


def _clamped(number: str, arg: DType, result: DType, n: int) -> str:
    """Clamp to a greatest integer that is no float: chosen for everything beyond the greatest float below it."""
    info, kind, suffix = np.iinfo(result.numpy), arg.numpy.type, "" if arg.bits == 64 else "f"
    rounded = float(kind(info.max))
    beyond = rounded > info.max
    high = float(np.nextafter(kind(rounded), kind(0))) if beyond else rounded
    narrow = "int" if result.bits < 32 else result.c  # conversions with instructions
    least, most = f"{float(info.min)!r}{suffix}", f"{high!r}{suffix}"
    inside = f"clamp({number}, {least}, {most})" if info.min else f"min({number}, {most})"
    if n > 1:
        inside = f"convert_{narrow}{n}({inside})"
        inside = inside if narrow == result.c else f"convert_{result.c}{n}({inside})"
        above = f"select({inside}, ({result.c}{n})({info.max}), x >= {rounded!r}{suffix})"
    else:
        inside = f"({narrow}){inside}" if narrow == result.c else f"({result.c})({narrow}){inside}"
        above = f"x >= {rounded!r}{suffix} ? {info.max}{'u' * (result.kind == 'u')} : {inside}"
    return above if beyond else inside


PAIRS = [(arg, result) for arg in (FLOAT, DOUBLE) for result in DTYPES.values() if result.kind in "iu"]
CONVERSIONS = {f"{arg.c} {result.c}": f"{saturating(arg, result)}({{x}})" for arg, result in PAIRS}
HELPERS = {saturating(arg, result, n): _function(arg, result, n) for arg, result in PAIRS for n in (1, *LENGTHS)}
