"""The kernels of reductions: one step each from a field to a smaller one. Several steps reduce what is large.

All add in an order that the shapes decide, so results are equal in every run and on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.types import BY_NUMPY, SMALL_TENSOR, FieldType, Shape
from gpuop.ops.layout.gather import own_place
from gpuop.ops.reduce.reducers import AT_ONCE, LONG, TURN, Item, Reducer, Split, assign, pairwise, share, split
from gpuop.ops.symbolic_numbers import passed, read

NARROW, WIDE = 32, 256  # threads that share a row of a field; a work-group has rows for so many as the latter
BUSY = 2**16  # threads that keep a device busy
FAN = 4  # threads of which one takes what all have
MOST = 2**30  # elements of fields whose extents are arguments
SHORT = 32  # an axis of so few points is left to single threads


@dataclass(frozen=True)
class Partial:
    """Values that are reduced in part.

    Attributes:
        values, places: fields; `places` says where each value was found, None before the first step.
        step: what the position grows by from one point of the axis being reduced to the next.
    """

    values: Field
    places: Field | None = None
    step: int = 1

    @property
    def open(self) -> bool:
        """Whether no kernel is to know its extents, nor what follows from them."""
        return self.values.node.dynamic and max(self.type.field_shape, default=0) <= self.most

    @property
    def steps(self) -> tuple[Field, ...]:
        """The step as a kernel gets it that is not to know it."""
        return passed(self.step) if self.open and self.step > 1 else ()

    @property
    def most(self) -> int:
        """An extent that all axes may have for an int to count what they hold, and whatever is added to it."""
        return int((MOST // self.type.planes) ** (1 / max(len(self.type.field_shape), 1)))

    @property
    def type(self) -> FieldType:
        return self.values.type

    def read_by(self, reducer: Reducer) -> Reducer:
        """The reducer of values that a thread reads one after another: those that were not reduced yet are in order."""
        return replace(reducer, ordered=self.places is None)

    def load(self, reducer: Reducer, point: Sequence[Any], element: Any, at: Any) -> Item:
        """What is at a point, which is position `at` of the axis being reduced."""
        value = k._convert(k._readTensorElement(self.values, *point, element, border="unchecked"), reducer.held)
        if not reducer.places:
            return (value,)
        step = read(self.steps, [(1, MOST)])[0] if self.steps else self.step
        here = k._convert(at, reducer.places) * step
        if self.places is None:
            return value, here
        return value, here + k._readTensorElement(self.places, *point, element, border="unchecked")


def a_step(
    reducer: Reducer,
    given: Partial,
    kind: FieldType,
    last: bool,
    key: Any,
    body: Callable[[Callable[..., None]], None],
    numbers: Sequence[Field] = (),
) -> Partial:
    """Record a step; its body gets a function that writes an item at a place of the result.

    Args:
        numbers: what the body reads that follows from extents.
    """
    held = "complex64" if given.type.dtype == "complex64" else reducer.held
    types = [kind.replace(dtype=reducer.result if last else held)]
    if reducer.places and not last:
        types.append(kind.replace(dtype=reducer.places))

    divisors = passed(reducer.divisor) if given.open and last and reducer.divisor else ()

    def write(item: Item, *place: Any) -> None:
        divisor = k._convert(read(divisors, [(1, MOST)])[0], reducer.divided) if divisors else reducer.divisor
        for out, part in zip((k._out0, k._out1), (reducer.finished(item, divisor),) if last else item, strict=False):
            k._writeTensorElement(out, part, *place)

    fields = [given.values] + ([given.places] if given.places is not None else [])
    fields += (*numbers, *divisors, *(given.steps if reducer.places else ()))
    outputs = library_call(reducer.name, tuple(types), fields, lambda: body(write), (reducer, given.step, last, *key))
    return Partial(outputs[0], outputs[1] if len(outputs) > 1 else None)


def planes_of(kind: FieldType) -> Shape:
    """The scalars of a point: what is reduced independently."""
    return Shape(kind.planes) if kind.planes > 1 else Shape()


def by_threads(reducer: Reducer, given: Partial, axis: int, last: bool) -> Partial:
    """Reduce a grid axis by up to 64: each thread reads along it, for one point of the result.

    Neighbours read side by side where it is not the last axis. The axis stays where it is longer than that.
    """
    grid = given.type.field_shape
    parts = split(grid[axis], 1, LONG, TURN)
    out = Shape((*grid[:axis], *([parts.chunks] if parts.chunks > 1 else []), *grid[axis + 1 :]))
    numbers = passed(*parts.numbers) if given.open else ()

    def body(write: Callable[..., None]) -> None:
        own = list(own_place(len(out)))
        chunk: Any = own.pop(axis) if parts.chunks > 1 else 0
        with k._forEachTensorElement(planes_of(given.type)):
            item = share(
                given.read_by(reducer),
                lambda at: given.load(reducer, (*own[:axis], at, *own[axis:]), k._tensorElement, at),
                parts,
                chunk,
                numbers=read(numbers, parts.bounds(given.most)) if numbers else (),
            )
            write(item, k._tensorElement)

    done = last and parts.chunks == 1
    return a_step(reducer, given, given.type.replace(field_shape=out), done, ("threads", axis), body, numbers)


def by_groups(reducer: Reducer, given: Partial, axes: int, last: bool, parts: Split | None = None) -> Partial:
    """Reduce the last grid axes together: threads side by side read a row of values, and a tree in local memory joins them.

    A row has up to 8,192 values; an axis of chunks stays where there are more. As few threads share it as keep a device
    busy, so that trees are low; a work-group takes several rows. Chunks that others go by are given as `parts`.
    """
    grid = given.type.field_shape
    kept, reduced = Shape(grid[: len(grid) - axes]), Shape(grid[len(grid) - axes :])
    parts = parts or chunks_of(reduced.points, kept.points)
    width = parts.width
    out = Shape((*kept, *([parts.chunks] if parts.chunks > 1 else [])))
    apart = not kept or (given.open and len(kept) == 1 and parts.chunks > 1)  # whether chunks have an axis of the grid
    threads = (*kept, parts.chunks, width) if apart else (*kept, parts.chunks * width)
    numbers = passed(*parts.numbers, *reduced[1:]) if given.open else ()

    def body(write: Callable[..., None]) -> None:
        k._globalThreads(threads, planes_of(given.type))
        k._localThreads(min(WIDE // width, 1 << max(threads[-2] - 1, 0).bit_length()), width)
        own = own_place(len(threads))[: len(kept)]
        chunk = k._row if apart else k._groupColumn
        bounds = parts.bounds(given.most if axes == 1 else max(given.most, AT_ONCE))
        known = read(numbers, (*bounds, *((1, AT_ONCE) for _ in reduced[1:]))) if numbers else []
        extents = known[len(bounds) :] if numbers else reduced[1:]
        item = share(
            given.read_by(reducer),
            lambda at: given.load(reducer, (*own, *_unravelled(at, extents)), k._tensorElement, at),
            parts,
            chunk,
            k._localColumn,
            known[: len(bounds)],
        )
        joined = _joined(reducer, item, width)
        with k._if(k._localColumn == 0):
            write(joined, *own, *([chunk] if parts.chunks > 1 else []), k._tensorElement)

    done = last and parts.chunks == 1
    return a_step(reducer, given, given.type.replace(field_shape=out), done, ("groups", axes, parts), body, numbers)


def chunks_of(count: int, rows: int) -> Split:
    """Chunks of rows of so many values, and the threads that share them."""
    width = _width(count, rows)
    return split(count, width, AT_ONCE // width, TURN)


def _width(count: int, rows: int) -> int:
    """The threads that share a row of so many values: more where there are few rows, but each with values enough."""
    chunks = rows * -(-count // AT_ONCE)
    width = NARROW
    while width < WIDE and width * chunks < BUSY and width * 2 * TURN < count:
        width *= 2
    return width


def _unravelled(at: Any, extents: Sequence[Any]) -> list[Any]:
    """Coordinates of a position in row-major order, along an axis more than there are extents: nobody asks for the first one."""
    found: list[Any] = []
    for extent in reversed(extents):
        found.append(at % extent)
        at = at / extent
    return [at, *reversed(found)]


def _joined(reducer: Reducer, mine: Item, width: int) -> Item:
    """The tree: a few of the threads take what the others have, until one has all. Few levels have few barriers."""
    dtypes = (reducer.held, reducer.places)[: len(mine)]
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
    reducer: Reducer, given: Partial, tensor: Shape, count: int, strides: tuple[int, int, int], last: bool
) -> Partial:
    """Reduce tensor axes, of each thread's own point: no other thread's values are needed, so it fuses.

    Args:
        tensor: the shape that is left.
        count: values for each element that is left.
        strides: from one element that is left to the next, from one value to the next, and the parts of an element.
    """
    outer, inner, parts_of_one = strides
    left = given.type.planes // count
    parts = Split(count, 1, count, 1)

    def element(number: Any) -> Item:
        first = number * outer if parts_of_one == 1 else number // parts_of_one * outer + number % parts_of_one
        return share(reducer, lambda at: given.load(reducer, (), first + at * inner, at), parts, 0)

    def body(write: Callable[..., None]) -> None:
        if left > SMALL_TENSOR:
            with k._forEachTensorElement(left):
                write(element(k._tensorElement), k._tensorElement)
        else:
            for number in range(left):
                write(element(number), number)

    return a_step(
        reducer, given, given.type.replace(tensor_shape=tensor), last, ("elements", tensor, count, strides), body
    )
