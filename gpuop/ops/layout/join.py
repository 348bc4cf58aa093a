"""NumPy functions that join fields, and split them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError, SemanticError, described
from gpuop.dsl.fields import services
from gpuop.dsl.fields.field import Field
from gpuop.dsl.recorder.value import NUMBERS
from gpuop.ir.types import is_integer
from gpuop.ops.create.computed_fields import filled
from gpuop.ops.elementwise.algebra import common_dtype
from gpuop.ops.layout.axes import Axis, Whose, a_field, axes_of, names_of_all, numbered, of_field, type_of, whole_number
from gpuop.ops.layout.gather import Place, Reading, gathered
from gpuop.ops.layout.layouts import ravel, reshaped
from gpuop.ops.layout.slicing import sliced

AT_ONCE = 16  # fields that one kernel joins: more are joined in groups


def concatenate(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Field:
    """numpy.concatenate."""
    if out is not None or casting != "same_kind":
        raise SemanticError(
            "concatenate of Fields has no `out` and no `casting`: fields do not change, `.astype` converts"
        )
    fields = _alike("concatenate", arrays, dtype)
    if axis is None:
        fields, axis = [ravel(f) for f in fields], 0
    return _joined("concatenate", fields, axis)


def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Field:
    """numpy.stack; an axis after the grid's is a tensor axis: scalars become vectors."""
    if out is not None or casting != "same_kind":
        raise SemanticError("stack of Fields has no `out` and no `casting`: fields do not change, `.astype` converts")
    fields = _alike("stack", arrays, dtype)
    if len({tuple(f.type.array_shape) for f in fields}) > 1:
        raise ArgumentError(f"stack: the fields have different shapes: {_listed(fields)}")
    count = len(fields[0].type.array_shape) + 1
    n = numbered(axis, count, Whose(f"a stack of {fields[0].type} fields"))
    return _joined("stack", [_with_axes(f, [n], len(f.field_shape)) for f in fields], n)


def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Field:
    """numpy.vstack."""
    fields = _alike("vstack", tup, dtype)
    return _joined("vstack", [at_least(f, 2) for f in fields], 0)


def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Field:
    """numpy.hstack."""
    fields = [at_least(f, 1) for f in _alike("hstack", tup, dtype)]
    return _joined("hstack", fields, 0 if len(fields[0].type.array_shape) == 1 else 1)


def dstack(tup: Any) -> Field:
    """numpy.dstack; scalars become vectors."""
    return _joined("dstack", [at_least(f, 3) for f in _alike("dstack", tup, None)], 2)


def _with_axes(field: Field, places: Sequence[int], grid: int) -> Field:
    """Return the field with new axes of extent 1: grid axes if they come before these leading axes, else tensor axes."""
    axes = axes_of(field.type)
    for n in places:
        axes.insert(n, Axis(1, n >= grid))
    return reshaped("expand_dims", field, axes)


def at_least(field: Field, count: int) -> Field:
    """Return the field as numpy.atleast_1d and others do; a last axis after the grid's is a tensor axis."""
    axes = len(field.type.array_shape)
    new = {(0, 1): [0], (0, 2): [0, 0], (0, 3): [0, 0, 2], (1, 2): [0], (1, 3): [0, 2], (2, 3): [2]}
    return _with_axes(field, new.get((axes, count), []), 2 if count == 3 else 3)


def _alike(name: str, arg: Any, dtype: Any) -> list[Field]:
    """Return the fields in their common dtype."""
    if isinstance(arg, Field) or not isinstance(arg, Sequence):
        raise SemanticError(f"{name} takes a list or a tuple of Fields, not {described(arg)}")
    fields = [a_field(name, f) for f in arg]
    kinds = {f.dtype for f in fields}
    common = dtype if dtype is not None else kinds.pop() if len(kinds) == 1 else common_dtype(fields)
    return [f.astype(common) for f in fields]


def _listed(fields: Sequence[Field]) -> str:
    return " and ".join(dict.fromkeys(str(f.type) for f in fields))


def _joined(name: str, fields: list[Field], axis: Any) -> Field:
    """Return fields joined along an axis."""
    axes = [axes_of(f.type) for f in fields]
    n = numbered(axis, *of_field(fields[0]))
    if any([*a[:n], *a[n + 1 :]] != [*axes[0][:n], *axes[0][n + 1 :]] or len(a) != len(axes[0]) for a in axes) or (
        any(a[n].tensor != axes[0][n].tensor for a in axes)
    ):
        raise ArgumentError(
            f"{name}: {_listed(fields)} fields do not join along axis {n}: all other axes must be equal, and the fields "
            "must have as many axes of the grid, and as many of the tensor"
        )
    while len(fields) > AT_ONCE:
        fields = [_together(name, fields[i : i + AT_ONCE], n) for i in range(0, len(fields), AT_ONCE)]
    return _together(name, fields, n)


def _together(name: str, fields: list[Field], axis: int) -> Field:
    fields = [f for f in fields if f.type.array_shape[axis]] or fields[:1]
    if len(fields) == 1:
        return fields[0]
    all_axes = [axes_of(f.type) for f in fields]
    ends = list(accumulate(axes[axis].extent for axes in all_axes))
    tensor, names = all_axes[0][axis].tensor, names_of_all(name, fields)
    kind = type_of(name, [*all_axes[0][:axis], Axis(ends[-1], tensor), *all_axes[0][axis + 1 :]], fields[0].dtype)
    out = kind.labelled(names)

    def value(at: Place, read: Reading) -> Any:
        def there(n: int) -> Any:
            start = ends[n - 1] if n else 0
            return read.at(fields[n], [*at[:axis], at[axis] - start, *at[axis + 1 :]])

        return parts_of(at[axis], ends, there, fields[0], read)

    return gathered(name, out, fields, value, axis, not tensor)


def parts_of(at: Any, ends: Sequence[int], value: Callable[[int], Any], like: Field, read: Reading) -> Any:
    """Return the value of the part that a coordinate lies in; only this one is computed."""
    if isinstance(at, int):
        return value(next(n for n, end in enumerate(ends) if at < end))
    result = read.variable(like)
    for n, end in enumerate(ends):
        block = k._else() if n == len(ends) - 1 else (k._elseif if n else k._if)(at < end)
        with block:
            result.assign(value(n))
    return result


# --- taken apart ------------------------------------------------------------------------------------------------------


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Field]:
    """numpy.array_split."""
    field = a_field("array_split", ary)
    n = numbered(axis, *of_field(field))
    extent = field.type.array_shape[n]
    if isinstance(indices_or_sections, (tuple, list, np.ndarray)):
        ends = [whole_number(i, "an index of a split") for i in indices_or_sections]
    else:
        count = whole_number(indices_or_sections, "a number of parts")
        if count < 1:
            raise SemanticError(f"array_split: there is at least one part, not {count}")
        ends = list(accumulate(extent // count + (part < extent % count) for part in range(count)))[:-1]
    before = (slice(None),) * n
    return [sliced(field, (*before, slice(a, b))) for a, b in zip([0, *ends], [*ends, None], strict=True)]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Field]:
    """numpy.split."""
    field = a_field("split", ary)
    extent = field.type.array_shape[numbered(axis, *of_field(field))]
    count = indices_or_sections
    if is_integer(count) and count > 0 and extent % count:
        raise ArgumentError(
            f"split: {extent} points do not make {count} equal parts; `np.array_split` makes unequal ones"
        )
    return array_split(field, count, axis)


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Field:
    """numpy.diff."""
    field = a_field("diff", a)
    at, times = numbered(axis, *of_field(field)), whole_number(n, "`n` of diff")
    if times < 0:
        raise SemanticError(f"diff: the order is 0 or more, not {times}")
    if times == 0:
        return field
    ends = [None if end is None else _end(field, end, at) for end in (prepend, append)]
    parts = [part for part in (ends[0], field, ends[1]) if part is not None]
    field = concatenate(parts, at) if len(parts) > 1 else field
    before, operation = (slice(None),) * at, "not_equal" if field.dtype == "bool" else "subtract"
    for _ in range(times):
        field = services.algebra[operation](field[(*before, slice(1, None))], field[(*before, slice(None, -1))])
    return field


def _end(field: Field, arg: Any, axis: int) -> Field:
    """Return the values before or after a field: a field, or a number along the whole edge."""
    if not isinstance(arg, NUMBERS):
        return a_field("diff", arg)
    axes = axes_of(field.type)
    axes[axis] = Axis(1, axes[axis].tensor, axes[axis].name)
    if isinstance(arg, np.generic):
        dtype: Any = arg.dtype
    else:
        dtype = "float32" if isinstance(arg, float) and field.type.array_dtype.kind not in "fc" else field.dtype
    return filled(type_of("diff", axes, dtype), arg)
