"""The kernels of reductions: each reduces a field to a smaller one in one step; large fields take several steps.

The order of additions depends on the shapes alone, so results are equal in every run and on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import gpuop.dsl as k
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.types import BY_NUMPY, SMALL_TENSOR, FieldType, Shape
from gpuop.ops.layout.gather import own_place
from gpuop.ops.reduce.reducers import AT_ONCE, LONG, PER_ITERATION, Item, Reducer, Split, assign, pairwise, share, split
from gpuop.ops.symbolic_numbers import passed, read

NARROW, WIDE = 32, 256  # threads of a row, and of a work-group with short rows
BUSY = 2**16  # threads that keep a device busy
FAN = 4  # a tree level combines the items of so many threads
MOST = 2**30  # elements of fields with dynamic extents
SHORT = 32  # shorter axes are reduced by single threads


@dataclass(frozen=True)
class Partial:
    """Partly reduced values.

    Attributes:
        values, places: fields; `places` has the position of each value, None before the first step.
        step: the difference of positions between neighbours on the reduced axis.
    """

    values: Field
    places: Field | None = None
    step: int = 1

    @property
    def open(self) -> bool:
        """Return whether the kernel must not depend on the extents."""
        return self.values.node.dynamic and max(self.type.field_shape, default=0) <= self.most

    @property
    def steps(self) -> tuple[Field, ...]:
        """The step as a kernel argument, for kernels that do not depend on it."""
        return passed(self.step) if self.open and self.step > 1 else ()

    @property
    def most(self) -> int:
        """The largest extent for which an int counts the elements, and all offsets."""
        return int((MOST // self.type.planes) ** (1 / max(len(self.type.field_shape), 1)))

    @property
    def type(self) -> FieldType:
        return self.values.type

    def read_by(self, reducer: Reducer) -> Reducer:
        """Return the reducer for a thread that reads several values; values that are not reduced yet are in order."""
        return replace(reducer, ordered=self.places is None)

    def load(self, reducer: Reducer, point: Sequence[Any], element: Any, at: Any) -> Item:
        """Return the item at a point, with position `at` on the reduced axis."""
        value = k._readTensorElement(self.values, *point, element, border="unchecked")
        first = self.places is None and not (reducer.keyed and self.type.dtype != "bool")
        value = value if reducer.keyed else k._convert(value, reducer.accumulator)
        if not reducer.has_positions:
            return (value,)
        step = read(self.steps, [(1, MOST)])[0] if self.steps else self.step
        here = k._convert(at, reducer.places or reducer.accumulator) * step
        if first:
            return reducer.item_of(value, here)
        if reducer.keyed:
            return (value + here,)
        return value, here + k._readTensorElement(self.places, *point, element, border="unchecked")


def a_step(
    reducer: Reducer,
    source: Partial,
    kind: FieldType,
    last: bool,
    key: Any,
    body: Callable[[Callable[..., None]], None],
    numbers: Sequence[Field] = (),
) -> Partial:
    """Record a step; its body gets a function that writes an item at a place of the result.

    Args:
        numbers: numbers that follow from extents, for the body.
    """
    dtype = source.type.dtype if source.type.dtype in COMPLEX_DTYPES else reducer.accumulator
    types = [kind.replace(dtype=reducer.result if last else dtype)]
    if reducer.places and not last:
        types.append(kind.replace(dtype=reducer.places))

    divisors = passed(reducer.divisor) if source.open and last and reducer.divisor else ()

    def write(item: Item, *place: Any) -> None:
        divisor = k._convert(read(divisors, [(1, MOST)])[0], reducer.divided) if divisors else reducer.divisor
        for out, part in zip((k._out0, k._out1), (reducer.finished(item, divisor),) if last else item, strict=False):
            k._writeTensorElement(out, part, *place)

    fields = [source.values] + ([source.places] if source.places is not None else [])
    fields += (*numbers, *divisors, *(source.steps if reducer.has_positions else ()))
    outputs = library_call(reducer.name, tuple(types), fields, lambda: body(write), (reducer, source.step, last, *key))
    return Partial(outputs[0], outputs[1] if len(outputs) > 1 else None)


def planes_of(kind: FieldType) -> Shape:
    """Return the scalars of a point, which are reduced independently."""
    return Shape(kind.planes) if kind.planes > 1 else Shape()


def by_threads(reducer: Reducer, source: Partial, axis: int, last: bool) -> Partial:
    """Reduce a grid axis by up to 64: each thread reads along it, for one point of the result.

    If it is not the last axis, neighbouring threads read neighbouring points. Longer axes stay in part.
    """
    grid = source.type.field_shape
    parts = split(grid[axis], 1, LONG, PER_ITERATION)
    out = Shape((*grid[:axis], *([parts.chunks] if parts.chunks > 1 else []), *grid[axis + 1 :]))
    numbers = passed(*parts.numbers) if source.open else ()

    def body(write: Callable[..., None]) -> None:
        own = list(own_place(len(out)))
        chunk: Any = own.pop(axis) if parts.chunks > 1 else 0
        with k._forEachTensorElement(planes_of(source.type)):
            item = share(
                source.read_by(reducer),
                lambda at: source.load(reducer, (*own[:axis], at, *own[axis:]), k._tensorElement, at),
                parts,
                chunk,
                numbers=read(numbers, parts.bounds(source.most)) if numbers else (),
            )
            write(item, k._tensorElement)

    done = last and parts.chunks == 1
    return a_step(reducer, source, source.type.replace(field_shape=out), done, ("threads", axis), body, numbers)


def by_groups(reducer: Reducer, source: Partial, axes: int, last: bool, parts: Split | None = None) -> Partial:
    """Reduce the last grid axes together: threads side by side read a row of values, and a tree in local memory combines them.

    A row has up to 8,192 values; longer rows leave an axis of chunks. As few threads share a row as keep a device
    busy, so that trees are low; a work-group takes several rows. `parts` gives another chunking.
    """
    grid = source.type.field_shape
    rest, reduced = Shape(grid[: len(grid) - axes]), Shape(grid[len(grid) - axes :])
    parts = parts or chunks_of(reduced.points, rest.points)
    width = parts.width
    out = Shape((*rest, *([parts.chunks] if parts.chunks > 1 else [])))
    apart = not rest or (source.open and len(rest) == 1 and parts.chunks > 1)  # whether chunks have a grid axis
    threads = (*rest, parts.chunks, width) if apart else (*rest, parts.chunks * width)
    numbers = passed(*parts.numbers, *reduced[1:]) if source.open else ()

    def body(write: Callable[..., None]) -> None:
        k._globalThreads(threads, planes_of(source.type))
        k._localThreads(rows_of_group(threads[-2], width, source.open), width)
        own = own_place(len(threads))[: len(rest)]
        chunk = k._row if apart else k._groupColumn
        bounds = parts.bounds(source.most if axes == 1 else max(source.most, AT_ONCE))
        values = read(numbers, (*bounds, *((1, AT_ONCE) for _ in reduced[1:]))) if numbers else []
        extents = values[len(bounds) :] if numbers else reduced[1:]
        item = share(
            source.read_by(reducer),
            lambda at: source.load(reducer, (*own, *_unravelled(at, extents)), k._tensorElement, at),
            parts,
            chunk,
            k._localColumn,
            values[: len(bounds)],
        )
        joined = _joined(reducer, item, width)
        with k._if(k._localColumn == 0):
            write(joined, *own, *([chunk] if parts.chunks > 1 else []), k._tensorElement)

    done = last and parts.chunks == 1
    return a_step(reducer, source, source.type.replace(field_shape=out), done, ("groups", axes, parts), body, numbers)


def rows_of_group(rows: int, width: int, is_open: bool) -> int:
    """Return the rows of a work-group whose rows have `width` threads; for any number of rows but 1 if extents are open."""
    return WIDE // width if is_open and rows > 1 else min(WIDE // width, 1 << max(rows - 1, 0).bit_length())


def chunks_of(count: int, rows: int) -> Split:
    """Return the chunks of rows with this length, and the threads that share them: more for few rows, each with enough values."""
    width, chunks = NARROW, rows * -(-count // AT_ONCE)
    while width < WIDE and width * chunks < BUSY and width * 2 * PER_ITERATION < count:
        width *= 2
    return split(count, width, AT_ONCE // width, PER_ITERATION)


def _unravelled(at: Any, extents: Sequence[Any]) -> list[Any]:
    """Return the coordinates of a position in row-major order; `extents` lacks that of the first axis, which no one needs."""
    result: list[Any] = []
    for extent in reversed(extents):
        result.append(at % extent)
        at = at / extent
    return [at, *reversed(result)]


def _joined(reducer: Reducer, mine: Item, width: int) -> Item:
    """Reduce in a tree: a few threads take the items of the others, until one has all. Few levels need few barriers."""
    dtypes = (reducer.accumulator, reducer.places)[: len(mine)]
    shared = [k._local(getattr(k, f"_{BY_NUMPY[dtype].c}Array")(k._localRows, width)) for dtype in dtypes]
    _put(shared, (k._localRow, k._localColumn), mine)
    reach = width
    while reach > 1:
        count = min(FAN, reach)
        reach //= count
        k._syncThreadsLocal()
        with k._if(k._localColumn < reach):
            others = [
                tuple(array[k._localRow, k._localColumn + n * reach] for array in shared) for n in range(1, count)
            ]
            assign(mine, pairwise(reducer, [mine, *others]))
            if reach > 1:
                _put(shared, (k._localRow, k._localColumn), mine)
    return mine


def _put(arrays: Sequence[Any], place: tuple[Any, ...], item: Sequence[Any]) -> None:
    for array, part in zip(arrays, item, strict=True):
        array[place] = part


def by_elements(
    reducer: Reducer, source: Partial, tensor: Shape, count: int, strides: tuple[int, int, int], last: bool
) -> Partial:
    """Reduce tensor axes at each thread's own point: no other thread's values are needed, so this fuses.

    Args:
        tensor: the shape of the result's tensor.
        count: values for each element of the result.
        strides: between elements of the result, between values, and between the parts of an element.
    """
    outer, inner, parts_of_one = strides
    left = source.type.planes // count
    parts = Split(count, 1, count, 1)

    def element(number: Any) -> Item:
        first = number * outer if parts_of_one == 1 else number // parts_of_one * outer + number % parts_of_one
        return share(reducer, lambda at: source.load(reducer, (), first + at * inner, at), parts, 0)

    def body(write: Callable[..., None]) -> None:
        if left > SMALL_TENSOR:
            with k._forEachTensorElement(left):
                write(element(k._tensorElement), k._tensorElement)
        else:
            for number in range(left):
                write(element(number), number)

    return a_step(
        reducer, source, source.type.replace(tensor_shape=tensor), last, ("elements", tensor, count, strides), body
    )
