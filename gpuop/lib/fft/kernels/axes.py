"""Fourier transforms of any length by passes, along one axis or several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.types import FieldType
from gpuop.lib.fft.kernels.passes import Pair, Pass, factors, read, table, times
from gpuop.ops.layout.gather import own_place

Place = list[Any]


def along_axis(field: Field, axis: int, sign: int, most: int | None = None, real: bool = False) -> Field:
    """The transform along an axis: fields of pairs, of pairs or of real numbers.

    Args:
        sign: the sign of the exponent.
        most: the number of results, from the first on; by default all.
        real: whether only real parts are computed.
    """
    count = field.field_shape[axis]
    results, radices = most or count, factors(count)
    if not radices:
        return _convolved(field, axis, sign, results, real)
    done = 1
    for radix in radices:
        field = Pass(axis, count, radix, done, sign, results, real).of(field)
        done *= radix
    return field


def by_passes(field: Field, kind: str, axes: Sequence[int], sign: int, results: int) -> Field:
    """A transform along several axes.

    Args:
        kind: "c2c"; "r2c", of real numbers, which computes the first `results` results of the last axis, as the others are
            their conjugates; or its inverse, "c2r".
        results: points of the last axis after the transform.
    """
    first, last = axes[:-1], axes[-1]
    if kind == "r2c":
        field = along_axis(field, last, sign, results)
    for axis in first:
        field = along_axis(field, axis, sign)
    if kind == "c2c":
        return along_axis(field, last, sign)
    return field if kind == "r2c" else along_axis(_completed(field, last, results), last, sign, real=True)


def moved(
    name: str, field: Field, axis: int, count: int, value: Callable[[Any, Callable[[Any], Pair]], Pair], *key: Any,
    reads: Sequence[Field] = (), real: bool = False,
) -> Field:  # fmt: skip
    """A field with `count` values along an axis, each computed from values of another field on the same line.

    Args:
        value: a function of the index along the axis and of a function that reads the line at an index.
        key: the constants that `value` depends on.
        reads: other fields that `value` reads.
    """
    shape = list(field.field_shape)
    shape[axis] = count

    def body() -> None:
        own = list(own_place(len(shape)))

        def at(place: Any) -> Pair:
            return read(field, [*own[:axis], place, *own[axis + 1 :]])

        x, y = value(own[axis], at)
        k._writeTensor(k._out0, x if real else k._vector(x, y))

    kind = FieldType(shape, () if real else (2,), field.dtype)
    return library_call(name, (kind,), [field, *reads], body, (axis, real, key))[0]


def _completed(field: Field, axis: int, count: int) -> Field:
    """The whole spectrum of real numbers, from its first half: the second half is conjugate.

    The imaginary parts of the first value, and of the middle one, count as 0.
    """

    def value(at: Any, read_at: Callable[[Any], Pair]) -> Pair:
        first = at <= count // 2
        x, y = read_at(k._where(first, at, count - at))
        alone = (at == 0) if count % 2 else (at == 0) | (at == count // 2)
        return x, k._where(alone, 0 * y, k._where(first, y, 0 - y))

    return moved("fft_conjugates", field, axis, count, value, count)


def _convolved(field: Field, axis: int, sign: int, results: int, real: bool) -> Field:
    """The transform as a convolution with a chirp, whose length has small factors (L. Bluestein, 1970)."""
    count = field.field_shape[axis]
    long = fast_length(2 * count - 1)
    numbers = np.arange(count, dtype=np.int64)
    chirp = np.exp(-1j * np.pi * (numbers * numbers % (2 * count)) / count)

    def response() -> np.ndarray[Any, Any]:
        around = np.zeros(long, complex)
        around[:count] = chirp.conj()
        around[long - count + 1 :] = chirp.conj()[:0:-1]
        return np.fft.fft(around) / long

    chirps = table(("chirp", count), field.dtype, lambda: chirp)
    responses = table(("response", count), field.dtype, response)

    def chirped(at: Any, read_at: Callable[[Any], Pair]) -> Pair:
        inside = k._min(at, count - 1)
        x, y = times(read_at(inside), read(chirps, [inside]), -sign)
        return k._where(at < count, x, 0 * x), k._where(at < count, y, 0 * y)

    def multiplied(at: Any, read_at: Callable[[Any], Pair]) -> Pair:
        return times(read_at(at), read(responses, [at]), -sign)

    def result(at: Any, read_at: Callable[[Any], Pair]) -> Pair:
        return times(read_at(at), read(chirps, [at]), -sign)

    spread = along_axis(moved("fft_chirp", field, axis, long, chirped, count, sign, reads=[chirps]), axis, sign)
    product = moved("fft_response", spread, axis, long, multiplied, sign, reads=[responses])
    back = along_axis(product, axis, -sign, results)
    return moved("fft_chirp", back, axis, results, result, "result", sign, reads=[chirps], real=real)


def fast_length(count: int) -> int:
    """The least length from this one on with no prime factors but 2, 3 and 5."""
    best = 1 << max(count - 1, 0).bit_length()
    fives = 1
    while fives < best:
        odd = fives
        while odd < best:
            power = odd << max(-(-count // odd) - 1, 0).bit_length()
            best = min(best, power)
            odd *= 3
        fives *= 5
    return best
