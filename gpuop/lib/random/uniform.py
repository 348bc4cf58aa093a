"""Random bits, uniform numbers and integers."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import SemanticError, described
from gpuop.dsl.fields.field import Field
from gpuop.ir.types import is_integer
from gpuop.lib.random.counter_based import declared, drawn, scaled
from gpuop.lib.random.reproducible_math import share, whole


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
        drawn_words = words.of_turn()
        return whole(drawn_words) if width == 64 else k._convert(drawn_words[0] >> (32 - width), str(kind.dtype))

    return drawn("bits", key, kind, 2 if width == 64 else 1, value)


def uniform(key: Any, shape: Any = (), dtype: Any = None, low: Any = 0.0, high: Any = 1.0) -> Field:
    """Uniformly distributed numbers in [low, high), from steps of 2⁻²⁴ in float32, 2⁻⁵³ in float64, 2⁻¹¹ in float16.

    Args:
        key, shape: as of `bits`.
        dtype: float32 by default, or float64, float16.
        low, high: numbers or Fields; a `high` of 1 is never reached, another `high` only by rounding.

    Returns:
        A lazy Field.

    Raises:
        SemanticError: as of `bits`; `low` or `high` do not broadcast to the shape.
    """
    kind = declared("uniform", shape, dtype, "float32", "f")
    count = 2 if kind.dtype == "float64" else 1
    result = drawn("uniform", key, kind, count, lambda words, _: share(words.of_turn(), str(kind.dtype)))
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
            raise SemanticError(f"random.integers: an end is an integer, not {described(end)}")
    first, last = int(first), int(last) - (not endpoint)
    if first > last:
        raise SemanticError(f"random.integers: low >= high: there are no integers from {first} to {last}")
    if not kind.element.holds(first) or not kind.element.holds(last):
        raise SemanticError(f"random.integers: {kind.dtype} does not hold all integers from {first} to {last}")
    count = last - first + 1
    wide = count > 2**32

    def value(words: Any, _: Any) -> Any:
        number = _scaled(words.of_turn(), count)
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
