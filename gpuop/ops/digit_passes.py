"""The passes of sorting long rows by digits, the last one first (radix sort).

A pass counts how often a digit has each value in each chunk of a row, adds up what comes before, and moves the values there, in
their order (D. Knuth, The Art of Computer Programming 3, 5.2.5). Sorting is stable, so its result is one, and may be computed in
other ways on other targets: one thread has a chunk on CPUs. On GPUs a work-group puts tiles of it in order first, so that
neighbours write side by side.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.types import FieldType
from gpuop.ops.reducers import reducer_of
from gpuop.ops.scan_kernels import along_grid
from gpuop.ops.slicing import sliced
from gpuop.ops.sort_keys import digit_of, digits_of, key_of
from gpuop.ops.sort_tiles import OrderedTile, single

CHUNKS, LEAST, MOST = 512, 8192, 65536  # chunks that keep a device busy; the values of one
MOST_BITS = 11  # of a digit
AT_ONCE, TURN = 64, 4  # digits that a thread of a CPU finds ahead, and in a turn: compilers make a vector of so few
LANES, EACH = 256, 16  # threads of GPUs that have a chunk, and their values of a tile


def by_digits(field: Field, places: bool, flat: bool) -> Field:
    """Rows of values in order, or where each of them was; of one row a grid of one dimension, if it is to be flat."""
    order: Field | None = None
    bits, count = digits_of(field.type, MOST_BITS)
    for n in range(count):
        last = n == count - 1
        moving = _Moving(field, order, _number(n * bits), not (places and last), places, flat and last)
        made = _moved(moving)
        field, order = made[0], made[-1]
    return field


@functools.lru_cache
def _number(value: int) -> Field:
    """A number that kernels of one text take, so that they are compiled once."""
    return Field(np.asarray(value, np.uint32))


def chunks_of(rows: int, count: int) -> tuple[int, int]:
    """The values of a chunk, and how many chunks a row has."""
    size = LEAST
    while size < MOST and rows * count > CHUNKS * size:
        size *= 2
    return size, -(-count // size)


class _Chunk:
    """What a thread of a CPU has of a row, or the threads of a work-group."""

    def __init__(self, field: Field, shift: Field) -> None:
        self.field, self.shift = field, shift
        self.rows, self.count = field.field_shape
        self.size, self.chunks = chunks_of(self.rows, self.count)
        self.bits = digits_of(field.type, MOST_BITS)[0]
        self.radix = 1 << self.bits

    def begin(self) -> None:
        lanes = 1 + (LANES - 1) * ~single()
        k._globalThreads(self.rows, self.chunks * lanes)
        k._localThreads(1, lanes)
        self.first = k._groupColumn * self.size
        self.length = k._min(self.size, self.count - self.first)
        self.from_bit = k._readTensor(self.shift)

    def digit(self, at: Any) -> Any:
        """The digit of a value of the chunk."""
        value = k._readTensor(self.field, k._row, self.first + at, border="unchecked")
        return digit_of(key_of(value, self.field.type), self.field.type, self.bits, self.from_bit)

    def one_by_one(self, each: Callable[[Any, Any], None]) -> None:
        """Call a function with the place and the digit of each value. Digits are found before: of neighbours, in vectors."""
        digits = k._intArray(AT_ONCE)
        whole = self.length / AT_ONCE * AT_ONCE
        with k._for(0, whole, AT_ONCE) as done:
            with k._for(0, AT_ONCE, TURN) as j:
                for n, digit in enumerate([self.digit(done + j + n) for n in range(TURN)]):
                    digits[j + n] = digit
            with k._for(AT_ONCE) as j:
                each(done + j, digits[j])
        with k._for(whole, self.length) as at:
            each(at, self.digit(at))


# --- counts -----------------------------------------------------------------------------------------------------------


def _counts(chunk: _Chunk) -> Field:
    """How often there is each digit in each chunk of a row."""

    def body() -> None:
        chunk.begin()
        with k._codegenIf(single()):
            _count_alone(chunk)
        with k._codegenElse():
            _count_together(chunk)

    out = FieldType((chunk.rows, chunk.chunks, chunk.radix), (), "int32")
    return library_call("sort", (out,), [chunk.field, chunk.shift], body, "counts", whole=True)[0]


def _count_alone(chunk: _Chunk) -> None:
    counts = k._intArray(chunk.radix)

    def count(at: Any, digit: Any) -> None:
        counts[digit] = counts[digit] + 1

    chunk.one_by_one(count)
    with k._for(chunk.radix) as d:
        k._writeTensor(k._out0, counts[d], k._row, k._groupColumn, d)


def _count_together(chunk: _Chunk) -> None:
    counts = k._local(k._intArray(chunk.radix))
    with k._for(k._localColumn, chunk.radix, LANES) as d:
        counts[d] = 0
    k._syncThreadsLocal()
    with k._for(k._localColumn, chunk.length, LANES, unroll=4) as at:
        k._atomic_inc(k._pointerTo(counts[chunk.digit(at)]))
    k._syncThreadsLocal()
    with k._for(k._localColumn, chunk.radix, LANES) as d:
        k._writeTensor(k._out0, counts[d], k._row, k._groupColumn, d)


def _starts(counts: Field) -> tuple[Field, Field]:
    """Where the values of each digit begin in a row, and how many of them are in the chunks up to each."""
    adder = replace(reducer_of("sum", counts.type, 1), held="int32", result="int32")
    sums = along_grid(adder, counts, 1, True)
    return along_grid(adder, sliced(sums, (slice(None), -1)), 1, False), sums


# --- moves ------------------------------------------------------------------------------------------------------------


class _Moving(_Chunk):
    """How the values of a chunk are moved, where they are wanted, and the places where they were."""

    def __init__(self, field: Field, order: Field | None, shift: Field, values: bool, places: bool, flat: bool) -> None:
        super().__init__(field, shift)
        self.order, self.values, self.places, self.flat = order, values, places, flat
        self.starts, self.sums = _starts(_counts(self))

    def start(self, digit: Any) -> Any:
        """Where the first value of a digit goes."""
        start = k._readTensor(self.starts, k._row, digit, border="unchecked")
        if self.chunks == 1:
            return start
        before = k._readTensor(self.sums, k._row, k._max(k._groupColumn - 1, 0), digit, border="unchecked")
        return start + k._where(k._groupColumn > 0, before, 0)

    def put(self, at: Any, place: Any) -> None:
        here, there = (k._row, self.first + at), (place,) if self.flat else (k._row, place)
        if self.values:
            k._writeTensor(k._out0, k._readTensor(self.field, *here, border="unchecked"), *there)
        if self.places:
            was = here[1] if self.order is None else k._readTensor(self.order, *here, border="unchecked")
            k._writeTensor(k._out1 if self.values else k._out0, was, *there)

    def alone(self) -> None:
        next_place = k._intArray(self.radix)  # of the values of each digit
        with k._for(self.radix) as d:
            next_place[d] = self.start(d)

        def move(at: Any, digit: Any) -> None:
            place = k._var(next_place[digit])
            next_place[digit] = place + 1
            self.put(at, place)

        self.one_by_one(move)

    def together(self) -> None:
        """A tile after the other: neighbours in its order are neighbours in the row, where their digits are equal."""
        tile, next_place = OrderedTile(LANES, EACH, self.bits), k._local(k._intArray(self.radix))
        with k._for(k._localColumn, self.radix, LANES) as d:
            next_place[d] = self.start(d)
        with k._for(0, self.length, tile.size) as done:
            some = k._min(tile.size, self.length - done)
            with k._for(EACH) as j:
                at = j * LANES + k._localColumn
                digit = k._where(at < some, self.digit(k._min(done + at, self.length - 1)), self.radix - 1)
                tile.put(at, digit, at)
            tile.order()
            with k._for(k._localColumn, some, LANES) as at:
                digit = tile.digit(at)
                with k._if((at == 0) | (tile.digit(k._max(at - 1, 0)) != digit)):
                    next_place[digit] = next_place[digit] - at
            k._syncThreadsLocal()
            with k._for(k._localColumn, some, LANES) as at:
                self.put(done + tile.position(at), next_place[tile.digit(at)] + at)
            k._syncThreadsLocal()
            with k._for(k._localColumn, some, LANES) as at:
                digit = tile.digit(at)
                with k._if((at == some - 1) | (tile.digit(k._min(at + 1, some - 1)) != digit)):
                    next_place[digit] = next_place[digit] + (at + 1)
            k._syncThreadsLocal()


def _moved(moving: _Moving) -> tuple[Field, ...]:
    """The values in the order of a digit, and where they were."""

    def body() -> None:
        moving.begin()
        with k._codegenIf(single()):
            moving.alone()
        with k._codegenElse():
            moving.together()

    kind = moving.field.type.replace(
        field_shape=moving.field.field_shape[1:] if moving.flat else moving.field.field_shape
    )
    types = [kind] * moving.values + [kind.replace(dtype="int32")] * moving.places
    given = [moving.field, moving.shift, moving.starts, *([moving.sums] if moving.chunks > 1 else [])]
    given += [] if moving.order is None else [moving.order]
    key = "moved", moving.values, moving.places, moving.order is None, moving.flat
    return library_call("sort", tuple(types), given, body, key, whole=True)
