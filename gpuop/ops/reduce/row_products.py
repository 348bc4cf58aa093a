"""NumPy products of rows: sums of products over axes, and convolutions in one dimension."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError, SemanticError
from gpuop.dsl.fields import services
from gpuop.dsl.fields.field import Field
from gpuop.ir.dtype_names import COMPLEX_DTYPES, HALVES, values_dtype, wide_float
from gpuop.ir.types import FieldType
from gpuop.ops.elementwise.algebra import apply, astype, common_dtype
from gpuop.ops.layout.axes import Axis, numbered, of_field
from gpuop.ops.layout.gather import Place, Reading, gathered
from gpuop.ops.layout.layouts import permuted, ravel, reshaped
from gpuop.ops.layout.reorder import flip
from gpuop.ops.reduce.reductions import reduced

TILED = 32  # results with so many rows and columns are matrix products


def _operands(name: str, *args: Any) -> list[Field]:
    """Return fields in their common dtype, with all axes in the grid."""
    fields = [g if isinstance(g, Field) else Field(g) for g in args]
    dtype = common_dtype(fields)
    return [astype(reshaped(name, f, [Axis(n) for n in f.shape]), dtype) for f in fields]


def _times(a: Field, b: Field) -> Field:
    return apply("logical_and" if a.dtype == "bool" else "multiply", a, b)


def _conjugate(field: Field) -> Field:
    return apply("conjugate", field) if field.dtype in COMPLEX_DTYPES else field


def _summed(a: Field, b: Field, axes: tuple[int, ...]) -> Field:
    """Return the sum of products over axes, in the dtype of the operands, in which integers wrap."""
    dtype = a.dtype
    if dtype == "bool":
        return reduced("max", _times(a, b), axes)
    result = reduced("sum", _times(astype(a, wide_float(dtype)), b), axes)
    bits = values_dtype(dtype).itemsize * 8
    if values_dtype(dtype).kind in "iu" and bits < 64:
        half = 1 << bits - 1 if values_dtype(dtype).kind == "i" else 0
        result = apply("subtract", apply("bitwise_and", apply("add", result, half), (1 << bits) - 1), half)
    return astype(result, dtype)


def tensordot(a: Any, b: Any, axes: Any = 2) -> Field:
    """numpy.tensordot: all axes of the result are grid axes."""
    one, other = _operands("tensordot", a, b)
    if isinstance(axes, (int, np.integer)):
        mine, theirs = list(range(one.ndim - int(axes), one.ndim)), list(range(int(axes)))
    else:
        mine, theirs = ([*n] if isinstance(n, (tuple, list)) else [n] for n in axes)
    mine = [numbered(n, *of_field(one)) for n in mine]
    theirs = [numbered(n, *of_field(other)) for n in theirs]
    if [one.shape[n] for n in mine] != [other.shape[n] for n in theirs]:
        raise SemanticError(
            f"tensordot: axes {tuple(mine)} of a {one.type} field and {tuple(theirs)} of a {other.type} one have different extents"
        )
    return _contracted(one, other, mine, theirs)


def _contracted(
    one: Field,
    other: Field,
    mine: Sequence[int],
    theirs: Sequence[int],
    combine: Callable[[Field, Field], Field] = _times,
) -> Field:
    """Return the free axes of both, then the summed ones, which come last in both unless they are large matrices."""
    free = [[n for n in range(f.ndim) if n not in gone] for f, gone in ((one, mine), (other, theirs))]
    if mine and min(math.prod(f.shape[n] for n in rest) for f, rest in zip((one, other), free, strict=True)) >= TILED:
        return _of_matrices(one, other, [*free[0], *mine], [*theirs, *free[1]], len(mine))
    a, b = permuted("transpose", one, [*free[0], *mine]), permuted("transpose", other, [*free[1], *theirs])
    first, last = len(free[0]), len(free[1])
    new = [Axis(1)] * last
    a = reshaped("tensordot", a, [*map(Axis, a.shape[:first]), *new, *map(Axis, a.shape[first:])])
    b = reshaped("tensordot", b, [*[Axis(1)] * first, *map(Axis, b.shape)])
    if not mine:
        return combine(a, b)
    return _summed(a, b, tuple(range(first + last, first + last + len(mine))))


def _of_matrices(one: Field, other: Field, mine: Sequence[int], theirs: Sequence[int], summed: int) -> Field:
    """Compute sums of products as a matrix product: of fields with axes in these orders, the last ones summed."""
    a, b = permuted("transpose", one, list(mine)), permuted("transpose", other, list(theirs))
    rows, columns = a.shape[: a.ndim - summed], b.shape[summed:]
    inner = math.prod(b.shape[:summed])
    a = reshaped("tensordot", a, [Axis(math.prod(rows)), Axis(inner)])
    b = reshaped("tensordot", b, [Axis(inner), Axis(math.prod(columns))])
    return reshaped("tensordot", services.algebra["matmul"](a, b), [Axis(n) for n in (*rows, *columns)])


def dot(a: Any, b: Any, out: Any = None) -> Field:
    """numpy.dot of rows and numbers."""
    one, other = _operands("dot", a, b)
    if out is not None:
        raise SemanticError("dot: there is no `out`, a Field's values do not change")
    if not one.ndim or not other.ndim:
        return _times(one, other)
    return _contracted(one, other, *_paired("dot", one, other, max(other.ndim - 2, 0)))


def inner(a: Any, b: Any, /) -> Field:
    """numpy.inner: over the last axes."""
    one, other = _operands("inner", a, b)
    if not one.ndim or not other.ndim:
        return _times(one, other)
    return _contracted(one, other, *_paired("inner", one, other, other.ndim - 1))


def _paired(name: str, one: Field, other: Field, axis: int) -> tuple[list[int], list[int]]:
    if one.shape[-1] != other.shape[axis]:
        raise SemanticError(
            f"{name}: the last axis of a {one.type} field has {one.shape[-1]} values, and that of a "
            f"{other.type} one {other.shape[axis]}"
        )
    return [one.ndim - 1], [axis]


def vdot(a: Any, b: Any, /) -> Field:
    """numpy.vdot: over all values in row-major order, the first operand conjugated."""
    one, other = (ravel(f) for f in _operands("vdot", a, b))
    if one.shape != other.shape:
        raise SemanticError(f"vdot: {one.size} values and {other.size}: give as many of both")
    return _summed(_conjugate(one), other, (0,))


def outer(a: Any, b: Any, out: Any = None) -> Field:
    """numpy.outer: each value of one with each of the other."""
    if out is not None:
        raise SemanticError("outer: there is no `out`, a Field's values do not change")
    one, other = (ravel(f) for f in _operands("outer", a, b))
    return _contracted(one, other, [], [])


def outer_of(name: str, a: Any, b: Any) -> Field:
    """Apply a function to each value of one and each of the other, as the method `outer` of ufuncs."""
    one, other = _operands(f"{name}.outer", a, b)
    return _contracted(one, other, [], [], functools.partial(apply, name))


# --- convolutions ---------------------------------------------------------------------------------------------------------


def convolve(a: Any, v: Any, mode: str = "full") -> Field:
    """numpy.convolve."""
    one, other = _rows("convolve", a, v)
    longer, shorter = (one, other) if one.size >= other.size else (other, one)
    return _convolved("convolve", longer, shorter, mode, (shorter.size - 1) // 2)


def correlate(a: Any, v: Any, mode: str = "valid") -> Field:
    """numpy.correlate."""
    one, other = _operands("correlate", a, v)
    if not (one.ndim and other.ndim):
        raise ArgumentError("correlate takes rows, not numbers: `np.convolve` takes these, or give rows of one value")
    one, other = _rows("correlate", one, other)
    turned = flip(_conjugate(other))
    if one.size >= other.size:
        return _convolved("correlate", one, turned, mode, (other.size - 1) // 2)
    return _convolved("correlate", turned, one, mode, one.size // 2)


def _rows(name: str, *args: Any) -> list[Field]:
    rows = [reshaped(name, f, [Axis(1)]) if not f.ndim else f for f in _operands(name, *args)]
    for row in rows:
        if row.ndim != 1 or not row.size:
            raise SemanticError(
                f"{name} takes rows that have values, not a {row.type} field; `gp.ndimage.{name}` takes grids"
            )
    return rows


def _convolved(name: str, row: Field, taps: Field, mode: str, before: int) -> Field:
    """Return sums of products, in the order of the row; `before` is the part that "same" drops before its first value."""
    spans = {
        "full": (0, row.size + taps.size - 1),
        "same": (before, row.size),
        "valid": (taps.size - 1, row.size - taps.size + 1),
    }
    if mode not in spans:
        raise SemanticError(f"{name}: `mode` is 'full', 'same' or 'valid', not {mode!r}")
    start, count = spans[mode]
    dtype, length = row.dtype, taps.size

    def value(at: Place, read: Reading) -> Any:
        last = at[0] + start
        total = k._tensorVar(row) if dtype in COMPLEX_DTYPES else k._var(k._convert(0, wide_float(dtype)))
        with k._for(length) as n:
            x, y = k._readTensor(row, last - n, border="zero"), k._readTensor(taps, n, border="unchecked")
            total.assign(total | (x & y) if dtype == "bool" else total + _product(x, y, dtype))
        return total

    return gathered(name, FieldType(count, (), dtype), [row, taps], value, (name, start), True)


def _product(x: Any, y: Any, dtype: str) -> Any:
    if dtype in COMPLEX_DTYPES:
        return k._complexMul(x, y)
    return k._convert_float(x) * k._convert_float(y) if dtype in HALVES else x * y
