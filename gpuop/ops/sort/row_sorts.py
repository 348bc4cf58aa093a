"""Sorts of rows with up to some thousand values, each in one kernel: by ranks if they are short, else by digits in fast memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.dsl.operators.variants import either
from gpuop.ops.sort.keys import digit_of, digits_of, key_of, unsigned
from gpuop.ops.sort.row_networks import in_lanes, lanes_of
from gpuop.ops.sort.tiles import PLACES, OrderedTile, single

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
