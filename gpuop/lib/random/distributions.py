"""Normal, exponential and Poisson distributions, with the same bits on all devices."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import Parameter
from gpuop.dsl.recorder.value import NUMBERS
from gpuop.ir.types import FieldType
from gpuop.lib.random.counter_based import Words, declared, drawn, scaled
from gpuop.lib.random.reproducible_math import FLOATS, log, middle_share, normal_of, polynomial, share
from gpuop.ops.layout.layouts import spread

FEW = 10.0  # a mean below which events are counted one by one
TURNS = 64  # most iterations of either method: more are needed with a probability below 1e-30
MOST = 1e9  # the greatest mean: counts stay within int32
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)  # log Γ(x), by odd powers of 1 / x
LARGE = 8  # least x for which the series has double precision


def normal(key: Any, shape: Any = (), dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0) -> Field:
    """Normally distributed numbers, by the inverse distribution of 32 random bits (float64: 64): float32 within 6.4 deviations.

    Args:
        key, shape: as of `bits`.
        dtype: float32 by default, or float64, float16.
        loc, scale: the mean and the standard deviation: numbers or Fields.

    Returns:
        A lazy Field.

    Raises:
        SemanticError: as of `uniform`.
    """
    kind = declared("normal", shape, dtype, "float32", "f")
    of = FLOATS["float64" if kind.dtype == "float64" else "float32"]
    result = drawn("normal", key, kind, of.bits // 32, lambda words, _: normal_of(words.of_turn(), of))
    return scaled(result, scale, loc)


def exponential(key: Any, shape: Any = (), dtype: Any = None, scale: Any = 1.0) -> Field:
    """Exponentially distributed numbers, as numpy.random.Generator.exponential.

    Args:
        key, shape: as of `bits`.
        dtype: float32 by default, or float64, float16.
        scale: the mean: a number or a Field.

    Returns:
        A lazy Field.

    Raises:
        SemanticError: as of `uniform`.
    """
    kind = declared("exponential", shape, dtype, "float32", "f")
    of = FLOATS["float64" if kind.dtype == "float64" else "float32"]

    def value(words: Words, _: Any) -> Any:
        given = words.of_turn()
        rest = middle_share(given[0], "float32") if of.bits == 32 else 1.0 - share(given, "float64")
        return 0.0 - log(rest, of)  # -log(1) would be -0.0

    result = drawn("exponential", key, kind, of.bits // 32, value)
    return scaled(result, scale)


def poisson(key: Any, lam: Any = 1.0, shape: Any = None, dtype: Any = None) -> Field:
    """Poisson-distributed numbers, as numpy.random.Generator.poisson.

    Below a mean of 10, exponential waiting times of 24 random bits each are added; above, by transformed rejection in float64:
    W. Hörmann, "The transformed rejection method for generating Poisson random variables" (1993).

    Args:
        key: as of `bits`.
        lam: the mean: a number or a Field, from 0 to 1e9.
        shape: as of `bits`; by default that of `lam`.
        dtype: int32 by default, or another integer dtype.

    Returns:
        A lazy Field.

    Raises:
        ArgumentError: a mean below 0, or above 1e9; a ValueError.
        SemanticError: as of `uniform`.
        DeviceError: the device has no float64, and the mean is 10 or more, or a Field.
    """
    of = shape if shape is not None else lam.type if isinstance(lam, Field) else ()
    if isinstance(of, FieldType) and of.element.kind not in "iu":
        of = of.replace(dtype="int32")
    kind = declared("poisson", of, dtype, "int32", "iu")
    few, many, mean = _mean(lam, kind)

    def value(words: Words, means: list[Any]) -> Any:
        count, own = k._longVar(), means[0]
        if few:
            with k._if(own < FEW):
                _one_by_one(words, k._convert_float(own), count)
        if many:
            with k._if(own >= FEW):
                _proposed(words, k._fmin(k._convert_double(own), MOST), count)
        return k._convert(count, str(kind.dtype))

    return drawn("poisson", key, kind, 4, value, (few, many), [mean])


def _mean(lam: Any, kind: FieldType) -> tuple[bool, bool, Field]:
    """The mean as a field, after two flags: it may be below `FEW`, it may be above."""
    if isinstance(lam, Field):
        return True, True, spread("random.poisson", lam, kind.array_shape) if lam.type.array_shape else lam
    if not isinstance(lam, NUMBERS) or not 0 <= lam <= MOST:
        raise ArgumentError(f"random.poisson: lam is a mean from 0 to {MOST:.0e}, or a Field, not {lam!r}")
    few = bool(lam < FEW)
    mean = Parameter(np.float32(lam) if few else np.float64(lam))
    mean.name = ""  # no variable of the user
    return few, not few, mean


def _one_by_one(words: Words, mean: Any, count: Any) -> None:
    """Count exponential waiting times until their sum exceeds the mean."""
    passed = k._floatVar()
    with k._for(TURNS) as turn:
        for word in words.of_turn(turn):
            passed += -log(middle_share(word, "float32"), FLOATS["float32"])
            count += k._convert_long(passed <= mean)
        with k._if(passed > mean):
            k._break()


def _proposed(words: Words, mean: Any, count: Any) -> None:
    """Propose a quotient of uniform numbers until one is accepted; two of three are, for all means."""
    of = FLOATS["float64"]
    b = 0.931 + 2.53 * k._sqrt(mean)
    a = -0.059 + 0.02483 * b
    with k._for(TURNS) as turn:
        one, two, *_ = words.of_turn(turn)
        u, v = middle_share(one, "float64") - 0.5, middle_share(two, "float64")
        rest = 0.5 - abs(u)
        proposed = k._floor((2.0 * a / rest + b) * u + mean + 0.43)
        count @= k._convert_long(proposed)
        with k._if((rest >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2.0))):
            k._break()
        with k._if((proposed >= 0.0) & ~((rest < 0.013) & (v > rest))):
            scale = 1.1239 + 1.1328 / (b - 3.4)
            asked = log(v * scale / (a / (rest * rest) + b), of)
            with k._if(asked <= proposed * log(mean, of) - mean - _log_factorial(proposed)):
                k._break()


def _log_factorial(n: Any) -> Any:
    """log n! of an integer by the Stirling series; small integers are shifted up first."""
    of, x, product = FLOATS["float64"], k._var(n + 1.0), k._doubleVar(1.0)
    with k._for(LARGE) as _, k._if(x < LARGE):
        product *= x
        x += 1.0
    inverse = 1.0 / x
    series = inverse * polynomial(inverse * inverse, STIRLING)
    return (x - 0.5) * log(x, of) - x + float(np.log(2 * np.pi) / 2) + series - log(product, of)
