"""The kernels of scans: an operation combines the values of an axis up to each place.

A long axis is scanned in chunks, side by side: each chunk is reduced to one value, these are scanned, and then each
chunk begins with the value before it (G. Blelloch, Prefix sums and their applications, CMU-CS-90-190, 1990). Along the last axis
32 threads have a chunk, and scan four times as many values at a time; along others one thread has a chunk, as neighbours read
side by side there. Chunks depend on the shape alone, so results are equal on every device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gpuop.dsl as k
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.types import SMALL_TENSOR, FieldType, Shape
from gpuop.ops.layout.gather import own_place
from gpuop.ops.reduce.kernels import BUSY, NARROW, SHORT, Partial, by_groups, by_threads, planes_of, rows_of_group
from gpuop.ops.reduce.reducers import LONG, PER_ITERATION, Reducer, Split, split

Operation = Callable[[Any, Any], Any]
NAMES = {"sum": "cumsum", "prod": "cumprod"}
IN_A_ROW = 4  # neighbouring values that each thread takes at a time if several share a chunk


@dataclass(frozen=True)
class Scanned:
    """One step of a scan: the field, the axis and the chunks.

    Attributes:
        inclusive: whether a value is part of the result at its own place.
        last: whether the result has the reducer's result dtype, instead of the accumulator's.
    """

    reducer: Reducer
    field: Field
    axis: int
    parts: Split
    inclusive: bool
    last: bool

    @property
    def operation(self) -> Operation:
        assert self.reducer.operation is not None
        return self.reducer.operation

    @property
    def type(self) -> FieldType:
        dtype = self.field.dtype if self.field.dtype in COMPLEX_DTYPES else self.reducer.accumulator
        return self.field.type.replace(dtype=self.reducer.result if self.last else dtype)

    @property
    def open(self) -> bool:
        """Return whether the kernel is to be the same for other extents."""
        return self.field.node.dynamic

    def first_of(self, chunk: Any) -> Any:
        """Return the first position of a chunk; whether an int is too small for the product does not depend on the chunks."""
        if not self.open:
            return chunk * self.parts.size
        return k._as_int(k._as_uint(chunk) * k._convert_uint(self.parts.size))

    def place(self, own: list[Any], at: Any) -> list[Any]:
        """Return the point at a position of the axis; `own` are the coordinates on other axes."""
        return [*own[: self.axis], at, *own[self.axis :]]

    def load(self, own: list[Any], at: Any) -> Any:
        point = self.place(own, k._min(at, self.parts.count - 1))
        return k._convert(
            k._readTensorElement(self.field, *point, k._tensorElement, border="unchecked"), self.reducer.accumulator
        )

    def store(self, own: list[Any], at: Any, value: Any) -> None:
        """Write the result up to a position: there, or at the next place if the scan is exclusive."""
        at = at if self.inclusive else at + 1
        with k._if(at < self.parts.count):
            k._writeTensorElement(k._out0, value, *self.place(own, at), k._tensorElement)

    def start(self, own: list[Any], before: Field | None, chunk: Any, first: Any) -> Any:
        """Return a variable with the result before a chunk; for the first one the identity, which an exclusive scan also writes."""
        neutral = k._convert(self.reducer.neutral, self.reducer.accumulator)
        if not self.inclusive:
            with k._if(first == 0):
                k._writeTensorElement(k._out0, neutral, *self.place(own, 0), k._tensorElement)
        if before is None:
            return k._var(neutral)
        return k._var(k._readTensorElement(before, *self.place(own, chunk), k._tensorElement, border="unchecked"))

    def call(self, before: Field | None, body: Callable[[], None], out: FieldType, *key: Any) -> Field:
        fields = [self.field, *([] if before is None else [before])]
        constants = (self.reducer, self.axis, self.parts, self.inclusive, self.open, *key)
        return library_call(
            NAMES.get(self.reducer.name, self.reducer.name), (out,), fields, body, constants, whole=True
        )[0]


def along_grid(reducer: Reducer, field: Field, axis: int, inclusive: bool, last: bool = True) -> Field:
    """Scan along a grid axis."""
    grid = field.field_shape
    rows = axis == len(grid) - 1 and grid[axis] > SHORT
    if rows:
        parts = rows_of(grid[axis])
    elif math.prod(grid) >= BUSY * grid[axis]:
        parts = Split(grid[axis], 1, grid[axis], 1)
    else:
        parts = split(grid[axis], 1, LONG, PER_ITERATION)
    step = Scanned(reducer, field, axis, parts, inclusive, last)
    before = None
    if parts.chunks > 1:
        before = along_grid(reducer, _totals(step) if rows else _columns(step), axis, False, False)
    return _by_lanes(step, before) if rows else _by_threads(step, before)


def rows_of(count: int) -> Split:
    """Return the chunks of a row, with full iterations only."""
    parts = split(count, NARROW, LONG, IN_A_ROW)
    return Split(count, NARROW, -(-parts.share // IN_A_ROW) * IN_A_ROW, parts.chunks)


def _columns(step: Scanned) -> Field:
    return by_threads(step.reducer, Partial(step.field), step.axis, False).values


def _totals(step: Scanned) -> Field:
    """Return the reduction of each chunk of a row; user functions need not be commutative, so these are scans."""
    if not step.reducer.key:
        return by_groups(step.reducer, Partial(step.field), 1, False, step.parts).values
    return _by_lanes(step, None, totals=True)


def _by_threads(step: Scanned, before: Field | None) -> Field:
    """Scan with one thread for each chunk and point of the other axes."""
    parts, grid = step.parts, list(step.type.field_shape)
    grid[step.axis] = parts.chunks

    def body() -> None:
        k._globalThreads(Shape(grid), planes_of(step.type))
        own = list(own_place(len(grid)))
        chunk = own.pop(step.axis)
        first = chunk * parts.share
        total = step.start(own, before, chunk, first)
        with k._for(parts.share) as j:
            total.assign(step.operation(total, step.load(own, first + j)))
            step.store(own, first + j, total)

    return step.call(before, body, step.type, "threads")


def _by_lanes(step: Scanned, before: Field | None, totals: bool = False) -> Field:
    """Scan a chunk of a row with threads side by side; a work-group has several chunks or rows.

    Args:
        totals: whether only the last value of each chunk is needed.
    """
    parts, rows = step.parts, Shape(step.type.field_shape[:-1])
    threads = (*rows, parts.chunks * parts.width) if rows else (parts.chunks, parts.width)
    out = Shape((*rows, parts.chunks if totals else parts.count))

    def body() -> None:
        k._globalThreads(threads, planes_of(step.type))
        k._localThreads(rows_of_group(threads[-2], parts.width, step.open), parts.width)
        own = list(own_place(len(threads))[:-1] if rows else ())
        chunk = k._groupColumn if rows else k._row
        first = step.first_of(chunk)
        total = step.start(own, before, chunk, first + k._localColumn)
        with k._for(parts.share // IN_A_ROW) as t:
            _one_iteration(step, own, first + t * (IN_A_ROW * parts.width), total, not totals)
        if totals:
            with k._if(k._localColumn == 0):
                k._writeTensorElement(k._out0, total, *own, chunk, k._tensorElement)

    return step.call(before, body, step.type.replace(field_shape=out), "lanes", totals)


def _one_iteration(step: Scanned, own: list[Any], first: Any, total: Any, write: bool) -> None:
    """Scan a few values of each thread, then combine them with those of earlier threads."""
    operation, column = step.operation, k._localColumn
    values = [step.load(own, first + column * IN_A_ROW)]
    for j in range(1, IN_A_ROW):
        values.append(operation(values[-1], step.load(own, first + column * IN_A_ROW + j)))
    scanned = k._scanGroup(values[-1], operation, over="column")
    if write:
        others = operation(total, k._shuffleGroupUp(scanned, 1, over="column"))
        start = k._where(column > 0, others, total)
        _store(step, own, first, [operation(start, value) for value in values])
    total.assign(operation(total, k._broadcastGroup(scanned, step.parts.width - 1, over="column")))


def _store(step: Scanned, own: list[Any], first: Any, values: list[Any]) -> None:
    """Write the values of one iteration. CUDA threads exchange them first, so that neighbours write side by side."""
    column = k._localColumn
    with k._codegenIf(k._target.backend == "cuda"):
        for j in range(IN_A_ROW):
            place = j * step.parts.width + column
            shuffled = [k._shuffleGroup(value, place / IN_A_ROW, over="column") for value in values]
            mine = shuffled[0]
            for i in range(1, IN_A_ROW):
                mine = k._where(column % IN_A_ROW == i, shuffled[i], mine)
            step.store(own, first + place, mine)
    with k._codegenElse():
        for j, value in enumerate(values):
            step.store(own, first + column * IN_A_ROW + j, value)


def along_tensor(reducer: Reducer, field: Field, axis: int, inclusive: bool) -> Field:
    """Scan along a tensor axis: no other thread's values are needed, so this fuses."""
    step = Scanned(reducer, field, axis, Split(1, 1, 1, 1), inclusive, True)
    extents = field.type.parts
    count, inner = extents[axis], math.prod(extents[axis + 1 :])

    def scan(number: Any) -> None:
        first = number // inner * (count * inner) + number % inner
        total = k._var(k._convert(reducer.neutral, reducer.accumulator))

        def at(j: Any) -> None:
            value = k._convert(k._readTensorElement(field, first + j * inner), reducer.accumulator)
            if not inclusive:
                k._writeTensorElement(k._out0, total, first + j * inner)
            total.assign(step.operation(total, value))
            if inclusive:
                k._writeTensorElement(k._out0, total, first + j * inner)

        _each(count, field.type.planes, at)

    return step.call(None, lambda: _each(field.type.planes // count, field.type.planes, scan), step.type, "elements")


def _each(count: int, planes: int, body: Callable[[Any], None]) -> None:
    """Give the numbers of elements, in a loop unless tensors are small."""
    if planes > SMALL_TENSOR:
        with k._for(count) as number:
            body(number)
    else:
        for number in range(count):
            body(number)
