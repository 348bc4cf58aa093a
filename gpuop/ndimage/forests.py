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
    columns, lanes = links.columns, _lanes()

    def is_inside(row: Any, column: Any) -> Any:
        return k._readTensor(inside, row * columns + column, border="unchecked") != 0

    def body() -> None:
        k._globalThreads(links.rows, links.segments * lanes)
        k._localThreads(1, lanes)
        row, begin = k._row, k._groupColumn * SEGMENT
        last = k._var(0)  # twice the column of the last change, and 1 where a run begins
        with k._for(0, min(SEGMENT, columns), k._localColumns) as done:
            column = begin + done + k._localColumn
            here = k._min(column, columns - 1)
            is_in = is_inside(row, here)
            goes_on = is_in & links.in_row & (here > begin) & is_inside(row, k._max(here - 1, 0))
            change = k._where(goes_on, 0, 2 * here + k._where(is_in, 1, 0))
            latest = k._max(last, k._scanGroup(change, "max", over="column"))
            with k._if(column < columns):
                first = k._where((latest & 1) == 1, row * columns + (latest >> 1), OUTSIDE)
                k._writeTensor(k._out0, first, row * columns + column)
            last.assign(k._broadcastGroup(latest, k._localColumns - 1, over="column"))

    out = FieldType(links.rows * columns, (), "int32")
    return library_call("runs", (out,), [inside], body, links, whole=True)[0]


def _lanes() -> Any:
    return 1 + (LANES - 1) * ~single()


@operator(inout="parents")
def _joined(parents: Any, links: Links) -> None:
    """Join the trees of neighbours that are in other rows, or in another segment of the row."""
    columns = links.columns
    k._globalThreads(links.rows, columns)
    own = k._row * columns + k._column
    here = k._readTensor(parents, own, border="unchecked")
    with k._if(here >= 0):
        left = _known(parents, own - 1, k._column > 0)
        if links.segments > 1 and links.in_row:
            with k._if((k._column % SEGMENT == 0) & (left >= 0)):
                _join(parents, here, left)
        lead = apart(k._row, links.shape[:-1])
        for offset, steps in links.before:
            inside = k._and(
                [True, *(t for p, o, n in zip(lead, offset, links.shape[:-1], strict=True) for t in _within(p, o, n))]
            )
            there = own + sum(o * math.prod(links.shape[a + 1 :]) for a, o in enumerate(offset))
            row = _ForestRow(parents, there, inside, columns)
            if links.in_row and steps == (-1, 0, 1):
                _join_wide(parents, here, left, row, own)
            else:
                _join_each(parents, here, left, row, steps, links.in_row)


def _within(place: Any, offset: int, extent: int) -> list[Any]:
    if not offset or (isinstance(place, int) and extent == 1):
        return [] if not offset else [False]
    return [place + offset >= 0 if offset < 0 else place + offset < extent]


def _known(parents: Field, at: Any, inside: Any) -> Any:
    """What a point knows; OUTSIDE of the grid."""
    return k._where(inside, k._readTensor(parents, k._max(at, 0), border="unchecked"), OUTSIDE)


@dataclass(frozen=True)
class _ForestRow:
    """Another row's points around this thread's column."""

    parents: Field
    own: Any
    inside: Any
    columns: int

    def at(self, step: int) -> Any:
        inside = self.inside
        if step:
            inside = inside & (k._column > 0 if step < 0 else k._column < self.columns - 1)
        count = self.parents.field_shape[0]
        place = k._where(inside, self.own + step, 0)
        return k._where(inside, k._readTensor(self.parents, k._min(place, count - 1), border="unchecked"), OUTSIDE)


def _join_wide(parents: Field, here: Any, left: Any, row: _ForestRow, own: Any) -> None:
    """Of three neighbours in a row the middle one is connected to both others, and this thread's neighbours to these."""
    middle, before = row.at(0), row.at(-1)
    with k._if(middle >= 0), k._if((left < 0) | (before < 0)):
        _join(parents, here, middle)
    with k._else():
        with k._if((before >= 0) & (left < 0)):
            _join(parents, here, before)
        behind = row.at(1)
        right = _known(parents, k._min(own + 1, parents.field_shape[0] - 1), k._column < row.columns - 1)
        with k._if((behind >= 0) & (right < 0)):
            _join(parents, here, behind)


def _join_each(parents: Field, here: Any, left: Any, row: _ForestRow, steps: Sequence[int], in_row: bool) -> None:
    for step in steps:
        there = row.at(step)
        needed = there >= 0
        if in_row:
            needed = needed & ((left < 0) | (row.at(step - 1) < 0)) if step > -1 else needed
        with k._if(needed):
            _join(parents, here, there)


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


def numbered(parents: Field) -> tuple[Field, Field]:
    """The components' numbers from 1 on in the order of their first points, 0 outside; and how many there are."""
    counts = _counts(parents)
    adder = replace(reducer_of("sum", counts.type, 1), held="int32", result="int32")
    sums = along_grid(adder, counts, 0, True)
    return _looked_up(_with_numbers(parents, sums)), sums[-1]


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


def _looked_up(parents: Field) -> Field:
    """The number that the root of each point knows."""

    def body() -> None:
        known = k._var(k._readTensor(parents))
        with k._while(lambda: known >= 0):
            known.assign(k._readTensor(parents, known, border="unchecked"))
        k._writeTensor(k._out0, OUTSIDE - known)

    return library_call("label", (parents.type,), [parents], body, ())[0]
