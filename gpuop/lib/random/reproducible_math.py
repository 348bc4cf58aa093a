"""Reproducible math for random numbers: sums, products, quotients, roots and integers alone, which all devices round alike.

Logarithms of devices differ in the last place, so rejection sampling by them would accept different numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.records import dataclass
from gpuop.ir.bfloat16 import BFLOAT16


@dataclass(frozen=True)
class Floats:
    """A floating-point type: its layout, and polynomials of its precision.

    Attributes:
        bits, mantissa: the bits of a number, and of its fraction.
        root: the bits of √½.
        ln2: ln 2 in two parts; the first one times an exponent is exact.
        log: the odd part of the logarithm of (1 + s) / (1 - s), by s²: logf and log of FreeBSD (msun).
    """

    name: str
    bits: int
    mantissa: int
    root: int
    ln2: tuple[float, float]
    log: tuple[float, ...]


FLOAT = Floats(
    "float32",
    32,
    23,
    0x3F3504F3,
    (6.9313812256e-01, 9.0580006145e-06),
    (0.66666662693, 0.40000972152, 0.28498786688, 0.24279078841),
)
DOUBLE = Floats(
    "float64",
    64,
    52,
    0x3FE6A09E667F3BCD,
    (6.93147180369123816490e-01, 1.90821492927058770002e-10),
    (6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
     1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01),
)  # fmt: skip
# Of erfinv(x) / x, for ranges of w = -log(1 - x²): the start of the range, the number to subtract from w or √w, the coefficients.
# M. Giles, "Approximating the erfinv function" (GPU Computing Gems, 2011).
ERFINV = (
    (0.0, 3.125, (
        1.6536545626831027356, 0.24015818242558961693, -0.0060336708714301490533, -0.00074070253416626697512,
        0.0001867342080340571352, -1.3882523362786468719e-05, -1.3654692000834678645e-06, 4.2347877827932403518e-07,
        -2.9070369957882005086e-08, -4.1126339803469836976e-09, 1.051212273321532285e-09, -5.4154120542946279317e-11,
        -1.2975133253453532498e-11, 2.6335093153082322977e-12, -8.1519341976054721522e-14, -4.0545662729752068639e-14,
        6.6376381343583238325e-15, 2.0972767875968561637e-17, -1.333171662854620906e-16, 1.115787767802518096e-17,
        1.2858480715256400167e-18, -1.685059138182016589e-19, -3.6444120640178196996e-21)),
    (6.25, 3.25, (
        3.0838856104922207635, 1.0052589676941592334, 0.005370914553590063617, -0.0037512085075692412107,
        0.0024914420961078508066, -0.0016882755560235047313, 0.00095328937973738049703, -0.0003550375203628474796,
        2.4031110387097893999e-05, 6.8284851459573175448e-05, -4.7318229009055733981e-05, 1.2475304481671778723e-05,
        2.9234449089955446044e-06, -4.013867526981545969e-06, 1.5027403968909827627e-06, 1.8239629214389227755e-08,
        -2.7517406297064545428e-07, 9.0756561938885390979e-08, 2.2137376921775787049e-09)),
    (16.0, 5.0, (
        4.8499064014085844221, 1.0103004648645343977, -0.00013871931833623122026, -0.00021503011930044477347,
        7.5995277030017761139e-05, -1.9681778105531670567e-05, 4.5260625972231537039e-06, -9.9298272942317002539e-07,
        2.2900482228026654717e-07, -6.7711997758452339498e-08, 2.9147953450901080826e-08, -1.4960026627149240478e-08,
        7.6157012080783393804e-09, -3.7894654401267369937e-09, 1.5076572693500548083e-09, -2.5556418169965252055e-10,
        -2.7109920616438573243e-11)),
)  # fmt: skip
# -2 log(1 + x) / x for x from -1/2 to 0, within 5e-8, and sin(π x / 2) / x by x² for x from -1 to 1, within 7e-9
RADIUS = (
    -2.0, 0.9999856352806091, -0.6674051284790039, 0.4855489134788513, -0.5397002696990967, -0.40907949209213257,
    -2.5200209617614746, -3.397331714630127, -2.8850457668304443,
)  # fmt: skip
SINE = (1.5707963705062866, -0.6459637880325317, 0.07968991994857788, -0.004674150608479977, 0.0001516751217423007)
FLOATS = {each.name: each for each in (FLOAT, DOUBLE)}


def log(x: Any, of: Floats) -> Any:
    """The natural logarithm of a positive number that is not denormal, within 1 ULP."""
    one = ((1 << (of.bits - of.mantissa - 2)) - 1) << of.mantissa
    shifted = (k._as_int if of.bits == 32 else k._as_long)(x) + (one - of.root)
    exponent = k._convert((shifted >> of.mantissa) - (one >> of.mantissa), of.name)
    fraction = (shifted & ((1 << of.mantissa) - 1)) + of.root
    f = (k._as_float if of.bits == 32 else k._as_double)(fraction) - 1.0
    s, half = f / (f + 2.0), f * f * 0.5
    z = s * s
    rest = s * (half + z * polynomial(z, of.log))
    return exponent * of.ln2[0] - ((half - (rest + exponent * of.ln2[1])) - f)


def polynomial(x: Any, coefficients: Sequence[Any]) -> Any:
    """The polynomial with these coefficients, the constant first."""
    total = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = k._fma(total, x, c)
    return total


def normal_of_pair(one: Any, other: Any, second: Any) -> Any:
    """A float32 of the standard normal distribution, one of two that two words give (Box and Muller, 1958).

    The radius is that of the middle of one of 2³¹ parts of [0, 1], whose distance from either end is exact, the angle the middle of
    one of 2³² parts of a turn.

    Args:
        second: 0 for the cosine, 1 for the sine.
    """
    middle = one | 1
    halvings = k._clz(middle)
    rest = k._convert_float(k._as_int(middle << halvings)) * 2.0**-32  # from 1, as the sign bit stands for it
    logarithm = k._convert_float(k._as_int(halvings)) * float(np.float32(2 * np.log(2)))
    radius = k._sqrt(k._fma(rest, polynomial(rest, RADIUS), logarithm))
    angle = k._as_int(other + (np.uint32(1 << 31) - k._convert_uint(second) * np.uint32(1 << 30)))
    folded = k._as_uint(angle ^ (angle >> 31)) * 2 + np.uint32(
        (1 << 31) + 1
    )  # the sine of half a turn is that of the rest
    x = k._convert_float(k._as_int(folded)) * 2.0**-31
    return radius * (x * polynomial(x * x, SINE))


def normal_of(words: Sequence[Any]) -> Any:
    """The float64 quantile of the standard normal distribution for the probability that two words represent.

    Probabilities are the middles of 2⁶⁴ equal parts, so the distance from either end is exact, and tails are complete.
    """
    signed = k._as_long(whole(words))
    magnitude = k._as_ulong(signed ^ (signed >> 63))
    x = k._convert_double(2 * magnitude + 1) * 2.0**-64
    tail = k._convert_double((1 << 64) - 1 - 2 * magnitude) * 2.0**-64
    w = -log(tail * (x + 1.0), DOUBLE)
    z = x * _erfinv_over_x(w) * k._convert_double(2.0**0.5)
    return k._where(signed < 0, -z, z)


def _erfinv_over_x(w: Any) -> Any:
    (_, middle, first), *others = ERFINV
    root, value = k._sqrt(w), polynomial(w - middle, first)
    for start, middle, coefficients in others:
        value = k._where(w < start, value, polynomial(root - middle, coefficients))
    return value


def whole(words: Sequence[Any]) -> Any:
    """The 64-bit integer of two words."""
    low, high = (k._convert_ulong(word) for word in words)
    return low | (high << 32)


def share(words: Sequence[Any], dtype: str) -> Any:
    """A number in [0, 1), with as many bits as the dtype has just below 1."""
    if dtype == "float64":
        return k._convert_double(whole(words) >> 11) * 2.0**-53
    bits = {"float16": 11, BFLOAT16: 8}.get(dtype, 24)
    return k._convert_float(words[0] >> (32 - bits)) * 2.0**-bits


def middle_share(word: Any, dtype: str) -> Any:
    """The middle of one of 2³² parts of [0, 1], rounded: never 0."""
    return (k._convert(word, dtype) + 0.5) * 2.0**-32
