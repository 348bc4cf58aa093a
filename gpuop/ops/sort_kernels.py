"""The kernels of sorting rows: by ranks where they are short, else by digits of 8 bits, the last one first.

A pass over a digit counts how often it has each value in each chunk of a row, adds up what comes before, and moves the values
there, in their order (radix sort: D. Knuth, The Art of Computer Programming 3, 5.2.5). Sorting is stable, so its result is one, and
may be computed in other ways on other targets: one thread has a chunk on CPUs, 32 have it on GPUs.
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

RADIX, BITS = 256, 8
SHORT = 32  # rows of so few values are ranked: each is compared with all
CHUNK = 4096  # values of a row that are counted together
WIDE = 32  # threads of GPUs that have a chunk


def by_rank(field: Field, places: bool) -> Field:
    """Short rows: a value's place is how many come before it."""
    count = field.field_shape[-1]
    out = field.type.replace(dtype="int32") if places else field.type

    def body() -> None:
        own = _key(k._readTensor(field), field.type)
        rank = k._var(0)
        with k._for(count) as j:
            other = _key(k._readTensor(field, k._row, j, border="unchecked"), field.type)
            rank.assign(rank + k._convert_int((other < own) | ((other == own) & (j < k._column))))
        k._writeTensor(k._out0, k._column if places else k._readTensor(field), k._row, rank)

    return library_call("sort", (out,), [field], body, ("rank", places), whole=True)[0]


def by_digits(field: Field, places: bool) -> Field:
    """Long rows: of the values, or where each of them was."""
    order: Field | None = None
    for shift in range(0, 8 * np.dtype(field.type.array_dtype).itemsize, BITS):
        at = _number(shift)
        starts = _starts(field, at)
        field, order = _moved(field, order, starts, at, places)
    assert order is not None or not places
    return order if order is not None else field


@functools.lru_cache
def _number(value: int) -> Field:
    """A number that kernels of one text take, so that they are compiled once."""
    return Field(np.asarray(value, np.int32))


def _key(value: Any, kind: FieldType) -> Any:
    """What has the order of values as an integer without a sign: NaN comes last, zeros of both signs are one."""
    dtype = np.dtype(kind.array_dtype)
    if dtype.kind == "f":
        bits = 8 * dtype.itemsize
        as_bits, top = (k._as_ulong, 1 << 63) if bits == 64 else (k._as_uint, 1 << 31)
        unsigned = "uint64" if bits == 64 else "uint32"
        found = as_bits(k._where(value == 0, 0.0, value))
        ordered = k._where(found >= k._convert(top, unsigned), ~found, found | k._convert(top, unsigned))
        return k._where(value != value, ~k._convert(0, unsigned), ordered)
    if dtype.itemsize == 8:
        found = k._as_ulong(value)
        return found ^ k._convert(1 << 63, "uint64") if dtype.kind == "i" else found
    if dtype.itemsize == 4:
        found = k._as_uint(value)
        return found ^ k._convert(1 << 31, "uint32") if dtype.kind == "i" else found
    return k._convert_uint(k._convert_int(value) + (1 << (8 * dtype.itemsize - 1) if dtype.kind == "i" else 0))


class _Chunk:
    """What a work-group has of a row. `alone` is whether one thread has all of it; else each has values in a row."""

    def __init__(self, field: Field, shift: Field) -> None:
        self.field, self.shift = field, shift
        rows, self.count = field.field_shape
        self.size = min(CHUNK, self.count)
        self.chunks = -(-self.count // self.size)
        self.each = -(-self.size // WIDE)
        k._globalThreads(rows, self.chunks * WIDE)
        k._localThreads(1, WIDE)

    def values(self, each: Callable[[Any, Any, Any], None], alone: bool) -> None:
        """Call a function with the values of a thread, in order: where each is, what it is, and its digit."""
        own = 0 if alone else k._localColumn * self.each
        first = k._groupColumn * self.size + own
        count = self.size if alone else k._min(self.each, self.size - own)
        with k._for(k._min(count, self.count - first)) as j:
            value = k._readTensor(self.field, k._row, first + j, border="unchecked")
            key = _key(value, self.field.type)
            shift = k._readTensor(self.shift)
            each(first + j, value, k._convert_int((key >> k._convert(shift, _unsigned(self.field.type))) & (RADIX - 1)))

    def counted(self, counts: Any, thread: Any, alone: bool) -> None:
        """Count the digits of a thread's values."""

        def count(at: Any, value: Any, digit: Any) -> None:
            counts[digit, thread] = counts[digit, thread] + 1

        with k._for(RADIX) as d:
            counts[d, thread] = 0
        self.values(count, alone)


def _unsigned(kind: FieldType) -> str:
    return "uint64" if np.dtype(kind.array_dtype).itemsize == 8 else "uint32"


def _starts(field: Field, shift: Field) -> tuple[Field, Field]:
    """Where the values of each digit begin in a row, and how many of them the chunks before each have."""
    rows, count = field.field_shape
    chunks = -(-count // CHUNK)

    def body() -> None:
        chunk = _Chunk(field, shift)
        counts = k._local(k._ushortArray(RADIX, WIDE + 1))
        with k._codegenIf(k._target.device == "cpu"), k._if(k._localColumn == 0):
            chunk.counted(counts, 0, True)
            with k._for(RADIX) as d:
                k._writeTensor(k._out0, k._convert_int(counts[d, 0]), k._row, k._groupColumn, d)
        with k._codegenElse():
            chunk.counted(counts, k._localColumn, False)
            k._syncThreadsLocal()
            with k._for(k._localColumn, RADIX, WIDE) as d:
                total = k._var(0)
                with k._for(WIDE) as thread:
                    total.assign(total + k._convert_int(counts[d, thread]))
                k._writeTensor(k._out0, total, k._row, k._groupColumn, d)

    out = FieldType((rows, chunks, RADIX), (), "int32")
    counts = library_call("sort", (out,), [field, shift], body, "counts", whole=True)[0]
    totals = counts.sum(axis=1).astype("int32")
    adder = replace(reducer_of("sum", counts.type, 1), held="int32", result="int32")
    return along_grid(adder, totals, 1, False), along_grid(adder, counts, 1, False)


class _Moving(_Chunk):
    """How the values of a chunk are moved. `first` is where the next one of each digit goes, or the chunk's first one."""

    def __init__(
        self, field: Field, order: Field | None, starts: tuple[Field, Field], shift: Field, places: bool
    ) -> None:
        super().__init__(field, shift)
        self.order, self.starts, self.places = order, starts, places
        self.first = k._local(k._intArray(RADIX))

    def begin(self, digit: Any) -> None:
        base, before = self.starts
        in_row = k._readTensor(before, k._row, k._groupColumn, digit, border="unchecked")
        self.first[digit] = k._readTensor(base, k._row, digit, border="unchecked") + in_row

    def put(self, at: Any, value: Any, place: Any) -> None:
        k._writeTensor(k._out0, value, k._row, place)
        if self.places:
            was = at if self.order is None else k._readTensor(self.order, k._row, at, border="unchecked")
            k._writeTensor(k._out1, was, k._row, place)

    def alone(self) -> None:
        def move(at: Any, value: Any, digit: Any) -> None:
            place = k._var(self.first[digit])
            self.first[digit] = place + 1
            self.put(at, value, place)

        with k._for(RADIX) as d:
            self.begin(d)
        self.values(move, True)

    def together(self) -> None:
        """Each thread counts its values, so that it knows how many of each digit the threads before it have."""
        counts = k._local(k._ushortArray(RADIX, WIDE + 1))
        self.counted(counts, k._localColumn, False)
        k._syncThreadsLocal()
        with k._for(k._localColumn, RADIX, WIDE) as d:
            self.begin(d)
            running = k._ushortVar(0)
            with k._for(WIDE) as thread:
                own = k._var(counts[d, thread])
                counts[d, thread] = running
                running.assign(running + own)
        k._syncThreadsLocal()

        def move(at: Any, value: Any, digit: Any) -> None:
            rank = k._var(counts[digit, k._localColumn])
            counts[digit, k._localColumn] = rank + 1
            self.put(at, value, self.first[digit] + k._convert_int(rank))

        self.values(move, False)


def _moved(
    field: Field, order: Field | None, starts: tuple[Field, Field], shift: Field, places: bool
) -> tuple[Field, Field | None]:
    """The values, and where they were if `places` are wanted, in the order of a digit."""

    def body() -> None:
        moving = _Moving(field, order, starts, shift, places)
        with k._codegenIf(k._target.device == "cpu"), k._if(k._localColumn == 0):
            moving.alone()
        with k._codegenElse():
            moving.together()

    types = (field.type, field.type.replace(dtype="int32"))[: 1 + places]
    given = [field, shift, *starts, *([] if order is None else [order])]
    made = library_call("sort", types, given, body, ("moved", places, order is None), whole=True)
    return made[0], made[1] if places else None
