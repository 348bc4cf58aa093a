"""NumPy functions that search in sorted values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import SemanticError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import INTEGERS, host_array, numbers_outside
from gpuop.dsl.fields.from_arrays import Array as Numbers
from gpuop.dsl.recorder.value import NUMBERS
from gpuop.ir.dtype_names import COMPLEX_DTYPES, FLOATS, joined_dtype
from gpuop.ops.create.computed_fields import filled
from gpuop.ops.elementwise.algebra import apply, astype, common_dtype
from gpuop.ops.elementwise.operands import wide_dtype
from gpuop.ops.layout.gather import Place, Reading, gathered
from gpuop.ops.layout.reorder import take
from gpuop.ops.select.thresholds import least


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Field:
    """numpy.searchsorted."""
    if side not in ("left", "right"):
        raise SemanticError(f"searchsorted: a side is 'left' or 'right', not {side!r}")
    if sorter is not None:
        a = take(a if isinstance(a, Field) else Field(a), sorter, mode="clip" if isinstance(sorter, Field) else "raise")
    if isinstance(a, Field):
        _check_row("searchsorted", a.type.array_shape, a.tensor_shape)
        return _among(a, v, side)
    edges = edges_of("searchsorted", a)
    return _beyond("searchsorted", edges, ordered("searchsorted", v), side)


def digitize(x: Any, bins: Any, right: bool = False) -> Field:
    """numpy.digitize."""
    side = "left" if right else "right"
    if isinstance(bins, Field):
        _check_row("digitize", bins.type.array_shape, bins.tensor_shape)
        return _among(bins, x, side)
    edges, values = edges_of("digitize", bins), ordered("digitize", x)
    if np.all(edges[:-1] <= edges[1:]):
        return _beyond("digitize", edges, values, side)
    if not np.all(edges[:-1] >= edges[1:]):
        raise SemanticError("digitize: bins increase, or decrease, from each to the next")
    return apply("subtract", edges.size, _beyond("digitize", edges[::-1], values, side))


# --- what is given ----------------------------------------------------------------------------------------------------


def _check_row(name: str, shape: tuple[int, ...], tensor: tuple[int, ...] = ()) -> None:
    if len(shape) != 1 or tensor:
        raise SemanticError(f"{name}: the values in order are a row, not {'×'.join(map(str, shape)) or 'a number'}")


def edges_of(name: str, arg: Any) -> Numbers:
    """Return known edges as a row of numbers."""
    edges = np.asarray(arg)
    if edges.dtype.kind not in "biuf":
        raise SemanticError(f"{name}: the values in order are real numbers, not {edges.dtype}")
    _check_row(name, edges.shape)
    return edges


def ordered(name: str, arg: Any) -> Field:
    """Return a field in an ordered dtype, as kernels compare it; bools become bytes."""
    field = arg if isinstance(arg, Field) else Field(arg)
    if field.dtype in COMPLEX_DTYPES:
        raise SemanticError(f"{name} does not take {field.dtype} fields: complex numbers have no order")
    return astype(field, {"bool": "uint8", "unorm8": "float32"}.get(str(field.dtype), field.dtype))


# --- searches ---------------------------------------------------------------------------------------------------------


def count_passing(count: int, passes: Callable[[Any], Any]) -> Any:
    """Return the number of leading places that pass a test, by binary search."""
    at = k._var(0)
    for step in (1 << n for n in reversed(range(count.bit_length()))):
        ahead = k._var(at + step)
        whole = count & (count + 1) == 0  # then no step goes past the end
        there = passes((ahead if whole else k._min(ahead, count)) - 1)
        at.assign(k._where(there if whole else there & (ahead <= count), ahead, at))
    return at


def _beyond(name: str, edges: Numbers, values: Field, side: str) -> Field:
    """Return the number of known edges at or below each value."""
    reached = least(edges, np.dtype(values.type.array_dtype), side == "left")
    floats = reached.dtype.kind == "f"
    return _searched(name, Field(reached), values, lambda e, v: (e <= v) | (v != v) if floats else e <= v, "known")


def _among(a: Field, v: Any, side: str) -> Field:
    """Return the number of a field's values at or below each of others, in a dtype that holds both."""
    if not isinstance(v, Field) and (isinstance(v, NUMBERS) or not isinstance(v, np.ndarray)):
        array = host_array(v, wide_dtype(v, [a]))
        exact = array.dtype.kind in "iu" and a.dtype in INTEGERS and numbers_outside(array, str(a.dtype)).size
        v = Field(
            array if exact or array.dtype.kind == "c" else array.astype(common_dtype((a, array.dtype.type(0).item())))
        )
    a, v = ordered("searchsorted", a), ordered("searchsorted", v)
    common = joined_dtype(a.dtype, v.dtype)
    a, v = astype(a, common), astype(v, common)
    floats = common in FLOATS

    def passes(edge: Any, value: Any) -> Any:
        if side == "right":
            return (edge <= value) | (value != value) if floats else edge <= value
        return (edge < value) | ((value != value) & (edge == edge)) if floats else edge < value

    return _searched("searchsorted", a, v, passes, side)


def _searched(name: str, row: Field, values: Field, passes: Callable[[Any, Any], Any], key: str) -> Field:
    out, count = values.type.replace(dtype="int64"), row.field_shape.points
    if not count or not values.field_shape.points:
        return filled(out, 0)

    def place(at: Place, read: Reading) -> Any:
        value = read.at(values, at)
        return count_passing(count, lambda n: passes(k._readTensor(row, n, border="unchecked"), value))

    return gathered(name, out, [values, row], place, key)
