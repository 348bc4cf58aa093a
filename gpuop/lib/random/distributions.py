"""Uniform, normal, exponential and Poisson distributions, permutations and choices, with the same bits on all devices."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError, SemanticError, described
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import Parameter
from gpuop.dsl.recorder.value import NUMBERS
from gpuop.engine.jit.array_arguments import as_field, takes_arrays
from gpuop.ir.types import FieldType, is_integer
from gpuop.lib.random.keys import Words, declared, drawn, scaled
from gpuop.lib.random.reproducible_math import (
    FLOATS,
    log,
    middle_share,
    normal_of,
    normal_of_pair,
    polynomial,
    share,
    whole,
)
from gpuop.ops.layout.axes import numbered, of_field
from gpuop.ops.layout.layouts import spread
from gpuop.ops.layout.reorder import take
from gpuop.ops.sort.search import searchsorted
from gpuop.ops.sort.sorts import argsort

FEW = 10.0  # a mean below which events are counted one by one
ITERATIONS = 64  # most iterations of either method: more are needed with a probability below 1e-30
MOST = 1e9  # the greatest mean: counts stay within int32
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)  # log Γ(x), by odd powers of 1 / x
LARGE = 8  # least x for which the series has double precision


def normal(key: Any, shape: Any = (), dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0) -> Field:
    """Normally distributed numbers: float32 by Box and Muller's method, within 6.7 deviations; float64 by the inverse distribution.

    Args:
        key, shape: as of `bits`.
        dtype: float32 by default, or float64, float16, bfloat16.
        loc, scale: the mean and the standard deviation: numbers or Fields.

    Returns:
        A lazy Field.

    Raises:
        SemanticError: as of `uniform`.
    """
    kind = declared("normal", shape, dtype, "float32", "f")
    if kind.dtype == "float64":
        result = drawn("normal", key, kind, 2, lambda words, _: normal_of(words.of_iteration()))
    else:
        result = drawn("normal", key, kind, 1, lambda words, _: normal_of_pair(*words.pair()))
    return scaled(result, scale, loc)


def exponential(key: Any, shape: Any = (), dtype: Any = None, scale: Any = 1.0) -> Field:
    """Exponentially distributed numbers, as numpy.random.Generator.exponential.

    Args:
        key, shape: as of `bits`.
        dtype: float32 by default, or float64, float16, bfloat16.
        scale: the mean: a number or a Field.

    Returns:
        A lazy Field.

    Raises:
        SemanticError: as of `uniform`.
    """
    kind = declared("exponential", shape, dtype, "float32", "f")
    of = FLOATS["float64" if kind.dtype == "float64" else "float32"]

    def value(words: Words, _: Any) -> Any:
        numbers = words.of_iteration()
        rest = middle_share(numbers[0], "float32") if of.bits == 32 else 1.0 - share(numbers, "float64")
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
        raise ArgumentError(f"random.poisson: `lam` is a number from 0 to {MOST:.0e}, or a Field, not {lam!r}")
    few = bool(lam < FEW)
    mean = Parameter(np.float32(lam) if few else np.float64(lam))
    mean.name = ""  # no variable of the user
    return few, not few, mean


def _one_by_one(words: Words, mean: Any, count: Any) -> None:
    """Count exponential waiting times until their sum exceeds the mean."""
    passed = k._floatVar()
    with k._for(ITERATIONS) as turn:
        for word in words.of_iteration(turn):
            passed += -log(middle_share(word, "float32"), FLOATS["float32"])
            count += k._convert_long(passed <= mean)
        with k._if(passed > mean):
            k._break()


def _proposed(words: Words, mean: Any, count: Any) -> None:
    """Propose a quotient of uniform numbers until one is accepted; two of three are, for all means."""
    of = FLOATS["float64"]
    b = 0.931 + 2.53 * k._sqrt(mean)
    a = -0.059 + 0.02483 * b
    with k._for(ITERATIONS) as turn:
        one, two, *_ = words.of_iteration(turn)
        u, v = middle_share(one, "float64") - 0.5, middle_share(two, "float64")
        rest = 0.5 - abs(u)
        proposed = k._floor((2.0 * a / rest + b) * u + mean + 0.43)
        count @= k._convert_long(proposed)
        with k._if((rest >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2.0))):
            k._break()
        with k._if((proposed >= 0.0) & ~((rest < 0.013) & (v > rest))):
            scale = 1.1239 + 1.1328 / (b - 3.4)
            ratio = log(v * scale / (a / (rest * rest) + b), of)
            with k._if(ratio <= proposed * log(mean, of) - mean - _log_factorial(proposed)):
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


# --- random bits, uniform numbers and integers ------------------------------------------------------------------------


def bits(key: Any, shape: Any = (), dtype: Any = None) -> Field:
    """Unsigned integers of random bits.

    Args:
        key: a key of `gp.random.key`, `split` or `fold_in`; a key always gives the same bits; other functions give related numbers.
        shape: the grid's shape, an int or a tuple; or a FieldType, each of whose tensor elements has its own number.
        dtype: uint32 by default, or uint8, uint16, uint64.

    Returns:
        A lazy Field, which fuses with its consumers; its bits are the same on all devices.

    Raises:
        SemanticError: no key; an unsupported shape or dtype.
    """
    kind = declared("bits", shape, dtype, "uint32", "u")
    width = kind.element.bits

    def value(words: Any, _: Any) -> Any:
        drawn_words = words.of_iteration()
        return whole(drawn_words) if width == 64 else k._convert(drawn_words[0] >> (32 - width), str(kind.dtype))

    return drawn("bits", key, kind, 2 if width == 64 else 1, value)


def uniform(key: Any, shape: Any = (), dtype: Any = None, low: Any = 0.0, high: Any = 1.0) -> Field:
    """Uniformly distributed numbers in [low, high).

    Steps of [0, 1) are 2⁻²⁴ in float32, 2⁻⁵³ in float64, 2⁻¹¹ in float16 and 2⁻⁸ in bfloat16.

    Args:
        key, shape: as of `bits`.
        dtype: float32 by default, or float64, float16, bfloat16.
        low, high: numbers or Fields; a `high` of 1 is never reached, another `high` only by rounding.

    Returns:
        A lazy Field.

    Raises:
        SemanticError: as of `bits`; `low` or `high` do not broadcast to the shape.
    """
    kind = declared("uniform", shape, dtype, "float32", "f")
    count = 2 if kind.dtype == "float64" else 1
    result = drawn("uniform", key, kind, count, lambda words, _: share(words.of_iteration(), str(kind.dtype)))
    return scaled(result, high - low, low)


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Field:
    """Bernoulli trials: bools that are true with a probability.

    Args:
        key: as of `bits`.
        p: the probability, a number or a Field.
        shape: as of `bits`; by default that of `p`.

    Returns:
        A lazy Field of bools.

    Raises:
        SemanticError: as of `uniform`.
    """
    if shape is None:
        shape = p.type.replace(dtype="float32") if isinstance(p, Field) else ()
    return uniform(key, shape) < p  # type: ignore[no-any-return]


def integers(key: Any, low: Any, high: Any = None, shape: Any = (), dtype: Any = None, endpoint: bool = False) -> Field:
    """Uniformly distributed integers, as numpy.random.Generator.integers: probabilities to 2⁻³² of their values, of 64 bits 2⁻⁶⁴.

    Args:
        key, shape: as of `bits`.
        low, high: the range, without `high`; a single number is `high`, and `low` is 0.
        dtype: int32 by default, or another integer dtype.
        endpoint: whether `high` is included.

    Returns:
        A lazy Field.

    Raises:
        SemanticError: as of `bits`; the range is empty, or exceeds the dtype.
    """
    kind = declared("integers", shape, dtype, "int32", "iu")
    first, last = (0, low) if high is None else (low, high)
    for end in (first, last):
        if not is_integer(end):
            raise SemanticError(f"random.integers: `low` and `high` are integers, not {described(end)}")
    first, last = int(first), int(last) - (not endpoint)
    if first > last:
        raise SemanticError(f"random.integers: low >= high: there are no integers from {first} to {last}")
    if not kind.element.holds(first) or not kind.element.holds(last):
        raise SemanticError(f"random.integers: {kind.dtype} does not hold all integers from {first} to {last}")
    count = last - first + 1
    wide = count > 2**32

    def value(words: Any, _: Any) -> Any:
        number = _scaled(words.of_iteration(), count)
        return _above(number, first, str(kind.dtype))

    return drawn("integers", key, kind, 4 if wide else 2, value, (first, count))


def _scaled(words: Any, count: int) -> Any:
    """The random words scaled to an integer in [0, count): the integer part of their fraction times `count`."""
    high = whole(words[-2:])
    if count == 2**64:
        return high
    if len(words) == 2:
        return k._mul_hi(high, np.uint64(count))
    low = k._mul_hi(whole(words[:2]), np.uint64(count))
    product = high * np.uint64(count)
    carried = k._convert_ulong(product + low < product)
    return k._mul_hi(high, np.uint64(count)) + carried


def _above(number: Any, first: int, dtype: str) -> Any:
    """The number plus `first`, which may be negative: 64-bit sums wrap, and the result fits the dtype."""
    total = number + np.uint64(first % 2**64)
    return total if dtype == "uint64" else k._convert(k._as_long(total), dtype)


# --- random permutations and choices ----------------------------------------------------------------------------------


def permutation(key: Any, x: Any, axis: int = 0) -> Any:
    """Integers, or slices along an axis, in random order, as numpy.random.Generator.permutation: 64 random bits each are sorted.

    Args:
        key: as of `bits`.
        x: the number of integers, from 0 on; or a Field, or an array.
        axis: the axis of the Field; its slices are permuted as wholes.

    Returns:
        A lazy Field; integers are int32. For an array, an array of the same library.

    Raises:
        SemanticError: no key, or no such axis.
    """
    if is_integer(x):
        return argsort(bits(key, x, "uint64")).astype("int32")
    return _permuted(x, key, axis)


@takes_arrays()
def _permuted(field: Any, key: Any, axis: int) -> Any:
    """The slices of a field along an axis, in random order."""
    number = numbered(axis, *of_field(field))
    order = argsort(bits(key, field.type.array_shape[number], "uint64"))
    return take(field, order, number, mode="clip")


def choice(key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0) -> Any:
    """A random sample of integers, or of slices along an axis, as numpy.random.Generator.choice.

    Args:
        key, shape: as of `bits`; the shape is a tuple or an integer.
        a: the number of integers, from 0 on; or a Field, or an array, whose slices along an axis are chosen.
        replace: whether one may be chosen again.
        p: the probability of each: a list, an array or a Field of one dimension; uniform by default.
        axis: the axis of the Field.

    Returns:
        A lazy Field; integers are int32. For an array, an array of the same library.

    Raises:
        ArgumentError: a sample larger than the population without `replace`, or a wrong number of probabilities; a ValueError.
        SemanticError: no key, or no such axis.
    """
    return _places(key, int(a), shape, replace, p) if is_integer(a) else _chosen(a, p, key, shape, replace, axis)


@takes_arrays("field", "p")
def _chosen(field: Any, p: Any = None, key: Any = None, shape: Any = (), replace: bool = True, axis: int = 0) -> Any:
    """A random sample of slices of a field along an axis."""
    number = numbered(axis, *of_field(field))
    return take(field, _places(key, field.type.array_shape[number], shape, replace, p), number, mode="clip")


def _places(key: Any, count: int, shape: Any, replace: bool, p: Any) -> Field:
    """A random sample of the integers below `count`."""
    extents = (int(shape),) if is_integer(shape) else tuple(shape)
    if p is not None:
        if not replace:
            raise ArgumentError("random.choice: without replacement all elements are equally likely: leave out `p=`")
        return _weighed(key, extents, p, count)
    if replace:
        return integers(key, count, shape=extents)
    most = int(np.prod(extents))
    if most > count:
        raise ArgumentError(f"random.choice: {most} of {count} elements are chosen with `replace=True` only")
    places: Field = permutation(key, count)[:most].reshape(extents)
    return places


def _weighed(key: Any, shape: tuple[int, ...], p: Any, count: int) -> Field:
    """Weighted choices: the positions of uniform numbers among the cumulative probabilities."""
    likely = as_field(p).astype("float64")
    if tuple(likely.type.array_shape) != (count,):
        raise ArgumentError(
            f"random.choice: `p=` has a probability for each of {count} elements, not shape {likely.type.array_shape}"
        )
    sums = likely.cumsum()
    return searchsorted(sums, uniform(key, shape, "float64") * sums[-1], side="right").astype("int32")
