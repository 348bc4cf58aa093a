"""`_tile`: a block of a field in local memory, loaded by all threads of a work-group together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError, described, here
from gpuop.dsl.builtins.access import _readTensor, _readTensorElement
from gpuop.dsl.builtins.conditionals import _if
from gpuop.dsl.builtins.declarations import array, dimension, tensor_type
from gpuop.dsl.builtins.dimensions import coordinates
from gpuop.dsl.builtins.indices import coordinate, linear_place
from gpuop.dsl.builtins.loops import LOOPS, _for
from gpuop.dsl.builtins.shared_memory import _local
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.dsl.recorder.recorder import Recorder, current
from gpuop.dsl.recorder.value import Operand, Value, apply, integer
from gpuop.dsl.recorder.variable import ArrayVariable, in_scope
from gpuop.ir.nodes import AXES, GRID_AXES, Barrier, Expr, Index
from gpuop.ir.target_expressions import Extent, Formula, TargetConst
from gpuop.ir.types import HALF, INT, MOST_GRID, SMALL_TENSOR, Type

BANK = 4  # bytes
MOST_EXPANDED = 8  # most iterations of a loop that loads a tile and is unrolled
WORD = "_tile"
Count = int | Value  # a number that is known in Python, or in the kernel


class Tile(ArrayVariable):
    """A block in local memory: `t[row, column]`, of the block itself from 0 on, and of a halo around it from `-halo` on."""

    __slots__ = ("_extents", "_halo")

    def __init__(self, memory: ArrayVariable, extents: tuple[Extent, ...], halo: tuple[int, ...]) -> None:
        super().__init__(memory._array)
        self._extents, self._halo = extents, halo

    @property
    def shape(self) -> tuple[Extent, ...]:
        """The extents of the block, without the halo."""
        return self._extents

    def _index(self, index: Operand) -> tuple[Expr, ...]:
        in_scope(self._array)
        indices, axes = index if isinstance(index, tuple) else (index,), len(self._extents)
        if len(indices) != axes:
            raise SemanticError(f"tile `{self._array.hint}` is {axes}D: give {axes} indices, not {len(indices)}")
        return _folded(list(map(self._place, indices, self._extents, self._halo)), _around(self._extents, self._halo))

    def _place(self, index: Operand, extent: Extent, halo: int) -> Expr:
        """Position of an index along an axis in memory."""
        low, high = -halo, extent + halo if isinstance(extent, int) else np.inf
        if isinstance(index, (int, np.integer)) and not low <= index < high:
            around = f", and its halo {halo}" if halo else ""
            raise SemanticError(f"index {index} is outside tile `{self._array.hint}`, whose extent is {extent}{around}")
        return integer(index + halo if halo else index, f"an index of tile `{self._array.hint}`")


def _tile(
    field: Operand, *extents: Any, halo: Any = 0, border: Any = "clamp", at: Any = None, element: Operand | None = None
) -> Tile:
    """A block of a field in local memory: `t = _tile(f, [[layers,] rows,] columns)`, and then `t[row, column]`; of any rank.

    All threads of the work-group come here together, load it, and wait; in a loop they wait before that too. It is loaded whole,
    whatever the shapes of block and work-group and wherever the grid ends. Threads read along columns as fast as along rows.

    Args:
        field: a Field with a grid of its own.
        extents: of the block, for each dimension of the field: integers, or constants such as `_localRows`; a target may decide.
        halo: how many points around the block are loaded too, for all axes or each. Their indices go from `-halo` on.
        border: what lies outside of the field, as for `_readTensor`.
        at: the block's first point; by default the number of the work-group along each axis times the extent of the block.
        element: which element of a big tensor is loaded; tensors of up to 4 elements are loaded whole.

    Raises:
        SemanticError: a field without a grid, not as many extents as it has dimensions, a big tensor without `element=`; when the
            body ends, `at=` or `element=` that may differ between threads of a work-group, or a condition around it that may.
    """
    recorder, loc = _checked(field, extents, element), here()
    sizes = tuple(dimension(recorder, n) for n in extents)
    halos = _halos(halo, len(sizes))
    first = _first(recorder, field, sizes, at)
    which = () if element is None else (integer(element, f"the element of {WORD}"),)
    recorder.uniform += [(place, loc) for place in (*first, *which)]
    whole = _around(sizes, halos)
    memory = _memory(tensor_type(field, element is None), whole)
    if any(scope.kind in LOOPS for scope in recorder.scopes):
        recorder.emit(Barrier("local", loc, WORD))  # threads may still read the tile of the previous iteration
    read = _readTensor if element is None else _readTensorElement
    origin = [Value(at) - k if k else Value(at) for at, k in zip(first, halos, strict=True)]

    def load(place: list[Value]) -> None:
        point = (a + b for a, b in zip(origin, place, strict=True))
        memory[_in_memory(place, whole)] = read(field, *point, *map(Value, which), border=border)

    recorder.steps(lambda: _each(recorder, whole, load))
    recorder.emit(Barrier("local", loc, WORD))
    return Tile(memory, sizes, halos)


# --- arguments ------------------------------------------------------------------------------------------------------


def _checked(field: Operand, extents: tuple[Any, ...], element: Operand | None) -> Recorder:
    recorder = current(f"`{WORD}`")
    if not isinstance(field, FieldLike):
        raise SemanticError(
            f"`{WORD}` takes a Field, not {described(field)}; wrap arrays, as in `gp.ScalarField(array)`"
        )
    axes = len(field.type.field_shape)
    if not axes:
        raise SemanticError(f"`{WORD}` takes a Field with a grid, and this one is 0D; read it with `_readTensor`")
    if len(extents) != axes:
        example = "1, " * max(axes - MOST_GRID, 0) + ", ".join(f"{axis}s" for axis in GRID_AXES[max(3 - axes, 0) :])
        raise SemanticError(f"the field is {axes}D: write `{WORD}(f, {example})`, not {len(extents)} extents")
    if element is None and field.type.planes > SMALL_TENSOR:
        raise SemanticError(
            f"the field has big tensors ({field.type.planes} elements), of which `{WORD}` loads one: name it by `element=`"
        )
    return recorder


def _halos(halo: Any, axes: int) -> tuple[int, ...]:
    each = halo if isinstance(halo, (tuple, list)) else (halo,) * axes
    numbers = all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n >= 0 for n in each)
    if len(each) != axes or not numbers:
        raise SemanticError(
            f"`halo=` is how many points lie around a block, one number or {axes}, in Python; not {halo!r}"
        )
    return tuple(map(int, each))


def _first(recorder: Recorder, field: FieldLike, sizes: tuple[Extent, ...], at: Any) -> tuple[Expr, ...]:
    """The first point of the block."""
    names = coordinates(field.type)
    if at is None:
        threads = len(recorder.domain.shape if recorder.grid is None else recorder.grid)
        if threads != len(sizes):
            raise SemanticError(
                f"the field is {len(sizes)}D and the threads {threads}D: say where the block begins by `at=({names})`"
            )
        if threads > MOST_GRID:
            return _of_layers(recorder, sizes, names)
        axes = GRID_AXES[3 - len(sizes) :]
        groups = (Value(Index("group", axis)) * _count(n) for axis, n in zip(axes, sizes, strict=True))
        return recorder.steps(lambda: tuple(value.expr for value in groups))
    point = tuple(at) if isinstance(at, Iterable) and not isinstance(at, (str, Value)) else (at,)
    if len(point) != len(sizes):
        raise SemanticError(f"`at=` is the first point of a block, ({names}), not {len(point)} coordinates")
    return tuple(integer(i, f"a coordinate of {WORD}") for i in point)


def _of_layers(recorder: Recorder, sizes: tuple[Extent, ...], names: str) -> tuple[Expr, ...]:
    """The first point of a block where the first dimensions are one axis of the threads: a point along each of these."""
    first = len(sizes) - MOST_GRID + 1
    if recorder.grid is None or recorder.work_group[0] != 1 or any(n != 1 for n in sizes[:first]):
        raise SemanticError(
            f"a work-group is a box along the last 2 of {len(sizes)} dimensions: give the block 1 point along the others, as "
            f"`{WORD}(f, {'1, ' * first}16, 16)`, or say where it begins by `at=({names})`"
        )
    layer, leading = Index("group", "layer"), recorder.grid[:first]
    groups = (Value(Index("group", axis)) * _count(n) for axis, n in zip(GRID_AXES[1:], sizes[first:], strict=True))
    planes = recorder.steps(lambda: tuple(value.expr for value in groups))
    return (*(coordinate(recorder, layer, leading, k) for k in range(first)), *planes)


# --- memory ---------------------------------------------------------------------------------------------------------


def _more(n: Extent, more: int) -> Extent:
    if isinstance(n, int) or not more:
        return n + more if isinstance(n, int) else n
    return Formula("add", (n, more), here())


def _around(extents: tuple[Extent, ...], halo: tuple[int, ...]) -> tuple[Extent, ...]:
    """The extents with the halo."""
    return tuple(_more(n, 2 * k) for n, k in zip(extents, halo, strict=True))


def _folded(place: list[Expr], whole: tuple[Extent, ...]) -> tuple[Expr, ...]:
    """A place in memory, where the first dimensions are one axis."""
    first = len(place) - MOST_GRID + 1
    if first < 2:
        return tuple(place)
    recorder, extents = current(f"`{WORD}`"), [n if isinstance(n, int) else TargetConst(n, Type(INT)) for n in whole]
    return (recorder.steps(lambda: linear_place(recorder.build, place[:first], extents[:first])), *place[first:])


def _in_memory(place: list[Value], whole: tuple[Extent, ...]) -> tuple[Value, ...]:
    return tuple(map(Value, _folded([n.expr for n in place], whole)))


def _memory(kind: Type, whole: tuple[Extent, ...]) -> ArrayVariable:
    """Local memory whose rows are an odd number of banks apart, so that threads that read along a column need different ones."""
    bits = 32 if kind.dtype is HALF else max(kind.dtype.bits, 8)
    width, unit = whole[-1], max(BANK * 8 // (bits * kind.lanes), 1)
    while len(whole) > MOST_GRID:
        a, b, *more = whole
        whole = (a * b if isinstance(a, int) and isinstance(b, int) else Formula("mul", (a, b), here()), *more)
    if len(whole) > 1:
        width = unit * (-(-width // unit) | 1) if isinstance(width, int) else _more(width, unit)
    memory: ArrayVariable = _local(array(kind, (*whole[:-1], width)))
    return memory


# --- threads --------------------------------------------------------------------------------------------------------


def _each(recorder: Recorder, dims: tuple[Extent, ...], load: Callable[[list[Value]], None]) -> tuple[Expr, ...]:
    """Have the threads of the work-group do something for each place among dimensions."""
    number, threads = _there(recorder)
    extents = [_count(n) for n in dims]
    total: Count = math.prod(extents)

    def place(at: Value) -> None:
        along = [n if isinstance(n, int) else n.expr for n in extents]
        load([Value(coordinate(recorder, at.expr, along, k, natural=True)) for k in range(len(along))])

    if not isinstance(total, int) or not isinstance(threads, int):
        with _for(number, total, threads) as at:
            place(at)
        return ()
    turns = -(-total // threads)
    with _for(turns, unroll=turns <= MOST_EXPANDED) as turn:
        at = turn * threads + number
        with _if(at < total) if total % threads else nullcontext():
            place(at)
    return ()


def _there(recorder: Recorder) -> tuple[Count, Count]:
    """The number of a thread among those of its work-group that there are, and how many these are."""
    number: Count = 0
    threads: Count = 1
    for axis in recorder.domain.axes:
        have = _have(recorder, axis)
        own = Value(Index("local", axis))
        number, threads = number * have + own if isinstance(number, Value) else own, threads * have
    return number, threads


def _have(recorder: Recorder, axis: str) -> Count:
    """Number of threads of a work-group along an axis; tail threads at the edge of the grid may not run."""
    size, extent = _count(recorder.work_group[AXES.index(axis)]), recorder.domain.extent(axis)
    if recorder.whole or (isinstance(size, int) and extent % size == 0):
        return size
    return apply("min", size, extent - Value(Index("group", axis)) * size)


def _count(n: Extent) -> Count:
    return n if isinstance(n, int) else Value(TargetConst(n, Type(INT)))
