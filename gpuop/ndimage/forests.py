"""Which points of a mask are connected, by trees of their indices that grow together.

Each point of the mask knows another point of its component, or itself if it is the first one in memory's order. Points of a row
that follow one another know the first of them from the start. Then trees of points that are neighbours in other rows are joined,
where no neighbour in the row does that too: a root is put below the lesser one by comparing and swapping, so threads may join any
trees at any time (D. Playne, K. Hawick, A new algorithm for parallel connected-component labelling on GPUs, IEEE TPDS 29(6), 2018;
J. Jaiganesh, M. Burtscher, A high-performance connected components implementation for GPUs, HPDC 2018). A component's root is its
first point in whatever order that happens, so results are equal on every device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.decorator import operator
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.types import FieldType
from gpuop.ops.gather import apart
from gpuop.ops.layouts import ravel
from gpuop.ops.reducers import reducer_of
from gpuop.ops.scan_kernels import along_grid
from gpuop.ops.sort_tiles import single

OUTSIDE = -1  # what points know that are not in the mask
SEGMENT = 8192  # points of a row that one thread, or one work-group, looks at
CHUNK = 4096  # points among which one counts roots
LANES = 256  # threads of GPUs that do so together
Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Links:
    """Which neighbours a structure connects: those in the row, and some in each of some rows before it.

    Attributes:
        shape: of the grid.
        in_row: whether neighbours in the row are connected.
        before: for rows before it the offset along all axes but the last, and the offsets along that.
    """

    shape: tuple[int, ...]
    in_row: bool
    before: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]

    @property
    def columns(self) -> int:
        return self.shape[-1]

    @property
    def rows(self) -> int:
        return math.prod(self.shape[:-1])

    @property
    def segments(self) -> int:
        """How many a row has."""
        return -(-self.columns // SEGMENT)


def links_of(shape: Sequence[int], structure: Numbers) -> Links:
    """The links of a structure of 3 points along each axis, the same on both sides of its middle."""
    offsets = [tuple(int(i) - 1 for i in at) for at in np.argwhere(structure)]
    rows = sorted({o[:-1] for o in offsets if o[:-1] < (0,) * (len(shape) - 1)})
    before = tuple((row, tuple(o[-1] for o in offsets if o[:-1] == row)) for row in rows)
    return Links(tuple(shape), (*(0,) * (len(shape) - 1), 1) in offsets, before)


def forest(inside: Field, links: Links) -> Field:
    """For each point, counted in memory's order, one of its component that comes before it, if it is not the first; or OUTSIDE.

    Args:
        inside: what is not 0 is in the mask.
    """
    runs = _runs(ravel(inside), links)
    return _joined(runs, links) if links.before or (links.in_row and links.segments > 1) else runs


def root(parents: Field, start: Any) -> Any:
    """A variable: the index of the root above a point."""
    at = k._var(start)
    above = k._var(k._readTensor(parents, at, border="unchecked"))
    with k._while(lambda: above != at):
        at.assign(above)
        above.assign(k._readTensor(parents, at, border="unchecked"))
    return at


def _runs(inside: Field, links: Links) -> Field:
    """The first point of each run of points in a segment of a row; threads side by side look at a segment."""
    columns = links.columns

    def is_inside(row: Any, column: Any) -> Any:
        return k._readTensor(inside, row * columns + column, border="unchecked") != 0

    def alone() -> None:
        row, begin, first = k._row, k._column * SEGMENT, k._var(OUTSIDE)
        with k._for(begin, k._min(begin + SEGMENT, columns)) as column:
            number = row * columns + column
            begun = k._where(first < 0, number, first) if links.in_row else number
            first.assign(k._where(is_inside(row, column), begun, OUTSIDE))
            k._writeTensor(k._out0, first, number)

    def together() -> None:
        row, begin = k._row, k._groupColumn * SEGMENT
        last = k._var(0)  # twice the column of the last change, and 1 where a run begins
        with k._for(0, min(SEGMENT, columns), LANES) as done:
            column = begin + done + k._localColumn
            here = k._min(column, columns - 1)
            is_in = is_inside(row, here)
            goes_on = is_in & links.in_row & (here > begin) & is_inside(row, k._max(here - 1, 0))
            change = k._where(goes_on, 0, 2 * here + k._where(is_in, 1, 0))
            latest = k._max(last, k._scanGroup(change, "max", over="column"))
            with k._if(column < columns):
                first = k._where((latest & 1) == 1, row * columns + (latest >> 1), OUTSIDE)
                k._writeTensor(k._out0, first, row * columns + column)
            last.assign(k._broadcastGroup(latest, LANES - 1, over="column"))

    def body() -> None:
        k._globalThreads(links.rows, links.segments * _lanes())
        k._localThreads(1, _lanes())
        with k._codegenIf(single()):
            alone()
        with k._codegenElse():
            together()

    out = FieldType(links.rows * columns, (), "int32")
    return library_call("runs", (out,), [inside], body, links, whole=True)[0]


def _lanes() -> Any:
    return 1 + (LANES - 1) * ~single()


@operator(inout="parents")
def _joined(parents: Any, links: Links) -> None:
    """Join the trees of neighbours that are in other rows, or in another segment of the row."""
    k._globalThreads(links.rows, links.segments * _lanes())
    k._localThreads(1, _lanes())
    lead, begin = apart(k._row, links.shape[:-1]), k._groupColumn * SEGMENT
    insides = [k._and([True, *_within(lead, offset, links.shape)]) for offset, _ in links.before]
    with k._for(begin + k._localColumn, k._min(begin + SEGMENT, links.columns), k._localColumns) as column:
        point = _ForestRow(parents, k._row * links.columns, True, column, links.columns)
        here = point.at(0)
        with k._if(here >= 0):
            left = point.at(-1)
            if links.segments > 1 and links.in_row:
                with k._if((column == begin) & (left >= 0)):
                    _join(parents, here, left)
            for (offset, steps), inside in zip(links.before, insides, strict=True):
                away = sum(o * math.prod(links.shape[a + 1 :]) for a, o in enumerate(offset))
                row = replace(point, first=point.first + away, inside=inside)
                if links.in_row and steps == (-1, 0, 1):
                    _join_wide(point, here, left, row)
                else:
                    _join_each(here, left, row, steps, links.in_row)


def _within(place: Sequence[Any], offset: Sequence[int], shape: Sequence[int]) -> list[Any]:
    """The tests of whether a place so far away is inside, along the axes along which it is away."""
    moved = ((p + o, o, n) for p, o, n in zip(place, offset, shape, strict=False) if o)
    return [False if n == 1 else p >= 0 if o < 0 else p < n for p, o, n in moved]


@dataclass(frozen=True)
class _ForestRow:
    """A row's points around a column.

    Attributes:
        first: where it begins in memory.
        inside: whether it is in the grid.
    """

    parents: Field
    first: Any
    inside: Any
    column: Any
    columns: int

    def at(self, step: int) -> Any:
        """What a point knows; OUTSIDE of the grid."""
        inside, column = self.inside, self.column + step
        if step:
            inside = inside & (column >= 0 if step < 0 else column < self.columns)
        if inside is True:
            return k._readTensor(self.parents, self.first + column, border="unchecked")
        place = k._where(inside, self.first + column, 0)
        return k._where(inside, k._readTensor(self.parents, place, border="unchecked"), OUTSIDE)


def _join_wide(point: _ForestRow, here: Any, left: Any, row: _ForestRow) -> None:
    """Of three neighbours in a row the middle one is connected to both others, and the point's neighbours to these."""
    middle, before = row.at(0), row.at(-1)
    with k._if(middle >= 0), k._if((left < 0) | (before < 0)):
        _join(point.parents, here, middle)
    with k._else():
        with k._if((before >= 0) & (left < 0)):
            _join(point.parents, here, before)
        behind = row.at(1)
        with k._if((behind >= 0) & (point.at(1) < 0)):
            _join(point.parents, here, behind)


def _join_each(here: Any, left: Any, row: _ForestRow, steps: Sequence[int], in_row: bool) -> None:
    for step in steps:
        there = row.at(step)
        needed = there >= 0
        if in_row and step > -1:
            needed = needed & ((left < 0) | (row.at(step - 1) < 0))
        with k._if(needed):
            _join(row.parents, here, there)


def _join(parents: Field, one: Any, other: Any) -> None:
    """Make one tree of those of two points."""
    a, b = root(parents, one), root(parents, other)
    with k._while(lambda: a != b):
        high, low = k._max(a, b), k._min(a, b)
        was = k._atomic_cmpxchg(k._pointerTo(parents, high), high, low)
        with k._if(was == high):
            k._break()
        a.assign(was)
        b.assign(low)


# --- numbers ----------------------------------------------------------------------------------------------------------


def numbered(parents: Field, links: Links) -> tuple[Field, Field]:
    """The components' numbers from 1 on in the order of their first points, 0 outside; and how many there are."""
    counts = _counts(parents)
    adder = replace(reducer_of("sum", counts.type, 1), held="int32", result="int32")
    sums = along_grid(adder, counts, 0, True)
    return _looked_up(_with_numbers(parents, sums), links), sums[-1]


def _counts(parents: Field) -> Field:
    """How many roots each chunk has."""
    count = parents.field_shape[0]
    chunks, lanes = -(-count // CHUNK), _lanes()

    def body() -> None:
        k._globalThreads(chunks, lanes)
        k._localThreads(1, lanes)
        first = k._row * CHUNK
        found = k._var(0)
        with k._for(first + k._localColumn, k._min(first + CHUNK, count), k._localColumns) as at:
            found.assign(found + k._where(k._readTensor(parents, at, border="unchecked") == at, 1, 0))
        total = k._reduceGroup(found, "add", over="column")
        with k._if(k._localColumn == 0):
            k._writeTensor(k._out0, total, k._row)

    return library_call("roots", (FieldType(chunks, (), "int32"),), [parents], body, (), whole=True)[0]


@operator(inout="parents")
def _with_numbers(parents: Any, sums: Any) -> None:
    """Roots know -1 minus their numbers."""
    count = parents.field_shape[0]
    lanes = _lanes()
    k._globalThreads(sums.field_shape[0], lanes)
    k._localThreads(1, lanes)
    first = k._row * CHUNK
    before = k._var(k._where(k._row > 0, k._readTensor(sums, k._max(k._row - 1, 0), border="unchecked"), 0))
    with k._for(
        0, k._where(k._readTensor(sums, k._row, border="unchecked") > before, CHUNK, 0), k._localColumns
    ) as done:
        at = first + done + k._localColumn
        is_root = (at < count) & (k._readTensor(parents, k._min(at, count - 1), border="unchecked") == at)
        number = before + k._scanGroup(k._where(is_root, 1, 0), "add", over="column")
        with k._if(is_root):
            k._writeTensor(parents, -1 - number, at)
        before.assign(k._broadcastGroup(number, k._localColumns - 1, over="column"))


def _looked_up(parents: Field, links: Links) -> Field:
    """The number that the root of each point knows: mostly that of the point before, which knows the same one."""

    def body() -> None:
        k._globalThreads(links.rows, links.segments * _lanes())
        k._localThreads(1, _lanes())
        begin = k._groupColumn * SEGMENT
        known, number = k._var(OUTSIDE), k._var(0)
        with k._for(begin + k._localColumn, k._min(begin + SEGMENT, links.columns), k._localColumns) as column:
            above = k._readTensor(parents, k._row * links.columns + column, border="unchecked")
            with k._if(above != known):
                known.assign(above)
                end = k._var(above)
                with k._while(lambda: end >= 0):
                    end.assign(k._readTensor(parents, end, border="unchecked"))
                number.assign(OUTSIDE - end)
            k._writeTensor(k._out0, number, *apart(k._row, links.shape[:-1]), column)

    out = FieldType(links.shape, (), "int32")
    return library_call("label", (out,), [parents], body, links, whole=True)[0]
