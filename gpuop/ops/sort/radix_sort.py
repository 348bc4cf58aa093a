"""Radix sort of long rows, from the last digit on.

A pass counts the values of each digit in each chunk of a row, scans the counts, and moves the values to their places, in
order (D. Knuth, The Art of Computer Programming 3, 5.2.5). Sorting is stable, so the result is unique, and targets may compute
it in different ways: on CPUs one thread has a chunk. On GPUs a work-group sorts tiles of its chunk first, so that
neighbours write side by side.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.dsl.operators.variants import either
from gpuop.dsl.recorder.recorder import current
from gpuop.ir.types import FieldType
from gpuop.ops.reduce.reducers import reducer_of
from gpuop.ops.scan.kernels import along_grid
from gpuop.ops.sort.keys import digit_of, digits_of, key_of

# Bits of a digit; chunks that keep a device busy, and the least values of one. On GPUs neighbours of a tile should have equal
# digits, so there are few.
CPU_BITS, CPU_CHUNKS, CPU_LEAST = 11, 128, 32768
GPU_BITS, GPU_CHUNKS, GPU_LEAST = 8, 2048, 4096
AT_ONCE, PER_ITERATION = (
    256,
    4,
)  # digits that a CPU thread finds ahead, and in an iteration: compilers make a vector of so few
LANES, EACH = 256, 16  # GPU threads of a chunk, and their values in a tile
# Of words, where digits are many: neighbours with one digit are then more, and each access to memory has fewer places. Registers
# are bounded so that three groups are resident.
MORE, RESIDENT = 24, 3
MOST_HELD = 8  # bytes of a value in local memory, if there is room for a whole tile
COPIES, AHEAD = 8, 8  # copies of counts, and values that a GPU thread reads before it counts them


def by_digits(field: Field, places: bool, flat: bool, used: int | None = None) -> Field:
    """Return rows of values in order, or their old places; one row is a grid of one dimension, if it may be flat.

    Args:
        used: the number of low key bits that differ, if known.
    """
    alone, together = (_passes(how, field, places, flat, used) for how in (_Alone, _Together))
    return either(single(), alone, together)


def _passes(how: type[_Pass], field: Field, places: bool, flat: bool, used: int | None) -> Field:
    order: Field | None = None
    bits, count = digits_of(field.type, how.constants()[0], used)
    for n in range(count):
        last = n == count - 1
        few = (
            last and used is None and np.dtype(field.type.array_dtype).kind == "f"
        )  # digits: a sign and parts of exponents
        result = how(field, order, n * bits, bits, not (places and last), places, flat and last, few).moved()
        field, order = result[0], result[-1]
    return field


@functools.lru_cache
def _number(value: int) -> Field:
    """Return a number as a kernel argument, so that kernels with equal text are compiled once."""
    return Field(np.asarray(value, np.uint32))


class _Pass(ABC):
    """A pass over a chunk of a row, by a CPU thread or a GPU work-group.

    Attributes:
        order: the old places of the values; None in the first pass.
        shift: the first bit of the digit.
        values, places: whether each of them is wanted.
        flat: whether the result is a grid of one dimension.
        few: whether there are few digits, as a rule.
    """

    def __init__(
        self,
        field: Field,
        order: Field | None,
        shift: int,
        bits: int,
        values: bool,
        places: bool,
        flat: bool,
        few: bool,
    ) -> None:
        self.field, self.order, self.shift, self.bits = field, order, _number(shift), bits
        self.values, self.places, self.flat, self.few = values, places, flat, few
        self.rows, self.count = field.field_shape
        self.radix = 1 << bits
        _, chunks, self.size, self.lanes = self.constants()
        while self.rows * self.count > chunks * self.size:
            self.size *= 2
        self.chunks = -(-self.count // self.size)

    @staticmethod
    @abstractmethod
    def constants() -> tuple[int, int, int, int]:
        """Return the bits of a digit, the number of chunks, the least values of one, and the threads of one."""

    @abstractmethod
    def counted(self) -> None:
        """Write the count of each digit."""

    @abstractmethod
    def move(self) -> None:
        """Write the values in the order of the digit."""

    def moved(self) -> tuple[Field, ...]:
        """Return the values in the order of a digit, and their old places."""
        self.starts = self._starts()
        kind = self.field.type.replace(field_shape=self.field.field_shape[self.flat :])
        places = kind.replace(dtype="int32" if self.values else PLACES)
        fields = [self.field, self.shift, self.starts, *([] if self.order is None else [self.order])]
        return self._called([kind] * self.values + [places] * self.places, fields, self.move)

    def _starts(self) -> Field:
        """Return the first place of each digit's values from each chunk in a row; chunks of a digit follow one another."""
        out = FieldType((self.rows, self.radix * self.chunks), (), "int32")
        counts = self._called([out], [self.field, self.shift], self.counted)[0]
        adder = replace(reducer_of("sum", counts.type, 1), accumulator="int32", result="int32")
        return along_grid(adder, counts, 1, False)

    def _called(self, types: list[FieldType], fields: list[Field], write: Callable[[], None]) -> tuple[Field, ...]:
        def body() -> None:
            k._globalThreads(self.rows, self.chunks * self.lanes)
            k._localThreads(1, self.lanes)
            self.first = k._groupColumn * self.size
            self.length = k._min(self.size, self.count - self.first)
            self.from_bit = k._readTensor(self.shift)
            write()

        key = type(self), write.__name__, self.bits, self.values, self.places, self.order is None, self.flat, self.few
        return library_call("sort", tuple(types), fields, body, key, whole=True)

    def value(self, at: Any) -> Any:
        """Return a value of the chunk."""
        return k._readTensor(self.field, k._row, self.first + at, border="unchecked")

    def digit(self, value: Any) -> Any:
        return digit_of(key_of(value, self.field.type), self.field.type, self.bits, self.from_bit)

    def of_digit(self, digit: Any) -> Any:
        """Return the index of a digit's count in the chunk."""
        return digit * self.chunks + k._groupColumn

    def start(self, digit: Any) -> Any:
        """Return the first place of a digit's values."""
        return k._readTensor(self.starts, k._row, self.of_digit(digit), border="unchecked")

    def was(self, at: Any) -> Any:
        """Return the old place of a value of the chunk."""
        here = self.first + at
        return here if self.order is None else k._readTensor(self.order, k._row, here, border="unchecked")

    def write(self, value: Any, was: Any, place: Any) -> None:
        there = (place,) if self.flat else (k._row, place)
        if self.values:
            k._writeTensor(k._out0, value, *there)
        if self.places:
            k._writeTensor(k._out1 if self.values else k._out0, was, *there)


class _Alone(_Pass):
    """One thread has a chunk."""

    @staticmethod
    def constants() -> tuple[int, int, int, int]:
        return CPU_BITS, CPU_CHUNKS, CPU_LEAST, 1

    def counted(self) -> None:
        counts = k._intArray(self.radix)

        def count(at: Any, digit: Any) -> None:
            counts[digit] = counts[digit] + 1

        self._one_by_one(count)
        with k._for(self.radix) as d:
            k._writeTensor(k._out0, counts[d], k._row, self.of_digit(d))

    def move(self) -> None:
        next_place = k._intArray(self.radix)  # of each digit's next value
        with k._for(self.radix) as d:
            next_place[d] = self.start(d)

        def move(at: Any, digit: Any) -> None:
            place = k._var(next_place[digit])
            next_place[digit] = place + 1
            self.write(self.value(at), self.was(at), place)

        self._one_by_one(move)

    def _one_by_one(self, each: Callable[[Any, Any], None]) -> None:
        """Call a function with the place and the digit of each value. Digits of neighbours are computed ahead, in vectors."""
        digits = k._intArray(AT_ONCE)
        whole = self.length / AT_ONCE * AT_ONCE
        with k._for(0, whole, AT_ONCE) as done:
            with k._for(0, AT_ONCE, PER_ITERATION) as j:
                for n, digit in enumerate([self.digit(self.value(done + j + n)) for n in range(PER_ITERATION)]):
                    digits[j + n] = digit
            with k._for(AT_ONCE) as j:
                each(done + j, digits[j])
        with k._for(whole, self.length) as at:
            each(at, self.digit(self.value(at)))


class _Together(_Pass):
    """A work-group has a chunk."""

    @staticmethod
    def constants() -> tuple[int, int, int, int]:
        return GPU_BITS, GPU_CHUNKS, GPU_LEAST, LANES

    def counted(self) -> None:
        """Count with copies for neighbouring threads, as many values may have one digit."""
        apart = self.radix + 1  # so that counts of one digit are in different banks
        counts = k._local(k._intArray(COPIES * apart))
        with k._for(k._localColumn, COPIES * apart, LANES) as d:
            counts[d] = 0
        k._syncThreadsLocal()
        with k._for(k._localColumn, self.length, LANES, unroll=AHEAD) as at:
            k._atomic_inc(k._pointerTo(counts[k._localColumn % COPIES * apart + self.digit(self.value(at))]))
        k._syncThreadsLocal()
        with k._for(k._localColumn, self.radix, LANES) as d:
            total = counts[d]
            for n in range(1, COPIES):
                total = total + counts[n * apart + d]
            k._writeTensor(k._out0, total, k._row, self.of_digit(d))

    def move(self) -> None:
        """Move tile after tile: neighbours in a sorted tile are neighbours in the row if their digits are equal."""
        tile = RankedTile(LANES, self._each(), self.bits)
        current("sort").resident = RESIDENT if tile.each == MORE else 0
        starts = [k._var(self.start(k._min(digit, self.radix - 1))) for digit in tile.own_digits()]
        values = k._local(k._tensorElementArray(self.field, tile.size))
        places = k._local(k._intArray(tile.size)) if self.places else None
        with k._for(0, self.length, tile.size) as done:
            self._move_tile(tile, done, starts, values, places)

    def _each(self) -> int:
        """Return the values of a thread in a tile."""
        nbytes = np.dtype(self.field.type.array_dtype).itemsize + 4 * self.places
        if nbytes <= MOST_HELD // 2 and not self.few:
            return MORE
        return EACH if nbytes <= MOST_HELD else EACH // 2

    def _move_tile(self, tile: RankedTile, done: Any, starts: list[Any], values: Any, places: Any) -> None:
        some = k._min(tile.size, self.length - done)
        own = k._tensorElementArray(self.field, tile.each)
        with k._for(tile.each, unroll=True) as j:
            own[j] = self.value(k._min(done + tile.position(j), self.length - 1))
        tile.rank(lambda j: k._where(tile.position(j) < some, self.digit(own[j]), self.radix - 1), starts)
        with k._for(tile.each, unroll=True) as j:
            place = tile.place(j)
            values[place] = own[j]
            if places is not None:
                places[place] = self.was(k._min(done + tile.position(j), self.length - 1))
        k._syncThreadsLocal()
        with k._for(tile.each, unroll=True) as j:
            at = j * LANES + k._localColumn
            with k._if(at < some):
                value = k._var(values[at])
                self.write(value, places[at] if places is not None else None, tile.ahead(self.digit(value)) + at)
        k._syncThreadsLocal()


# --- tiles: values that a work-group sorts by a digit in local memory -------------------------------------------------
# A word has a position in its low bits and a digit above. Threads split the words by two bits at a time: each has some
# neighbouring words, counts them by these bits in the four parts of one number, and a scan of it gives the place of each word
# (N. Satish, M. Harris, M. Garland, Designing efficient sorting algorithms for manycore GPUs, IPDPS 2009). Splits are stable.


PLACES = "int64"  # old places of values, in the dtype of NumPy
SPLIT = 2  # bits of a digit at a time
PART = 16  # bits of a number that count the words of one kind
WARP = 32  # threads of a ballot
BANKS = 16  # one word is skipped after so many, so that threads with as many words use different banks of memory


def single() -> Any:
    """Return whether one thread replaces a work-group: on CPUs, but not in the interpreter, where threads are cheap."""
    return (k._target.device == "cpu") & (k._target.backend == "opencl")


class OrderedTile:
    """The words of a work-group.

    Args:
        lanes: its number of threads, side by side.
        each: the words of a thread.
        bits: the bits of a digit.
    """

    def __init__(self, lanes: int, each: int, bits: int) -> None:
        self.lanes, self.each, self.size = lanes, each, lanes * each
        self.bits = bits + bits % SPLIT  # an even number: a split must not look at positions
        self.words = k._local(k._uintArray(self.size + self.size // BANKS))

    def put(self, at: Any, digit: Any, position: Any) -> None:
        self.words[_apart(at)] = k._convert_uint(digit | position << self.bits)

    def digit(self, at: Any) -> Any:
        return k._convert_int(self.words[_apart(at)] & ((1 << self.bits) - 1))

    def position(self, at: Any) -> Any:
        return k._convert_int(self.words[_apart(at)] >> self.bits)

    def order(self) -> None:
        """Sort the words by digit, once all threads have put theirs; all threads call it together."""
        own = k._uintArray(self.each)
        k._syncThreadsLocal()
        with k._for(0, self.bits, SPLIT) as shift:
            counts = k._ulongVar(0)
            with k._for(self.each, unroll=True) as j:
                own[j] = self.words[_apart(k._localColumn * self.each + j)]
                counts.assign(counts + (_one() << _part(own[j], shift)))
            before = k._scanGroup(counts, "add", inclusive=False)
            total = k._broadcastGroup(before + counts, self.lanes - 1)
            less = sum((total << n for n in range(2 * PART, 4 * PART, PART)), total << PART)
            places = k._var(before + less)  # the place of the next word of each kind
            k._syncThreadsLocal()
            with k._for(self.each, unroll=True) as j:
                part = _part(own[j], shift)
                self.words[_apart(k._convert_int((places >> part) & ((1 << PART) - 1)))] = own[j]
                places.assign(places + (_one() << part))
            k._syncThreadsLocal()


def _one() -> Any:
    return k._convert(1, "uint64")


def _part(word: Any, shift: Any) -> Any:
    """Return the shift of a kind's count in a number."""
    return k._convert_ulong(((word >> k._convert_uint(shift)) & ((1 << SPLIT) - 1)) * PART)


def _apart(at: Any) -> Any:
    return at + at / BANKS


class RankedTile:
    """The places of a work-group's values in the order of a digit; equal ones stay in order.

    Each warp has neighbours, as many at a time as threads. These vote on each bit of the digits, so each thread knows the
    others with its digit, and the last of them adds to the warp's count (D. Merrill, M. Garland, "Single-pass
    parallel prefix scan with decoupled look-back", and A. Adinets, D. Merrill, "Onesweep", arXiv:2206.01784, rank so too).

    Args:
        lanes: its number of threads, side by side.
        each: the values of a thread.
        bits: the bits of a digit.
    """

    def __init__(self, lanes: int, each: int, bits: int) -> None:
        self.lanes, self.each, self.bits, self.size = lanes, each, bits, lanes * each
        self.radix, self.width = 1 << bits, min(lanes, WARP)
        self.warps = lanes // self.width
        self.share = -(-self.radix // lanes)  # digits of a thread
        self.counts = k._local(k._intArray(self.warps * self.radix))
        self.starts = k._local(k._intArray(self.radix))
        self.ranks = k._intArray(each)

    def position(self, j: Any) -> Any:
        """Return the position in the tile of a thread's value."""
        return self._warp() * (self.width * self.each) + j * self.width + self._lane()

    def own_digits(self) -> list[Any]:
        """Return the digits whose counts the thread adds up; the last thread may have fewer."""
        return [k._localColumn * self.share + n for n in range(self.share)]

    def place(self, j: Any) -> Any:
        """Return the place of a thread's value in the order of the tile."""
        rank = k._var(self.ranks[j])
        return self.counts[self._warp() * self.radix + (rank & (self.radix - 1))] + (rank >> self.bits)

    def ahead(self, digit: Any) -> Any:
        """Return the offset from places in the tile's order to places in the row, for a digit."""
        return self.starts[digit]

    def rank(self, digit: Callable[[Any], Any], starts: list[Any]) -> None:
        """Compute all places. All threads call it together.

        Args:
            digit: returns the digit of a thread's value, by number.
            starts: variables with the place in the row of the next value of each of the thread's digits, before and after.
        """
        with k._for(k._localColumn, self.warps * self.radix, self.lanes) as at:
            self.counts[at] = 0
        k._syncThreadsLocal()
        with k._for(self.each, unroll=True) as j:
            self._rank_in_warp(j, digit(j))
        k._syncThreadsLocal()
        totals = [self._of_warps(own) for own in self.own_digits()]
        before = k._var(k._scanGroup(sum(totals[1:], totals[0]), "add", inclusive=False))
        for own, start, total in zip(self.own_digits(), starts, totals, strict=True):
            with k._if(own < self.radix):
                self.starts[own] = start - before
                for warp in range(self.warps):
                    self.counts[warp * self.radix + own] = self.counts[warp * self.radix + own] + before
            start.assign(start + total)
            before.assign(before + total)
        k._syncThreadsLocal()

    def _rank_in_warp(self, j: Any, digit: Any) -> None:
        peers = k._var(k._convert_uint((1 << self.width) - 1))
        for bit in range(self.bits):
            own = digit & (1 << bit)
            votes = k._ballotGroup(own, over=self.width)
            peers.assign(peers & (votes ^ k._where(own != 0, k._convert_uint(0), k._convert_uint(2**32 - 1))))
        lane = k._convert_uint(self._lane())
        before = k._convert_int(k._popcount(peers & ((k._convert_uint(1) << lane) - 1)))
        counted = k._intVar()
        with k._if(peers >> lane == 1):
            at = self._warp() * self.radix + digit
            counted.assign(k._atomic_add(k._pointerTo(self.counts[at]), before + 1))
        last = (31 - k._convert_int(k._clz(peers))) & 31  # some are: the thread itself
        rank = k._shuffleGroup(counted, last, over=self.width) + before
        self.ranks[j] = rank << self.bits | digit

    def _of_warps(self, own: Any) -> Any:
        """Return the count of a digit; each warp learns the counts of the warps before it."""
        total = k._intVar()
        with k._if(own < self.radix):
            for warp in range(self.warps):
                count = k._var(self.counts[warp * self.radix + own])
                self.counts[warp * self.radix + own] = total
                total.assign(total + count)
        return total

    def _warp(self) -> Any:
        return k._localColumn / self.width

    def _lane(self) -> Any:
        return k._localColumn % self.width
