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


def saturating(given: DType, wanted: DType, n: int = 1) -> str:
    """The name of the function that converts n floats to integers."""
    return f"{given.c}_to_{wanted.c}{n if n > 1 else ''}"


def _function(given: DType, wanted: DType, n: int) -> str:
    name, ending = saturating(given, wanted, n), str(n) if n > 1 else ""
    test = "x > 0" if wanted.kind == "u" and wanted.bits < 64 else "x == x"  # neither holds of a NaN
    number = f"select(({given.c}{n})(0), x, {test})" if n > 1 else f"{test} ? x : 0"
    value = _clamped(number, given, wanted, n) if wanted.bits < 64 else f"convert_{wanted.c}{ending}_sat({number})"
    return FUNCTION.format(wanted=wanted.c, given=given.c, n=ending, name=name, value=value)


def _clamped(number: str, given: DType, wanted: DType, n: int) -> str:
    """Clamp to a greatest integer that is no float: chosen for everything beyond the greatest float below it."""
    info, kind, suffix = np.iinfo(wanted.numpy), given.numpy.type, "" if given.bits == 64 else "f"
    rounded = float(kind(info.max))
    beyond = rounded > info.max
    high = float(np.nextafter(kind(rounded), kind(0))) if beyond else rounded
    narrow = "int" if wanted.bits < 32 else wanted.c  # conversions with instructions
    least, most = f"{float(info.min)!r}{suffix}", f"{high!r}{suffix}"
    inside = f"clamp({number}, {least}, {most})" if info.min else f"min({number}, {most})"
    if n > 1:
        inside = f"convert_{narrow}{n}({inside})"
        inside = inside if narrow == wanted.c else f"convert_{wanted.c}{n}({inside})"
        above = f"select({inside}, ({wanted.c}{n})({info.max}), x >= {rounded!r}{suffix})"
    else:
        inside = f"({narrow}){inside}" if narrow == wanted.c else f"({wanted.c})({narrow}){inside}"
        above = f"x >= {rounded!r}{suffix} ? {info.max}{'u' * (wanted.kind == 'u')} : {inside}"
    return above if beyond else inside


PAIRS = [(given, wanted) for given in (FLOAT, DOUBLE) for wanted in DTYPES.values() if wanted.kind in "iu"]
CONVERSIONS = {f"{given.c} {wanted.c}": f"{saturating(given, wanted)}({{x}})" for given, wanted in PAIRS}
HELPERS = {saturating(given, wanted, n): _function(given, wanted, n) for given, wanted in PAIRS for n in (1, *LENGTHS)}
