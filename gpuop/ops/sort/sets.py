"""NumPy functions of fields as sets of values, and the places of nonzero values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import SemanticError
from gpuop.dsl.fields.field import Field
from gpuop.ir.types import FieldType
from gpuop.ops.create.computed_fields import filled
from gpuop.ops.elementwise.algebra import apply
from gpuop.ops.layout.axes import a_field
from gpuop.ops.layout.gather import Place, Reading, apart, gathered
from gpuop.ops.layout.join import stack
from gpuop.ops.layout.layouts import ravel
from gpuop.ops.select.nonzero import true_places
from gpuop.ops.sort.search import count_passing, ordered
from gpuop.ops.sort.sorts import sort
from gpuop.ops.sort.unique import unique

ADVICE = "`np.where(mask, f, 0)` keeps all places"


class UniqueAll(NamedTuple):
    """The unique values, their first places, the inverse indices, and the counts."""

    values: Field
    indices: Field
    inverse_indices: Field
    counts: Field


class UniqueCounts(NamedTuple):
    """The unique values, and their counts."""

    values: Field
    counts: Field


class UniqueInverse(NamedTuple):
    """The unique values, and the inverse indices."""

    values: Field
    inverse_indices: Field


def unique_all(x: Any) -> UniqueAll:
    """numpy.unique_all."""
    return UniqueAll(*unique(x, True, True, True, equal_nan=False))


def unique_counts(x: Any) -> UniqueCounts:
    """numpy.unique_counts."""
    return UniqueCounts(*unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: Any) -> UniqueInverse:
    """numpy.unique_inverse."""
    return UniqueInverse(*unique(x, return_inverse=True, equal_nan=False))


def unique_values(x: Any) -> Field:
    """numpy.unique_values, in order."""
    return unique(x, equal_nan=False)  # type: ignore[no-any-return]


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Field:
    """numpy.isin: by a search in the sorted values."""
    given = [v if isinstance(v, Field) else Field(v) for v in (element, test_elements)]
    dtype = np.result_type(*(str(ordered("isin", v).dtype) for v in given))  # holds the values of both
    values, among = (ordered("isin", v.astype(dtype)) for v in given)
    row, out = sort(ravel(among)), values.type.replace(dtype="bool")
    count = row.size
    if not count or not values.size:
        return filled(out, bool(invert))

    def value(at: Place, read: Reading) -> Any:
        own = read.at(values, at)
        n = count_passing(count, lambda place: k._readTensor(row, place, border="unchecked") <= own)
        there = (n > 0) & (k._readTensor(row, n - 1) == own)
        return ~there if invert else there

    return gathered("isin", out, [values, row], value, bool(invert))


# --- places ---------------------------------------------------------------------------------------------------------------


def nonzero(a: Any) -> tuple[Field, ...]:
    """numpy.nonzero: a field of coordinates for each axis."""
    field = a_field("nonzero", a)
    if not field.ndim:
        raise SemanticError("nonzero: a field of one number has no axes; `f != 0` tells")
    places = flatnonzero(field)
    return tuple(_coordinate(places, field, n) for n in range(field.ndim))


def argwhere(a: Any) -> Field:
    """numpy.argwhere: the coordinates of each place, as vectors."""
    return stack(nonzero(a), axis=1)


def flatnonzero(a: Any) -> Field:
    """numpy.flatnonzero: flat indices in row-major order."""
    field = ravel(a_field("flatnonzero", a))
    if not field.size:
        return filled(FieldType(0, (), "int64"), 0)
    return true_places("nonzero", ADVICE, field if field.dtype == "bool" else apply("not_equal", field, 0), "int64")


def _coordinate(places: Field, field: Field, axis: int) -> Field:
    shape = tuple(field.shape)
    return gathered(
        "nonzero", places.type, [places], lambda at, read: apart(read.at(places, at), shape)[axis], (shape, axis)
    )
