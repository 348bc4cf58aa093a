"""Bit-packed masks: a row is 32-bit words with a bit per point, so that 32 points are compared with their neighbours at once.

A run is a maximal sequence of set bits of a word if neighbours in the row are connected, else a single point. Its first point
represents it: a union-find forest has one node per run, and a point finds its run without a memory access.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.types import FieldType
from gpuop.ops.layout.layouts import ravel
from gpuop.ops.sort.radix_sort import single

BITS = 32
SEGMENT = 256  # words of a row that one CPU thread processes
GROUP = 8  # rows of a GPU work-group; each has the threads of one word
ALL = 2**BITS - 1
Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Links:
    """Neighbours that a structure connects: those in the row, and those in rows before it.

    Attributes:
        shape: shape of the grid.
        in_row: whether neighbours in the row are connected.
        before: for each connected row before it, its offset along all axes but the last, and the offsets along the last axis.
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
    def words(self) -> int:
        """Number of words of a row."""
        return -(-self.columns // BITS)

    @property
    def segments(self) -> int:
        """Number of segments of a row."""
        return -(-self.words // SEGMENT)


def links_of(shape: Sequence[int], structure: Numbers) -> Links:
    """Return the links of a symmetric structure of 3 points along each axis."""
    offsets = [tuple(int(i) - 1 for i in at) for at in np.argwhere(structure)]
    rows = sorted({o[:-1] for o in offsets if o[:-1] < (0,) * (len(shape) - 1)})
    before = tuple((row, tuple(o[-1] for o in offsets if o[:-1] == row)) for row in rows)
    return Links(tuple(shape), (*(0,) * (len(shape) - 1), 1) in offsets, before)


# --- threads ----------------------------------------------------------------------------------------------------------


def threads_of_words(links: Links) -> None:
    """Launch 32 threads for each word, or one for each segment of words."""
    alone, threads = single(), links.words * BITS
    k._globalThreads(links.rows, threads + (links.segments - threads) * alone)
    k._localThreads(GROUP + (1 - GROUP) * alone, BITS + (1 - BITS) * alone)


@dataclass(frozen=True)
class OwnWord:
    """A word of the thread's row.

    Attributes:
        number: index of the word in the row.
        alone: whether the thread has the whole word, as on CPUs; else it has the bit of its column.
    """

    links: Links
    number: Any
    alone: bool

    @property
    def place(self) -> Any:
        """Index of the word in the field of words."""
        return k._row * self.links.words + self.number

    @property
    def begin(self) -> Any:
        """Column of its first bit."""
        return self.number * BITS

    @property
    def first(self) -> Any:
        """Row-major index of its first point."""
        return k._row * self.links.columns + self.begin

    @property
    def written_here(self) -> Any:
        """Return whether this thread writes the results of the word."""
        return True if self.alone else k._localColumn == 0

    def for_bits(self, bits: Any, body: Callable[[Any], None]) -> None:
        """Record `body` for each set bit; it gets the bit's index."""
        if not self.alone:
            with k._if(has_bit(bits, k._localColumn)):
                body(k._localColumn)
            return
        left = k._var(bits)
        with k._while(lambda: left != 0):
            body(k._as_int(k._popcount(~left & (left - 1))))
            left.assign(left & (left - 1))

    def for_columns(self, body: Callable[[Any], None]) -> None:
        """Record `body` for each point of the word that lies in the row; it gets the bit's index."""
        columns = self.links.columns
        if self.alone and columns % BITS == 0:
            with k._for(BITS) as bit:
                body(bit)
        elif self.alone:
            with k._for(k._min(columns - self.begin, BITS)) as bit:
                body(bit)
        else:
            with k._if(self.begin + k._localColumn < columns):
                body(k._localColumn)

    def bits_where(self, test: Callable[[Any], Any], within: Any = None) -> Any:
        """Return the bits for which a test holds, among `within` or all points of the row; a collective on GPUs.

        Args:
            test: function of a bit's index.
        """
        if self.alone:
            bits = k._var(k._convert_uint(0))

            def add(bit: Any) -> None:
                bits.assign(bits | k._convert_uint(k._where(test(bit), 1, 0)) << k._as_uint(bit))

            self.for_columns(add) if within is None else self.for_bits(within, add)
            return bits
        own = k._var(False)
        look = lambda bit: own.assign(test(bit))  # noqa: E731
        self.for_columns(look) if within is None else self.for_bits(within, look)
        return k._ballotGroup(own, over=BITS)


def for_words(links: Links, body: Callable[[OwnWord], None]) -> None:
    """Record `body` for each word of the thread."""
    with (
        k._codegenIf(single()),
        k._for(k._column * SEGMENT, k._min(k._column * SEGMENT + SEGMENT, links.words)) as word,
    ):
        body(OwnWord(links, word, True))
    with k._codegenElse():
        body(OwnWord(links, k._groupColumn, False))


def has_bit(word: Any, bit: Any) -> Any:
    return ((word >> k._as_uint(bit)) & 1) != 0


# --- words ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WordRow:
    """A row of words, with access to neighbouring words.

    Attributes:
        words: words of the mask.
        row: index of the row.
        inside: whether the row is in the grid; else its bits are 0.
    """

    words: Field
    links: Links
    row: Any
    inside: Any = True

    def at(self, word: Any, step: int = 0) -> Any:
        """Return a word, or the one `step` words further on; 0 outside."""
        place, inside = word + step if step else word, self.inside
        if step:
            inside = k._and([inside, place >= 0 if step < 0 else place < self.links.words])
        if inside is True:
            return k._readTensor(self.words, self.row * self.links.words + place, border="unchecked")
        here = k._where(inside, self.row * self.links.words + place, 0)
        return k._where(inside, k._readTensor(self.words, here, border="unchecked"), k._convert_uint(0))

    def first(self, column: Any) -> Any:
        """Return the row-major index of the first point of the run that contains a column."""
        word = column >> 5
        return self.row * self.links.columns + word * BITS + first_bit(self.at(word), column & 31, self.links.in_row)


def first_bit(word: Any, bit: Any, in_row: bool) -> Any:
    """Return the first bit of the run that contains a bit."""
    if not in_row:
        return bit
    zeros = ~word & (k._convert_uint(ALL) >> k._as_uint(31 - bit))  # zeros below the bit
    return 32 - k._as_int(k._clz(zeros))


def begins(word: Any, in_row: bool) -> Any:
    """Return the bits at which runs begin."""
    return word & ~(word << 1) if in_row else word


def run_of(word: Any, bit: Any, in_row: bool) -> Any:
    """Return the bits of the run that begins at a bit."""
    one = k._convert_uint(1) << k._as_uint(bit)
    return word & ~(word + one) if in_row else one


def joints(own: WordRow, word: Any, other: WordRow, steps: Sequence[int]) -> dict[int, Any]:
    """Return, for each step, the columns to join with the column so far away in another row, without links that others imply."""
    here, left, right = (own.at(word, step) for step in (0, -1, 1))
    there, left_there, right_there = (other.at(word, step) for step in (0, -1, 1))
    before = {0: there, -1: there << 1 | left_there >> 31, 1: there >> 1 | right_there << 31}
    result = {step: here & before[step] for step in steps}
    if not own.links.in_row:
        return result
    if 0 in steps:  # diagonal links are needed only where they touch at a corner
        if -1 in steps:
            result[-1] &= ~(before[0] | here << 1 | left >> 31)
        if 1 in steps:
            result[1] &= ~(before[0] | here >> 1 | right << 31)
    of_left = {0: left & left_there, -1: left & left_there << 1, 1: left & (left_there >> 1 | there << 31)}
    return {step: bits & ~(bits << 1 | of_left[step] >> 31) for step, bits in result.items()}


def pack(field: Field, word: OwnWord) -> Any:
    """Write a word of the points that are not 0, in row-major order, to the first output."""
    bits = word.bits_where(lambda bit: k._readTensor(field, word.first + bit, border="unchecked") != 0)
    with k._if(word.written_here):
        k._writeTensor(k._out0, bits, word.place)
    return bits


def packed(field: Field, links: Links) -> Field:
    """Return the words of the points that are not 0, row after row."""
    row = ravel(field)

    def body() -> None:
        threads_of_words(links)
        for_words(links, lambda word: pack(row, word))

    return library_call("words", (FieldType(links.rows * links.words, (), "uint32"),), [row], body, links, whole=True)[
        0
    ]
