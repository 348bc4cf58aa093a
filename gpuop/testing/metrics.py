"""Error metrics: the distance of values from expected ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.base.errors import SemanticError
from gpuop.base.misspelt import hinted
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field

Array = NDArray[Any]


@dataclass(frozen=True)
class Errors:
    """The errors of an array against another. NaN against NaN and equal infinities are no error; against others an infinite one.

    Attributes:
        size: the number of values.
        differing: the number of values that are not equal.
        max_abs: the greatest |a - e|.
        max_rel: the greatest |a - e| / |e|.
        mean_rel: the sum of |a - e|, divided by the sum of |e|.
        max_mixed: the greatest |a - e| / max(1, |a|, |e|): relative for large values, absolute for small ones.
        max_ulps: the greatest difference in units of the last place, as of `ulps`.
        first, worst: the places of the first value that is not equal, and of the greatest `max_abs`; None if all are equal.
    """

    size: int
    differing: int
    max_abs: float
    max_rel: float
    mean_rel: float
    max_mixed: float
    max_ulps: float
    first: tuple[int, ...] | None
    worst: tuple[int, ...] | None

    def __str__(self) -> str:
        return (
            f"max abs {self.max_abs:.3g}, max rel {self.max_rel:.3g}, mean rel {self.mean_rel:.3g}, "
            f"max mixed {self.max_mixed:.3g}, max ulps {self.max_ulps:.3g}"
        )


def values_of(field: Any) -> Array:
    """The array of a Field or of an array-like value."""
    return field.numpy() if isinstance(field, Field) else np.asarray(field)


@hinted
def errors(actual: Any, expected: Any) -> Errors:
    """Measure how far values are from expected ones.

    Args:
        actual, expected: Fields or array-like values, whose shapes broadcast.

    Returns:
        An Errors, computed in `numpy.longdouble`.

    Raises:
        SemanticError: the shapes do not broadcast.
    """
    result, want = both(values_of(actual), values_of(expected))
    off, size = difference(result, want), np.abs(_long(want))
    differs = off > 0
    with np.errstate(all="ignore"):
        relative = np.where(differs, off / size, 0)
        mixed = np.where(np.isinf(off), np.inf, off / np.maximum(np.fmax(np.abs(_long(result)), size), 1))
        total = size[np.isfinite(size)].sum()
        mean = off.sum() / total if total else (np.inf if differs.any() else 0.0)
    return Errors(
        result.size, int(differs.sum()), _greatest(off), _greatest(relative), float(mean), _greatest(np.where(differs, mixed, 0)),
        _greatest(_places(result, want)), _place(differs), _place(differs & (off == off.max(initial=0))),
    )  # fmt: skip


def both(result: Array, want: Array) -> tuple[Array, Array]:
    """Broadcast two arrays to one shape."""
    try:
        a, b = np.broadcast_arrays(result, want)
    except ValueError:
        raise SemanticError(f"values of shape {result.shape} are compared with some of shape {want.shape}") from None
    return a, b


def difference(result: Array, want: Array) -> Array:
    """|got - want| as `numpy.longdouble`; infinite if one of them is NaN, or they are unequal infinities."""
    a, b = _long(result), _long(want)
    with np.errstate(all="ignore"):
        off = np.abs(a - b)
        off = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, off)
    return np.where(np.isnan(off), np.inf, off)


def _long(array: Array) -> Array:
    return array.astype(np.clongdouble if array.dtype.kind == "c" else np.longdouble)


def _greatest(values: Array) -> float:
    return float(values.max(initial=0))


def _place(mask: Array) -> tuple[int, ...] | None:
    """The first place in row-major order."""
    return tuple(int(n) for n in np.argwhere(mask)[0]) if mask.any() else None


def _places(result: Array, want: Array) -> Array:
    """Differences in units of the last place: for complex numbers the greater one of both parts, for integers the difference."""
    if result.dtype.kind == "c" or want.dtype.kind == "c":
        result = result.astype(np.result_type(result.dtype, np.complex64))
        return np.maximum(ulps(result.real, want.real), ulps(result.imag, want.imag))
    if result.dtype.kind == "f":
        return ulps(result, want)
    return difference(result, want)


@hinted
def ulps(actual: Array, exact: Array, flush: bool = False) -> Array:
    """The distance to exact values in units of the last place of the type of `actual`; infinity if NaN or ∞ differ.

    An overflow next to an exact value that is just below it does not count.

    Args:
        actual: an array of floats.
        exact: an array of the same shape, of a wider type or rounded.
        flush: denormal results may be zero.

    Returns:
        An array of that shape.
    """
    info = np.finfo(actual.dtype)
    wide = np.longdouble
    with np.errstate(all="ignore"):
        rounded, got_wide, exact_wide = exact.astype(actual.dtype), actual.astype(wide), exact.astype(wide)
        unit = np.spacing(np.maximum(np.abs(rounded), info.tiny)).astype(wide)
        error = np.abs(got_wide - exact_wide) / unit
        just_above = (
            np.isfinite(exact)
            & (np.abs(exact_wide) > wide(info.max) * (1 - 32 * wide(info.eps)))
            & (np.sign(actual) == np.sign(exact))
        )
    overflow, nan = np.isinf(rounded) | np.isinf(actual), np.isnan(rounded) | np.isnan(actual)
    error = np.where(overflow, np.where((actual == rounded) | just_above, 0, np.inf), error)
    error = np.where(nan, np.where(np.isnan(rounded) & np.isnan(actual), 0, np.inf), error)
    return np.where(flush & (actual == 0) & (np.abs(exact) <= info.tiny), 0, error)
