"""Sorts of rows with up to some thousand values, each in one kernel: by ranks if they are short, else by digits in fast memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.builtins.loops import side_by_side
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.dsl.operators.variants import either
from gpuop.ops.sort.keys import digit_of, digits_of, key_of, last_key, unsigned, value_of
from gpuop.ops.sort.radix_sort import PLACES, OrderedTile, single

LONGEST = 4096  # values of a row
SHORT = 32  # values of a row that are all compared, with a thread for each
RANKED = 128  # values of a row that a CPU thread compares with one another, in vectors
WARP, LANES, EACH = 32, 256, 16  # GPU threads of a row, and the values of one
GPU_BITS = 16  # bits of a digit
CPU_BITS, MANY = (8, 11), 1024  # bits of a digit for rows with fewer values than this, and for others


def by_rank(field: Field, places: bool) -> Field:
    """Sort by rank, the number of values before each; a thread for each value."""
    count = field.field_shape[-1]

    def body() -> None:
        own = key_of(k._readTensor(field), field.type)
        rank = k._var(0)
        with k._for(count) as j:
            other = key_of(k._readTensor(field, k._row, j, border="unchecked"), field.type)
            rank.assign(rank + k._convert_int((other < own) | ((other == own) & (j < k._column))))
        k._writeTensor(k._out0, k._column if places else k._readTensor(field), k._row, rank)

    return _called(field, places, body, "rank")


def by_rows(field: Field, places: bool) -> Field:
    """Sort with a CPU thread for each row, or for a row in each lane of its vectors, else with a work-group; short rows by rank."""
    rows, count = field.field_shape
    elsewhere = (by_rank if count <= SHORT else _by_groups)(field, places)
    if not places and 2 * rows >= lanes_of(field):
        return either(single(), in_lanes(field), elsewhere)
    if count <= SHORT:
        return elsewhere
    alone = _each(field, places, 1, lambda row: row.ranked() if count <= RANKED else row.alone())
    return either(single(), alone, elsewhere)


def _by_groups(field: Field, places: bool) -> Field:
    lanes = min(max(1 << (-(-field.field_shape[1] // EACH) - 1).bit_length(), WARP), LANES)
    return _each(field, places, lanes, lambda row: row.together(lanes))


def _each(field: Field, places: bool, threads: int, sort: Callable[[_SortedRow], None]) -> Field:
    """Sort each row with this number of threads."""

    def body() -> None:
        k._globalThreads(field.field_shape[0], threads)
        k._localThreads(1, threads)
        sort(_SortedRow(field, places))

    return _called(field, places, body, f"rows of {threads} threads")


def _called(field: Field, places: bool, body: Any, how: str) -> Field:
    out = field.type.replace(dtype=PLACES) if places else field.type
    return library_call("sort", (out,), [field], body, (how, places), whole=True)[0]


class _SortedRow:
    """A row that is sorted."""

    def __init__(self, field: Field, places: bool) -> None:
        self.field, self.places, self.count = field, places, field.field_shape[1]

    def read(self, at: Any) -> Any:
        return k._readTensor(self.field, k._row, at, border="unchecked")

    def put(self, position: Any, place: Any) -> None:
        """Write the value of a position, or the position itself, at a place of the order."""
        k._writeTensor(k._out0, position if self.places else self.read(position), k._row, place)

    def keys(self) -> Any:
        keys = (k._ulongArray if unsigned(self.field.type) == "uint64" else k._uintArray)(self.count)
        with k._for(self.count) as j:
            keys[j] = key_of(self.read(j), self.field.type)
        return keys

    def ranked(self) -> None:
        """Compare each value with all; of equal ones the first comes first."""
        keys, ranks = self.keys(), k._intArray(self.count)
        with k._for(self.count) as i:
            own = k._var(keys[i])
            with k._for(i) as j:
                ranks[j] = ranks[j] + k._convert_int(own < keys[j])
            with k._for(i + 1, self.count) as j:
                ranks[j] = ranks[j] + k._convert_int(own <= keys[j])
        with k._for(self.count) as j:
            self.put(j, ranks[j])

    def alone(self) -> None:
        """Sort positions digit by digit, from one half of an array into the other."""
        bits, digits = digits_of(self.field.type, CPU_BITS[self.count >= MANY])
        keys, order = self.keys(), k._ushortArray(2 * self.count)
        counts = k._intArray(1 << bits)

        def digit(position: Any, number: Any) -> Any:
            return digit_of(keys[position], self.field.type, bits, number * bits)

        with k._for(self.count) as j:
            order[j] = j
        with k._for(digits) as number:
            with k._for(1 << bits) as d:
                counts[d] = 0
            with k._for(self.count) as j:
                d = digit(j, number)
                counts[d] = counts[d] + 1
            total = k._var(0)
            with k._for(1 << bits) as d:
                own = k._var(counts[d])
                counts[d] = total
                total.assign(total + own)
            half = number % 2 * self.count
            with k._for(self.count) as j:
                position = k._convert_int(order[half + j])
                d = digit(position, number)
                place = k._var(counts[d])
                counts[d] = place + 1
                order[self.count - half + place] = position
        with k._for(self.count) as j:
            self.put(k._convert_int(order[digits % 2 * self.count + j]), j)

    def together(self, lanes: int) -> None:
        bits, digits = digits_of(self.field.type, GPU_BITS)
        each = -(-self.count // lanes)
        tile = OrderedTile(lanes, each, bits)
        with k._for(each) as j:
            tile.put(j * lanes + k._localColumn, 0, j * lanes + k._localColumn)
        with k._for(digits) as number:
            with k._for(each) as j:
                at = j * lanes + k._localColumn
                position = tile.position(at)
                key = key_of(self.read(k._min(position, self.count - 1)), self.field.type)
                digit = k._where(
                    position < self.count, digit_of(key, self.field.type, bits, number * bits), (1 << bits) - 1
                )
                tile.put(at, digit, position)
            tile.order()
        with k._for(k._localColumn, self.count, lanes) as at:
            self.put(tile.position(at), at)


# --- sorting networks for rows on CPUs --------------------------------------------------------------------------------
# Each lane of a thread's vectors has a row, and all are sorted by the same exchanges.
# Merges are bitonic (K. Batcher, Sorting networks and their applications, AFIPS 32, 1968). They begin with each key and its mirror
# image, so that the lesser key always goes first: rows of any length behave as if infinite keys followed. Keys are in registers
# for a few steps. Equal values have equal bits, except zeros, which are put in their old order at the end.


BLOCK = 8  # keys in registers
STEPS = 3  # steps of a merge between loads and stores


def in_lanes(field: Field) -> Field:
    """Return the values of each row in order."""

    def body() -> None:
        rows = _Rows(field)
        k._globalThreads(-(-rows.rows // rows.lanes))
        k._localThreads(1)
        rows.sort()

    return library_call("sort", (field.type,), [field], body, "lanes", whole=True)[0]


def lanes_of(field: Field) -> int:
    """Return the number of rows of a thread."""
    return 8 if unsigned(field.type) == "uint64" else 16


class _Rows:
    """Some rows, and their keys: a row of keys has one of each."""

    def __init__(self, field: Field) -> None:
        self.field, self.kind, self.lanes = field, field.type, lanes_of(field)
        self.rows, self.count = field.field_shape
        self.size = max(1 << (self.count - 1).bit_length(), BLOCK)
        self.floating = np.dtype(self.kind.array_dtype).kind == "f"

    def row(self, lane: Any) -> Any:
        """Return the row of a lane; lanes past the end repeat the last row."""
        row = k._column * self.lanes + lane
        return k._min(row, self.rows - 1) if self.rows % self.lanes else row

    def read(self, lane: Any, at: Any) -> Any:
        return k._readTensor(self.field, self.row(lane), at, border="unchecked")

    def sort(self) -> None:
        array = k._ulongArray if unsigned(self.kind) == "uint64" else k._uintArray
        self.keys = array(self.size, self.lanes)
        with k._for((self.count, self.lanes)) as (i, lane):
            self.keys[i, lane] = key_of(self.read(lane, i), self.kind, zeros=True)
        with k._for((self.count, 0), (self.size, self.lanes)) as (i, lane):
            self.keys[i, lane] = last_key(self.kind)
        negative = k._intArray(self.lanes)  # number of negative zeros by lane
        with side_by_side(self.lanes) as lane:
            self._exchange(lane)
            if self.floating:
                negative[lane] = self._negative_zeros(lane)
        with k._for((self.count, self.lanes)) as (i, lane):
            k._writeTensor(k._out0, value_of(self.keys[i, lane], self.kind), self.row(lane), i)
        if self.floating:
            with k._for(self.lanes) as lane, k._if(negative[lane] > 0):
                self._order_zeros(lane)

    def _zero(self) -> Any:
        """Return the key of -0."""
        return key_of(k._convert(-0.0, str(self.kind.dtype)), self.kind, zeros=True)

    def _negative_zeros(self, lane: Any) -> Any:
        zero, count = k._var(self._zero()), k._intVar()
        with k._for(self.count) as i:
            count.assign(count + k._where(self.keys[i, lane] == zero, 1, 0))
        return count

    def _order_zeros(self, lane: Any) -> None:
        """Write zeros of both signs, which are equal, in their old order."""
        place, zero = k._intVar(), k._var(self._zero())
        with k._for(self.count) as i:
            place.assign(place + k._convert_int(self.keys[i, lane] < zero))
        with k._for(self.count) as i:
            value = self.read(lane, i)
            with k._if(value == 0):
                k._writeTensor(k._out0, value, self.row(lane), place)
                place.assign(place + 1)

    # --- exchanges ----------------------------------------------------------------------------------------------------

    def _exchange(self, lane: Any) -> None:
        with k._for(0, self.count, BLOCK) as first:
            ordered = k._sort([k._var(self.keys[first + n, lane]) for n in range(BLOCK)])
            for n, key in enumerate(ordered):
                self.keys[first + n, lane] = key
        size = 2 * BLOCK
        while size <= self.size:
            self._merge(lane, size)
            size *= 2

    def _merge(self, lane: Any, size: int) -> None:
        """Merge sorted halves of blocks of a size."""
        first, *others = _parts((size // BLOCK).bit_length() - 1)
        distance = size >> first
        with k._for(0, self.count, size) as begin:
            self._mirrored(lane, begin, size, first)
        for steps in (*others, STEPS):
            distance >>= steps
            begins = k._for(0, self.count, distance << steps)
            with begins as begin, k._for(k._min(distance, self.count - distance - begin)) as i:
                places = [begin + i + n * distance for n in range(1 << steps)]
                self._steps(lane, places, list(_halves(range(1 << steps))))

    def _mirrored(self, lane: Any, begin: Any, size: int, steps: int) -> None:
        """Exchange each key of a half with its mirror image in the other half, then within halves: the first steps of a merge."""
        half, distance = 1 << (steps - 1), size >> steps
        least = begin + (size - (half - 1) * distance - self.count)  # before this, all mirror images are past the row
        with k._for(k._max(least, 0), distance) as i:
            low = [begin + i + n * distance for n in range(half)]
            high = [begin + (size - 1 - n * distance) - i for n in range(half)]
            pairs = [(n, n + half) for n in range(half)]
            pairs += [*_halves(range(half)), *_halves(range(2 * half - 1, half - 1, -1))]
            self._steps(lane, low + high, pairs)

    def _steps(self, lane: Any, places: Sequence[Any], pairs: Sequence[tuple[int, int]]) -> None:
        """Exchange keys at some places if the first of a pair is greater than the second."""
        places = [k._var(place) for place in places]
        keys = [self.keys[place, lane] for place in places]
        for one, two in pairs:
            keys[one], keys[two] = k._min(keys[one], keys[two]), k._max(keys[one], keys[two])
        for place, key in zip(places, keys, strict=True):
            self.keys[place, lane] = key


def _halves(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Give the pairs of the two halves, number by number, then those within each half."""
    half = len(numbers) // 2
    if half:
        yield from zip(numbers[:half], numbers[half:], strict=True)
        yield from _halves(numbers[:half])
        yield from _halves(numbers[half:])


def _parts(steps: int) -> list[int]:
    """Split steps into groups of a few."""
    result = []
    while steps:
        result.append(STEPS if steps == STEPS or steps > STEPS + 1 else min(2, steps))
        steps -= result[-1]
    return result
