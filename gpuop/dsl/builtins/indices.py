"""Linear indices: of threads, and of points among any dimensions (ravel and unravel)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.dsl.builtins.declarations import launch_constant
from gpuop.dsl.builtins.shared_memory import shown
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.dsl.recorder.recorder import Recorder, current
from gpuop.dsl.recorder.value import Operand, Value, integer, literal_atom
from gpuop.ir.build import Builder, constant
from gpuop.ir.dims import Dims
from gpuop.ir.expansions.table import expand
from gpuop.ir.nodes import Apply, Cast, Const, Expr, Index, Ref, Var
from gpuop.ir.types import INT, LONG, DType, FieldType, Type

EXTENTS = {"global": "global_size", "local": "local_size", "group": "group_count"}  # extents that positions count
Extents = Sequence[int | Expr]


def _index(of: Any = "global") -> Value:
    """The linear index of this thread, counted as memory is: columns fastest, then rows, then layers.

    Args:
        of: "global" among the threads of the grid, "local" in its work-group, "group" of its work-group among all of them.

    Returns:
        An int, and a long where the grid has more than 2³¹ threads. Tail threads, which only `whole_groups` lets run, have
        indices that others have too; threads along a tensor axis have that of their point.

    Raises:
        SemanticError: `of` is another word.
    """
    recorder = current("`_index`")
    if not isinstance(of, str) or of not in EXTENTS:
        raise SemanticError(f'`_index` is "global", "local" or "group", not {_shown_word(of)}')
    dtype = INT if INT.holds(recorder.domain.shape.points - 1) else LONG
    return Value(_linear(recorder, [Index(of, axis) for axis in recorder.domain.axes], dtype))


def _ravel(place: Any, dims: Any) -> Value:
    """The linear index of a position among dimensions, the last one fastest: `_ravel((b, y, x), (8, 3, 11))`.

    Args:
        place: an integer for each dimension, each inside its own; the first one may be outside.
        dims: extents in the order in which they count, integers of Python or the kernel; or a Shape or Dims; or a FieldType
            or a Field, which stand for their grid.

    Returns:
        An int, and a long where the dimensions hold more than 2³¹ places, or a coordinate is one.

    Raises:
        SemanticError: not as many integers as dimensions, something else than integers, or an extent below 1.
    """
    recorder = current("`_ravel`")
    extents = _extents(recorder, dims)
    if isinstance(place, (Value, str)) or not isinstance(place, Iterable):
        raise SemanticError(
            f"`_ravel` takes a coordinate for each dimension, as `_ravel((row, column), dims)`, not {shown(place)}"
        )
    at = [_integer(i, "a coordinate") for i in place]
    if len(at) != len(extents):
        raise SemanticError(f"`_ravel` takes a coordinate for each of {len(extents)} dimensions, not {len(at)}")
    product = math.prod(n for n in extents if isinstance(n, int))
    wide = not INT.holds(product - 1) or any(expr.type.dtype.bits > INT.bits for expr in at)
    return Value(recorder.steps(lambda: _sum_of(recorder.build, at, extents, LONG if wide else INT)))


def _unravel(at: Operand, dims: Any) -> tuple[Value, ...]:
    """The place among dimensions that a linear index counts, as `_ravel` does: `b, y, x = _unravel(at, (8, 3, 11))`.

    Where ranges show that nothing can be outside, there is no more than a division and a remainder for each dimension, and no
    remainder of the first one; composing an index and taking it apart again costs nothing.

    Args:
        at: a scalar integer.
        dims: extents in the order in which they count, as for `_ravel`.

    Returns:
        An integer for each dimension: inside its own but for the first one, which is outside where the index is, so that it
        can be tested there, and that writes of such places are dropped.

    Raises:
        SemanticError: something else than integers, or an extent below 1.
    """
    recorder = current("`_unravel`")
    index, extents = _integer(at, "an index to `_unravel`"), _extents(recorder, dims)
    parts, inner = _positions(recorder, index), list[Expr]()
    natural = bool(parts) or index.type.kind == "u"
    while len(parts) > 1 and len(extents) > 1 and _counts(recorder, parts[-1], extents[-1]):
        inner.insert(0, parts.pop())
        extents.pop()
    if inner:
        recorder.idle = True  # the operands of the index may have no other use
        index = _linear(recorder, parts, index.type.dtype)
    places = [coordinate(recorder, index, extents, k, natural) for k in range(len(extents))]
    return tuple(map(Value, (*places, *inner)))


# --- arithmetic -----------------------------------------------------------------------------------------------------


def _linear(recorder: Recorder, positions: Sequence[Index], dtype: DType) -> Expr:
    """The index of a thread, or of a group, along neighbouring axes."""
    return recorder.steps(lambda: _sum_of(recorder.build, positions, [_extent_of(p) for p in positions], dtype))


def _sum_of(b: Builder, at: Sequence[Expr], extents: Extents, dtype: DType) -> Expr:
    """The linear index of a place."""
    places = [b.cast(i, Type(dtype), saturate=False) for i in at]
    total = places[0] if places else constant(0, dtype)
    for i, n in zip(places[1:], extents[1:], strict=True):
        moved = total if n == 1 else b.apply("mul", total, n)
        total = moved if i == constant(0, dtype) else b.apply("add", moved, i)
    return total


def linear_place(b: Builder, at: Sequence[Expr], extents: Extents) -> Expr:
    """The linear index of a place, an int."""
    return _sum_of(b, at, extents, INT)


def coordinate(recorder: Recorder, index: Expr, extents: Extents, k: int, natural: bool = True) -> Expr:
    """The place of an index along one of the dimensions; `natural` if the index is not below 0."""
    return recorder.steps(lambda: _part_of(recorder.build, index, extents, k, natural))


def _part_of(b: Builder, index: Expr, extents: Extents, k: int, natural: bool) -> Expr:
    if k > 0 and extents[k] == 1:
        return constant(0, index.type.dtype)
    stride: int | Expr = math.prod(n for n in extents[k + 1 :] if isinstance(n, int))
    if not index.type.dtype.holds(max(n for n in (stride, *extents) if isinstance(n, int))):
        index = b.cast(index, Type(LONG))
    for n in extents[k + 1 :]:
        if not isinstance(n, int):
            stride = n if stride == 1 else b.apply("mul", n, stride)
    if stride != 1:
        by = constant(stride, index.type.dtype) if isinstance(stride, int) else stride
        index = b.apply("div", index, by) if natural else expand(b, "floordiv", index, by)
    if k == 0:
        return index
    rest = b.apply("mod", index, extents[k])
    return rest if natural else b.apply("choose", b.apply("lt", rest, 0), b.apply("add", rest, extents[k]), rest)


# --- arguments ------------------------------------------------------------------------------------------------------


def _shown_word(what: Any) -> str:
    return repr(what) if isinstance(what, str) else shown(what)


def _integer(value: Operand, what: str) -> Expr:
    """A scalar of an integer type that is not narrower than int."""
    expr = literal_atom(value)
    is_wide = expr.type.integer and expr.type.lanes == 1 and expr.type.dtype.bits >= INT.bits
    return expr if is_wide else integer(value, what)


def _extents(recorder: Recorder, dims: Any) -> list[int | Expr]:
    """Extents as Python integers where known; those of an empty grid may be 0."""
    shape = dims.type if isinstance(dims, FieldLike) else dims
    grid = shape.field_shape if isinstance(shape, FieldType) else shape.shape if isinstance(shape, Dims) else shape
    if isinstance(grid, str) or not isinstance(grid, (Iterable, int, np.integer)) or isinstance(grid, Value):
        raise SemanticError(f"dimensions are a Shape or a tuple of extents, not {_shown_word(dims)}")
    extents: list[int | Expr] = []
    for n in grid if isinstance(grid, Iterable) else (grid,):
        expr = _integer(n, "an extent")
        if isinstance(expr, Const) and expr.value < (1 if recorder.domain.shape.points else 0):
            raise SemanticError(f"an extent is 1 or more, not {expr.value}: there is no place among these dimensions")
        extents.append(int(expr.value) if isinstance(expr, Const) else expr)
    return extents


def _extent_of(position: Index) -> Index:
    return Index(EXTENTS[position.kind], position.axis)


def _counts(recorder: Recorder, position: Index, extent: int | Expr) -> bool:
    """True if an extent is that of a position."""
    whose = _extent_of(position)
    return extent in (whose, launch_constant(recorder, whose))


def _positions(recorder: Recorder, expr: Expr) -> list[Index]:
    """The neighbouring axes, outermost first, whose positions an index was made of; none where it is something else."""
    source = recorder.values.get(expr.var) if isinstance(expr, Ref) else expr
    match source:
        case Index(kind=kind, offset=0) if kind in EXTENTS:
            return [source]
        case Cast(arg=arg, type=type_) if type_ == Type(LONG):
            return _positions(recorder, arg)
        case Apply(op="add", args=(Ref(var=product), Index(offset=0) as last)) if last.kind in EXTENTS:
            outer, size = _factors(recorder, product)
            axes = recorder.domain.axes
            following = (
                outer and outer[-1].kind == last.kind and axes.index(outer[-1].axis) + 1 == axes.index(last.axis)
            )
            return [*outer, last] if following and size == _extent_of(last) else []
    return []


def _factors(recorder: Recorder, product: Var) -> tuple[list[Index], Expr | None]:
    """The positions that a product multiplies, and by what."""
    match recorder.values.get(product):
        case Apply(op="mul", args=(head, size)):
            return _positions(recorder, head), size
    return [], None
