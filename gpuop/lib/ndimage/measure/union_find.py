"""Connected components by union-find over runs of a bit-packed mask.

Each run of set bits of a word has a parent: another run of its component, or itself if it is the first in row-major order. A CPU
thread goes along its row, so that a run inherits the tree of the run that it continues from the word before. Then the trees of
neighbouring runs in other rows are joined, and on GPUs those in the row: a root is linked below a lesser one by compare-and-swap,
so threads may join any trees in any order, with path splitting (Y. Komura, GPU-based cluster-labeling algorithm without the use of
conventional iteration, 2015; J. Jaiganesh, M. Burtscher, A high-performance connected components implementation for GPUs, HPDC
2018; for rows as words: S. Allegretti, F. Bolelli, C. Grana, Optimized block-based algorithms to label connected components on
GPUs, 2020). A component's root is its first point in any order of joins, so results are equal on every device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.decorator import operator
from gpuop.dsl.operators.inout import unordered
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.types import FieldType
from gpuop.lib.ndimage.bit_masks import (
    ALL,
    BITS,
    SEGMENT,
    Links,
    OwnWord,
    WordRow,
    begins,
    first_bit,
    for_words,
    joints,
    pack,
    run_of,
    threads_of_words,
)
from gpuop.ops.elementwise.algebra import apply, astype
from gpuop.ops.layout.gather import apart
from gpuop.ops.layout.layouts import ravel
from gpuop.ops.reduce.reducers import reducer_of
from gpuop.ops.scan.kernels import along_grid


@dataclass(frozen=True)
class Forest:
    """Union-find forest of a mask.

    Attributes:
        words: words of the mask, row after row.
        parents: for the first point of each run, its parent's or its own row-major index.
    """

    words: Field
    parents: Field
    links: Links

    @property
    def fields(self) -> list[Field]:
        return [self.words, self.parents]

    def root(self, word: OwnWord, bits: Any, bit: Any) -> Any:
        """Return the root of the run that has a bit of a word."""
        return _root(self.parents, word.first + first_bit(bits, bit, self.links.in_row))


def forest(inside: Field, links: Links) -> Forest:
    """Return the forest of the points that are not 0."""
    points = links.rows * links.columns
    types = FieldType(links.rows * links.words, (), "uint32"), FieldType(points, (), "int32")
    row = ravel(inside)
    words, parents = library_call("runs", types, [row], lambda: _runs(row, links), links, whole=True, sparse=(1,))
    if links.before or links.in_row:
        parents = _joined(words, parents, links)
    return Forest(words, parents, links)


def _runs(inside: Field, links: Links) -> None:
    """Write the words of the mask, and each run as its own parent; on CPUs below the run that it continues from the word before."""
    threads_of_words(links)
    going_on = k._var(-1)

    def begin(word: OwnWord) -> None:
        bits = pack(inside, word)

        def write(bit: Any) -> None:
            own = word.first + bit
            parent = k._where((bit == 0) & (going_on >= 0), going_on, own) if word.alone else own
            k._writeTensor(k._out1, parent, own)

        word.for_bits(begins(bits, links.in_row), write)
        if links.in_row and word.alone:
            last = k._where((bits == ALL) & (going_on >= 0), going_on, word.first + first_bit(bits, 31, True))
            going_on.assign(k._where(bits >> 31 == 0, -1, last))

    for_words(links, begin)


@operator(inout="parents")
def _joined(words: Any, parents: Any, links: Links) -> None:
    """Join the trees of neighbours in other rows, and in another word of the row."""
    # Races are harmless: a root is linked below a lesser one only, and every earlier value of a place leads to the same root.
    unordered(parents)
    threads_of_words(links)
    lead = apart(k._row, links.shape[:-1])

    def join_word(word: OwnWord) -> None:
        own = WordRow(words, links, k._row)
        with k._if(own.at(word.number) != 0):
            rows, steps, bits = zip(*_neighbours(own, word, lead), strict=True)
            away, along = (k._constantArray(np.array(numbers, np.int32)) for numbers in (rows, steps))
            neighbours = k._uintArray(len(bits))
            for n, columns in enumerate(bits):
                neighbours[n] = columns
            with k._for(len(bits)) as n:  # a loop, so that the kernel has one copy of the join

                def join(bit: Any) -> None:
                    other, column = replace(own, row=k._row + away[n]), word.begin + bit
                    _join(parents, own.first(column), other.first(column + along[n]))

                word.for_bits(neighbours[n], join)

    for_words(links, join_word)


def _neighbours(own: WordRow, word: OwnWord, lead: Sequence[Any]) -> list[tuple[int, int, Any]]:
    """Return neighbours as row and column offsets, each with the bits of the word to join with them."""
    links = own.links
    result = [(0, -1, _of_word_before(own, word))] if links.in_row else []
    for offset, along in links.before:
        away = sum(o * math.prod(links.shape[a + 1 : -1]) for a, o in enumerate(offset))
        inside = k._and([True, True, *_within(lead, offset, links.shape)])
        other = WordRow(own.words, links, own.row + away, inside)
        result += [(away, step, bits) for step, bits in joints(own, word.number, other, along).items()]
    return result


def _of_word_before(own: WordRow, word: OwnWord) -> Any:
    """Return the first bit if it continues a run of the word before; on CPUs only where a segment begins, else it is joined."""
    together = own.at(word.number) & own.at(word.number, -1) >> 31
    return k._where(word.number % SEGMENT == 0, together, k._convert_uint(0)) if word.alone else together


def _within(place: Sequence[Any], offset: Sequence[int], shape: Sequence[int]) -> list[Any]:
    """Return the tests that an offset from a place is inside, along the axes of the offset."""
    moved = ((p + o, o, n) for p, o, n in zip(place, offset, shape, strict=False) if o)
    return [False if n == 1 else p >= 0 if o < 0 else p < n for p, o, n in moved]


def _root(parents: Field, start: Any, shorten: bool = False) -> Any:
    """Return a variable with the root above a point.

    Args:
        shorten: link each point of the path to its grandparent (path splitting); this is safe with concurrent updates.
    """
    at = k._var(start)
    above = k._var(k._readTensor(parents, at, border="unchecked"))
    with k._while(lambda: above != at):
        over = k._var(k._readTensor(parents, above, border="unchecked"))
        if shorten:
            with k._if(over != above):
                k._writeTensor(parents, over, at)
        at.assign(above)
        above.assign(over)
    return at


def _join(parents: Field, one: Any, other: Any) -> None:
    """Join the trees of two points."""
    a, b = _root(parents, one, True), _root(parents, other, True)
    with k._while(lambda: a != b):
        high, low = k._max(a, b), k._min(a, b)
        was = k._atomic_cmpxchg(k._pointerTo(parents, high), high, low)
        with k._if(was == high):
            k._break()
        a.assign(was)
        b.assign(low)


# --- numbers ----------------------------------------------------------------------------------------------------------


def numbered(trees: Forest) -> tuple[Field, Field]:
    """Return the components' numbers from 1 on in the order of their first points, 0 outside; and the number of components."""
    roots = _roots(trees)
    counts = astype(apply("bitwise_count", roots), "int32")
    adder = replace(reducer_of("sum", counts.type, 1), accumulator="int32", result="int32")
    sums = along_grid(adder, counts, 0, True)
    return _looked_up(trees, roots, sums), sums[-1]


def _roots(trees: Forest) -> Field:
    """Return a bit mask of the roots."""
    links = trees.links

    def find(word: OwnWord) -> None:
        row = begins(k._readTensor(trees.words, word.place, border="unchecked"), links.in_row)

        def is_root(bit: Any) -> Any:
            return k._readTensor(trees.parents, word.first + bit, border="unchecked") == word.first + bit

        roots = word.bits_where(is_root, row)
        with k._if(word.written_here):
            k._writeTensor(k._out0, roots, word.place)

    def body() -> None:
        threads_of_words(links)
        for_words(links, find)

    return library_call("roots", (trees.words.type,), trees.fields, body, links, whole=True)[0]


def _looked_up(trees: Forest, roots: Field, sums: Field) -> Field:
    """Return for each point the number of its root: the count of roots up to it."""
    links = trees.links

    def number_of(root: Any) -> Any:
        row = root / links.columns
        column = root - row * links.columns
        place = row * links.words + (column >> 5)
        behind = k._readTensor(roots, place, border="unchecked") >> k._as_uint(column & 31)
        return k._readTensor(sums, place, border="unchecked") - k._as_int(k._popcount(behind)) + 1

    def look_up(word: OwnWord) -> None:
        bits = k._readTensor(trees.words, word.place, border="unchecked")
        if word.alone:
            numbers = k._intArray(BITS)  # initialised with zeros

            def note(bit: Any) -> None:
                number = number_of(_root(trees.parents, word.first + bit))
                end = bit + k._as_int(k._popcount(run_of(bits, bit, links.in_row)))
                with k._for(BITS) as c:  # vectorized
                    numbers[c] = k._where((c >= bit) & (c < end), number, numbers[c])

            word.for_bits(begins(bits, links.in_row), note)
            word.for_columns(lambda bit: k._writeTensor(k._out0, numbers[bit], *lead(), word.begin + bit))
        else:
            number = k._var(0)
            word.for_bits(bits, lambda bit: number.assign(number_of(trees.root(word, bits, bit))))
            word.for_columns(lambda bit: k._writeTensor(k._out0, number, *lead(), word.begin + bit))

    def lead() -> list[Any]:
        return apart(k._row, links.shape[:-1])

    def body() -> None:
        threads_of_words(links)
        for_words(links, look_up)

    out = FieldType(links.shape, (), "int32")
    return library_call("label", (out,), [*trees.fields, roots, sums], body, links, whole=True)[0]
