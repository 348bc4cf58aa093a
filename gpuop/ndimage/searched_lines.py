"""The nearest point outside of a mask, for each point: axis after axis, by searches from near to far, for GPUs.

Along the last axis the mask is words of bits, in which a point finds the ones before and behind. Along each further axis points of
a line know how far what is nearest along the axes before is. A point looks at those around it as long as points so far away can
be nearer than what it has found; beyond a few steps only into blocks of the line whose least is near enough. All points search at
once, and most of them are not far from where they find what is nearest; from the others on blocks take few steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.types import FieldType
from gpuop.ndimage.mask_words import ALL, BITS, Links, packed
from gpuop.ndimage.nearest import NONE, Metric, longer_axes

BLOCK = 32  # points of a line of which the least is known
NEAR = 16  # steps in both directions in which points are looked at one by one
SHORT = 64  # points of lines without blocks
GROUP = 8, 32  # threads
FAR = 1 << 30  # further than anything else, as a whole number


class _Costs:
    """How far points are: squares of lengths, or numbers of steps, as integers where these hold them."""

    def __init__(self, metric: Metric, shape: Sequence[int]) -> None:
        farthest = sum((n - 1) ** 2 for n in shape)
        self.squares = metric.name == "euclidean" and metric.sampling is None and farthest < FAR
        self.dtype = "int32" if self.squares else metric.dtype
        self.none: Any = FAR if self.dtype == "int32" else np.inf
        self.metric = metric

    def along(self, axis: int, steps: Any) -> Any:
        return steps * steps if self.squares else self.metric.along(axis, steps)


def searched(mask: Field, metric: Metric) -> Field:
    """As `nearest`, on GPUs."""
    shape, metric = longer_axes(mask, metric)
    costs = _Costs(metric, shape)
    found = _along_rows(mask, shape, costs)
    for axis in range(len(shape) - 1):
        found = _SearchedLines(shape, axis, costs).searched(*found)
    return found[0]


def _along_rows(mask: Field, shape: tuple[int, ...], costs: _Costs) -> tuple[Field, ...]:
    """The nearer one of the points before and behind in a row, and how far it is."""
    links = Links(shape, True, ())
    words, axis = packed(mask, links), len(shape) - 1

    def body() -> None:
        k._globalThreads(links.rows, links.columns)
        k._localThreads(*GROUP)
        nearer = _nearer(words, links)
        place = k._row * links.columns + k._column
        k._writeTensor(k._out0, k._where(nearer < 0, NONE, place - k._column + nearer), place)
        far = costs.along(axis, nearer - k._column)
        k._writeTensor(k._out1, k._where(nearer < 0, costs.none, far), place)

    kinds = [FieldType(math.prod(shape), (), dtype) for dtype in ("int32", costs.dtype)]
    return library_call("nearest", tuple(kinds), [words], body, (links, costs.metric), whole=True)


def _nearer(words: Field, links: Links) -> Any:
    """The column of the nearest point of the row that is 0, or NONE."""
    last = links.words - 1
    beyond = (1 << (links.columns - last * BITS)) - 1  # the bits that the last word has

    def zeros(word: Any) -> Any:
        bits = ~k._readTensor(words, k._row * links.words + word, border="unchecked")
        return bits if beyond == ALL else bits & k._where(word == last, k._convert_uint(beyond), k._convert_uint(ALL))

    own, bit = k._column >> 5, k._as_uint(k._column & (BITS - 1))
    here, every = k._var(zeros(own)), k._convert_uint(ALL)
    before, behind, at = (
        k._var(_last(here & (every >> (31 - bit)), own)),
        k._var(_first(here & (every << bit), own)),
        k._var(own),
    )
    with k._while(lambda: (before < 0) & (at > 0)):
        at.assign(at - 1)
        before.assign(_last(zeros(at), at))
    at.assign(own)
    steps = k._where(before < 0, links.columns, k._column - before)
    with k._while(lambda: (behind < 0) & (at < last) & (at * BITS + BITS - k._column < steps)):
        at.assign(at + 1)
        behind.assign(_first(zeros(at), at))
    return k._where((before < 0) | ((behind >= 0) & (behind - k._column < k._column - before)), behind, before)


def _last(bits: Any, word: Any) -> Any:
    """The column of the last bit of a word that is set, or NONE."""
    return k._where(bits != 0, word * BITS + 31 - k._as_int(k._clz(bits)), NONE)


def _first(bits: Any, word: Any) -> Any:
    return k._where(bits != 0, word * BITS + k._as_int(k._popcount(~bits & (bits - 1))), NONE)


class _SearchedLines:
    """The lines along an axis that is not the last one: neighbouring threads are on neighbouring lines."""

    def __init__(self, shape: tuple[int, ...], axis: int, costs: _Costs) -> None:
        self.shape, self.axis, self.costs = shape, axis, costs
        self.count, self.inner = shape[axis], math.prod(shape[axis + 1 :])
        self.outer = math.prod(shape[:axis])
        self.blocks = -(-self.count // BLOCK) if self.count > SHORT else 0
        self.last = axis == len(shape) - 2

    def searched(self, found: Field, costs: Field) -> tuple[Field, ...]:
        """The nearest points along one more axis, and how far they are unless this is the last one."""
        given = [found, costs, *([self._least(costs)] if self.blocks else [])]

        def body() -> None:
            self._threads(self.count)
            search = _PointSearch(self, *given)
            search.step_by_step()
            if self.blocks:
                search.in_blocks()
            search.write()

        kinds = (found.type,) if self.last else (found.type, costs.type)
        return library_call("nearest", kinds, given, body, (self.shape, self.axis, self.costs.metric), whole=True)

    def _least(self, costs: Field) -> Field:
        """The least of each block of each line."""

        def body() -> None:
            self._threads(self.blocks)
            line, block = k._row / self.blocks, k._row % self.blocks
            first = block * BLOCK
            least = k._var(k._convert(self.costs.none, self.costs.dtype))
            with k._for(k._min(BLOCK, self.count - first)) as n:
                place = (line * self.count + first + n) * self.inner + k._column
                least.assign(k._min(least, k._readTensor(costs, place, border="unchecked")))
            k._writeTensor(k._out0, least, k._row * self.inner + k._column)

        kind = FieldType(self.outer * self.blocks * self.inner, (), self.costs.dtype)
        return library_call("least_of_blocks", (kind,), [costs], body, (self.shape, self.axis), whole=True)[0]

    def _threads(self, each: int) -> None:
        """Have as many threads for each line; a row of threads has one of each of neighbouring lines."""
        k._globalThreads(self.outer * each, self.inner)
        k._localThreads(*GROUP)


class _PointSearch:
    """What a thread has found on its line, and how far that is."""

    def __init__(self, lines: _SearchedLines, found: Field, costs: Field, least: Field | None = None) -> None:
        self.lines, self.found, self.costs, self.least = lines, found, costs, least
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
        """Look at points from near to far; at an end again, where they are no nearer."""
        count, steps = self.lines.count, k._var(1)
        near = NEAR if self.lines.blocks else count - 1
        with k._while(lambda: (steps <= near) & (self._along(steps) < self.best)):
            self._look(k._max(self.at - steps, 0), steps)
            self._look(k._min(self.at + steps, count - 1), steps)
            steps.assign(steps + 1)

    def in_blocks(self) -> None:
        """Look at points further away, where a block may have a nearer one."""
        before = k._var((self.at - NEAR - 1) >> 5)
        self._look_into(before, lambda: before >= 0, lambda: self.at - (before * BLOCK + BLOCK - 1), -1)
        behind = k._var((self.at + NEAR + 1) >> 5)
        self._look_into(behind, lambda: behind < self.lines.blocks, lambda: behind * BLOCK - self.at, 1)

    def _look_into(self, block: Any, inside: Callable[[], Any], steps: Callable[[], Any], turn: int) -> None:
        """Look into one block after another; none of their points that are new is as near as so many steps."""

        def bound() -> Any:
            return self._along(k._max(steps(), NEAR + 1))

        with k._while(lambda: inside() & (bound() < self.best)):
            with k._if(self.lines.costs.metric.both(bound(), self._least_of(block)) < self.best):
                first = block * BLOCK
                with k._for(first, k._min(first + BLOCK, self.lines.count)) as at:
                    self._look(at, at - self.at)
            block.assign(block + turn)

    def _least_of(self, block: Any) -> Any:
        assert self.least is not None
        place = (self.line * self.lines.blocks + block) * self.lines.inner + k._column
        return k._readTensor(self.least, place, border="unchecked")

    def write(self) -> None:
        place, none = self._place(self.at), self.best >= self.lines.costs.none
        number = k._readTensor(self.found, self._place(self.site), border="unchecked")
        k._writeTensor(k._out0, k._where(none, NONE, number), place)
        if not self.lines.last:
            k._writeTensor(k._out1, self.best, place)
