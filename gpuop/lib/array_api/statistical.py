"""Statistical, searching, sorting and set functions of the array API standard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpuop.dsl.fields.field import Field
from gpuop.ops.elementwise.algebra import apply, astype
from gpuop.ops.layout import join, reorder
from gpuop.ops.layout.axes import numbered, of_field
from gpuop.ops.reduce import calculus
from gpuop.ops.reduce.functions import called
from gpuop.ops.sort import search, sets, sorts


def _reduction(name: str) -> Callable[..., Field]:
    def function(x: Field, /, *, axis: Any = None, keepdims: bool = False) -> Field:
        return called(name, x, axis, keepdims=keepdims)

    return _named(function, name)


def _total(name: str) -> Callable[..., Field]:
    def function(x: Field, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Field:
        found = called(name, x if dtype is None else astype(x, dtype), axis, keepdims=keepdims)
        return found if dtype is None else astype(found, dtype)

    return _named(function, name)


def _moment(name: str) -> Callable[..., Field]:
    def function(x: Field, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Field:
        return called(name, x, axis, ddof=correction, keepdims=keepdims)

    return _named(function, name)


def _named(function: Callable[..., Field], name: str) -> Callable[..., Field]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}` of the array API standard."
    return function


REDUCTIONS = ("all", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min")
FUNCTIONS: dict[str, Callable[..., Any]] = {name: _reduction(name) for name in REDUCTIONS}
FUNCTIONS |= {name: _total(name) for name in ("prod", "sum")} | {name: _moment(name) for name in ("std", "var")}


def cumulative_sum(x: Field, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Field:
    """`cumulative_sum` of the array API standard."""
    return calculus.cumulative_sum(x, axis=axis, dtype=dtype, include_initial=include_initial)


def cumulative_prod(x: Field, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Field:
    """`cumulative_prod` of the array API standard."""
    return calculus.cumulative_prod(x, axis=axis, dtype=dtype, include_initial=include_initial)


def diff(x: Field, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Field:
    """`diff` of the array API standard."""
    return join.diff(x, n, axis, prepend, append)


# --- order and places -----------------------------------------------------------------------------------------------------


def sort(x: Field, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Field:
    """`sort` of the array API standard."""
    found = sorts.sort(x, axis)
    return reorder.flip(found, axis) if descending else found


def argsort(x: Field, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Field:
    """`argsort` of the array API standard; always stable."""
    if not descending:
        return sorts.argsort(x, axis)
    extent = x.shape[numbered(axis, *of_field(x))]
    return apply("subtract", extent - 1, reorder.flip(sorts.argsort(reorder.flip(x, axis), axis), axis))


def searchsorted(x1: Field, x2: Field, /, *, side: str = "left", sorter: Field | None = None) -> Field:
    """`searchsorted` of the array API standard."""
    return search.searchsorted(x1, x2, side, sorter)


def nonzero(x: Field, /) -> tuple[Field, ...]:
    """`nonzero` of the array API standard, evaluated when it is called."""
    return sets.nonzero(x)


def unique_all(x: Field, /) -> sets.UniqueAll:
    """`unique_all` of the array API standard, evaluated when it is called."""
    return sets.unique_all(x)


def unique_counts(x: Field, /) -> sets.UniqueCounts:
    """`unique_counts` of the array API standard, evaluated when it is called."""
    return sets.unique_counts(x)


def unique_inverse(x: Field, /) -> sets.UniqueInverse:
    """`unique_inverse` of the array API standard, evaluated when it is called."""
    return sets.unique_inverse(x)


def unique_values(x: Field, /) -> Field:
    """`unique_values` of the array API standard, evaluated when it is called."""
    return sets.unique_values(x)


ORDERED = (sort, argsort, searchsorted, nonzero, unique_all, unique_counts, unique_inverse, unique_values)
FUNCTIONS |= {f.__name__: f for f in (cumulative_sum, cumulative_prod, diff, *ORDERED)}
