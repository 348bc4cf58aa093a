"""Nearest point outside of a mask, on GPUs: axis after axis, by searches from near to far.

Along the last axis the mask is bit-packed: a point finds the nearest zeros before and behind in its own word, or by scans over
the ends of words. Along each further axis, points of a line have the distance to their nearest point along the axes before. A
point looks at its neighbours on the line as long as points so far away can be nearer than the best so far; beyond a few steps it
looks only into blocks of the line whose minimum is low enough, in a hierarchy of blocks. All points search in parallel, and the
number of steps of each is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.types import FieldType
from gpuop.lib.ndimage.bit_masks import ALL, BITS, Links, packed
from gpuop.lib.ndimage.distance.nearest import NONE, Metric, longer_axes

BLOCK = 8  # points of a block, or blocks of a block on the next level
NEAR = 16  # steps in both directions that are searched point by point
SHORT = 64  # points of the longest line without blocks
FEW = 16  # blocks of the top level, which are searched in order
GROUP = 8, 32  # threads of a work-group
FAR = 1 << 30  # greater than any distance, as an integer


class _Costs:
    """Distances: squares of lengths, or numbers of steps; integers where these hold them."""

    def __init__(self, metric: Metric, shape: Sequence[int]) -> None:
        farthest = sum((n - 1) ** 2 for n in shape)
        self.squares = metric.name == "euclidean" and metric.sampling is None and farthest < FAR
        self.dtype = "int32" if self.squares else metric.dtype
        self.none: Any = FAR if self.dtype == "int32" else np.inf
        self.metric = metric

    def along(self, axis: int, steps: Any) -> Any:
        return steps * steps if self.squares else self.metric.along(axis, steps)


def searched(mask: Field, metric: Metric) -> Field:
    """Compute `nearest` on GPUs."""
    shape, metric = longer_axes(mask, metric)
    costs = _Costs(metric, shape)
    result = _along_rows(mask, shape, costs)
    for axis in range(len(shape) - 1):
        result = _SearchedLines(shape, axis, costs).searched(*result)
    return result[0]


def _along_rows(mask: Field, shape: tuple[int, ...], costs: _Costs) -> tuple[Field, ...]:
    """Return the nearer of the points before and behind in a row, and its distance."""
    row = _RowWords(Links(shape, True, ()))
    words, columns = packed(mask, row.links), row.links.columns
    ends: Any = np.maximum.accumulate(row.ends(words), axis=-1)

    def body() -> None:
        k._globalThreads(row.links.rows, columns)
        k._localThreads(*GROUP)
        nearer = row.nearer(words, ends)
        place = k._row * columns + k._column
        k._writeTensor(k._out0, k._where(nearer < 0, NONE, place - k._column + nearer), place)
        far = costs.along(len(shape) - 1, nearer - k._column)
        k._writeTensor(k._out1, k._where(nearer < 0, costs.none, far), place)

    kinds = [FieldType(math.prod(shape), (), dtype) for dtype in ("int32", costs.dtype)]
    return library_call("nearest", tuple(kinds), [words, ends], body, (row.links, costs.metric), whole=True)


class _RowWords:
    """The words of a thread's row, and their zeros within the row."""

    def __init__(self, links: Links) -> None:
        self.links, self.last = links, links.words - 1
        self.row_bits = (1 << (links.columns - self.last * BITS)) - 1  # bits of the last word that are in the row

    def zeros(self, words: Field, word: Any) -> Any:
        bits = ~k._readTensor(words, k._row * self.links.words + word, border="unchecked")
        if self.row_bits == ALL:
            return bits
        return bits & k._where(word == self.last, k._convert_uint(self.row_bits), k._convert_uint(ALL))

    def ends(self, words: Field) -> Field:
        """Return each word's last zero column; in as many further rows, reversed, its first zero's distance from the row's end."""

        def body() -> None:
            k._globalThreads(self.links.rows, self.links.words)
            zeros = self.zeros(words, k._column)
            k._writeTensor(k._out0, _last(zeros, k._column), k._row, k._column)
            first = _first(zeros, k._column)
            far = k._where(first < 0, NONE, self.links.columns - 1 - first)
            k._writeTensor(k._out0, far, self.links.rows + k._row, self.last - k._column)

        out = FieldType((2 * self.links.rows, self.links.words), (), "int32")
        return library_call("ends_of_words", (out,), [words], body, self.links, whole=True)[0]

    def nearer(self, words: Field, ends: Field) -> Any:
        """Return the column of the nearest zero of the row, or NONE.

        Args:
            ends: running maximum of `ends` up to each word.
        """
        word, bit = k._column >> 5, k._as_uint(k._column & (BITS - 1))
        zeros, every = k._var(self.zeros(words, word)), k._convert_uint(ALL)
        before, behind = _last(zeros & (every >> (31 - bit)), word), _first(zeros & (every << bit), word)
        left = k._readTensor(ends, k._row, k._max(word - 1, 0), border="unchecked")
        right = k._readTensor(ends, self.links.rows + k._row, k._max(self.last - 1 - word, 0), border="unchecked")
        before = k._where((before < 0) & (word > 0), left, before)
        behind = k._where((behind < 0) & (word < self.last) & (right >= 0), self.links.columns - 1 - right, behind)
        return k._where((before < 0) | ((behind >= 0) & (behind - k._column < k._column - before)), behind, before)


def _last(bits: Any, word: Any) -> Any:
    """Return the column of a word's last set bit, or NONE."""
    return k._where(bits != 0, word * BITS + 31 - k._as_int(k._clz(bits)), NONE)


def _first(bits: Any, word: Any) -> Any:
    return k._where(bits != 0, word * BITS + k._as_int(k._popcount(~bits & (bits - 1))), NONE)


class _SearchedLines:
    """Lines along an axis that is not the last one: neighbouring threads are on neighbouring lines.

    Attributes:
        sizes: points of a block on each level, until a line has few blocks.
    """

    def __init__(self, shape: tuple[int, ...], axis: int, costs: _Costs) -> None:
        self.shape, self.axis, self.costs = shape, axis, costs
        self.count, self.inner = shape[axis], math.prod(shape[axis + 1 :])
        self.outer = math.prod(shape[:axis])
        self.last = axis == len(shape) - 2
        self.sizes = [BLOCK] if self.count > SHORT else []
        while self.sizes and self.blocks(-1) > FEW:
            self.sizes.append(self.sizes[-1] * BLOCK)

    def blocks(self, level: int) -> int:
        """Return the number of blocks of a line on a level."""
        return -(-self.count // self.sizes[level])

    def searched(self, nearest: Field, costs: Field) -> tuple[Field, ...]:
        """Return the nearest points along one more axis, and their distances unless this is the last one."""
        fields = [nearest, costs]
        for level in range(len(self.sizes)):
            fields.append(self._least(fields[-1], self.blocks(level - 1) if level else self.count, self.blocks(level)))

        def body() -> None:
            self._threads(self.count)
            search = _PointSearch(self, nearest, costs, fields[2:])
            search.step_by_step()
            if self.sizes:
                search.in_blocks()
            search.write()

        kinds = (nearest.type,) if self.last else (nearest.type, costs.type)
        return library_call("nearest", kinds, fields, body, (self.shape, self.axis, self.costs.metric), whole=True)

    def _least(self, values: Field, count: int, blocks: int) -> Field:
        """Return the minimum of each block of lines that have `count` values."""

        def body() -> None:
            self._threads(blocks)
            line, first = k._row / blocks, k._row % blocks * BLOCK
            least = k._var(k._convert(self.costs.none, self.costs.dtype))
            with k._for(BLOCK, unroll=True) as n:
                place = (line * count + k._min(first + n, count - 1)) * self.inner + k._column
                least.assign(k._min(least, k._readTensor(values, place, border="unchecked")))
            k._writeTensor(k._out0, least, k._row * self.inner + k._column)

        kind = FieldType(self.outer * blocks * self.inner, (), self.costs.dtype)
        return library_call("least_of_blocks", (kind,), [values], body, (self.shape, self.axis, count), whole=True)[0]

    def _threads(self, each: int) -> None:
        """Launch `each` threads for each line; a row of threads is on neighbouring lines."""
        k._globalThreads(self.outer * each, self.inner)
        k._localThreads(*GROUP)


class _PointSearch:
    """Search of one point along its line: the nearest point so far, and its distance."""

    def __init__(self, lines: _SearchedLines, nearest: Field, costs: Field, least: Sequence[Field]) -> None:
        self.lines, self.nearest, self.costs, self.least = lines, nearest, costs, least
        self.line, self.at = k._row / lines.count, k._row % lines.count
        self.site = k._var(self.at)
        self.best = k._var(self._cost(self.at))

    def _place(self, at: Any) -> Any:
        return (self.line * self.lines.count + at) * self.lines.inner + k._column

    def _cost(self, at: Any) -> Any:
        return k._readTensor(self.costs, self._place(at), border="unchecked")

    def _along(self, steps: Any) -> Any:
        return self.lines.costs.along(self.lines.axis, steps)

    def _look(self, at: Any, steps: Any) -> None:
        far = self.lines.costs.metric.both(self._along(steps), self._cost(at))
        self.site.assign(k._where(far < self.best, at, self.site))
        self.best.assign(k._min(far, self.best))

    def step_by_step(self) -> None:
        """Look at points from near to far; beyond an end, at the end again, which is never nearer."""
        count, steps = self.lines.count, k._var(1)
        near = NEAR if self.lines.sizes else count - 1
        with k._while(lambda: (steps <= near) & (self._along(steps) < self.best)):
            self._look(k._max(self.at - steps, 0), steps)
            self._look(k._min(self.at + steps, count - 1), steps)
            steps.assign(steps + 1)

    def in_blocks(self) -> None:
        """Look at points further away, before and behind, block by block."""
        top = len(self.lines.sizes) - 1
        size, blocks = self.lines.sizes[top], self.lines.blocks(top)
        for turn in (-1, 1):
            block = k._var((self.at + turn * (NEAR + 1)) >> int(math.log2(size)))

            def reachable(block: Any = block, turn: int = turn) -> Any:
                inside = block >= 0 if turn < 0 else block < blocks
                return inside & (self._bound(block, size, turn) < self.best)

            with k._while(reachable):
                self._look_into(top, block, turn)
                block.assign(block + turn)

    def _bound(self, block: Any, size: int, turn: int) -> Any:
        """Return a lower bound of the distance to the points of a block that are still to be searched."""
        steps = block * size - self.at if turn > 0 else self.at - (block * size + size - 1)
        return self._along(k._max(steps, NEAR + 1))

    def _look_into(self, level: int, block: Any, turn: int) -> None:
        """Look at the points of a block from near to far, if one of them may be nearer than the best so far."""
        first, size = block * BLOCK, self.lines.sizes[level]
        bound = self.lines.costs.metric.both(self._bound(block, size, turn), self._least_of(level, block))
        inner = self.lines.blocks(level - 1) if level else self.lines.count
        with k._if(bound < self.best):
            some = k._min(BLOCK, inner - first)
            with k._for(some) as n:
                at = first + (n if turn > 0 else some - 1 - n)
                if level:
                    self._look_into(level - 1, at, turn)
                else:
                    self._look(at, at - self.at)

    def _least_of(self, level: int, block: Any) -> Any:
        place = (self.line * self.lines.blocks(level) + block) * self.lines.inner + k._column
        return k._readTensor(self.least[level], place, border="unchecked")

    def write(self) -> None:
        place, none = self._place(self.at), self.best >= self.lines.costs.none
        number = k._readTensor(self.nearest, self._place(self.site), border="unchecked")
        k._writeTensor(k._out0, k._where(none, NONE, number), place)
        if not self.lines.last:
            k._writeTensor(k._out1, self.best, place)
