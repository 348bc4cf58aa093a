"""Accumulators of reductions, and the combination of two of them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import field
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.records import dataclass
from gpuop.ir.dtype_names import part_dtype, wide_float
from gpuop.ir.monoids import MONOIDS
from gpuop.ir.types import BY_NUMPY, FieldType
from gpuop.ops.symbolic_numbers import Bounds

Item = tuple[Any, ...]  # a kernel value; for argmin and argmax also its position
PER_ITERATION = 8  # values that a thread reads in each iteration of a loop; fewer are read without a loop
FEW = 2  # values that compilers are asked to unroll, if PER_ITERATION are too many
AT_ONCE = 8192  # values of a row that a work-group reduces
LONG = 64  # values that a single thread reduces
FEWEST_BITS = 64  # narrower integers are summed exactly, in integers of so many bits


@dataclass(frozen=True)
class Reducer:
    """A reduction of a dtype.

    Attributes:
        name: the NumPy name.
        accumulator: the accumulator's dtype; exact for the values, and for sums of integers.
        result: the dtype of the result.
        places: the dtype of positions beside the values; "" if there are none.
        keyed: whether an item is one integer, its position, greater by `beyond` where the value is not the one looked for.
        divisor: the divisor of a mean.
        ordered: whether items are combined in the order of their positions.
        operation: combines two values; None if one of them is chosen.
        neutral: the identity of the operation.
        key: for user functions, identifies the function and its identity element.
    """

    name: str
    accumulator: str
    result: str
    places: str = ""
    keyed: bool = False
    divisor: int = 0
    ordered: bool = False
    operation: Callable[[Any, Any], Any] | None = field(default=None, compare=False)
    neutral: float | int = field(default=0, compare=False)
    key: str = ""

    @property
    def in_a_row(self) -> int:
        """Return how many values compilers are asked to unroll: Intel's crashes on seven integer selects, or on two times four."""
        choices = self.name in ("min", "max") or self.key
        return FEW if choices and np.dtype(self.accumulator).kind != "f" else PER_ITERATION

    @property
    def has_positions(self) -> bool:
        """True if items know their positions."""
        return bool(self.places) or self.keyed

    @property
    def beyond(self) -> int:
        """The sum that tells the key of a value that is not looked for: greater than any position."""
        return 1 << (8 * np.dtype(self.accumulator).itemsize - 2)

    def item_of(self, value: Any, here: Any) -> Item:
        """Return the item of a value at a position."""
        if not self.keyed:
            return value, here
        extreme = value if self.name.endswith("max") else ~value
        return (here + k._where(extreme, 0, self.beyond),)

    @property
    def divided(self) -> str:
        """The dtype of the dividend."""
        return self.accumulator if np.dtype(self.accumulator).kind == "f" else "float32"

    def combine(self, a: Item, b: Item) -> Item:
        """Combine two items: by the operation, or the smaller or greater one; of equal ones the first."""
        if self.operation is not None:
            return (self.operation(a[0], b[0]),)
        if not self.places:
            return (_select(self._before(a[0], b[0]), a[0], b[0]),)
        first = self._before(a[0], b[0])
        if not self.ordered:
            first &= ~self._before(b[0], a[0]) | (a[1] <= b[1])
        return _select(first, a[0], b[0]), _select(first, a[1], b[1])

    def _before(self, a: Any, b: Any) -> Any:
        """Return whether a is at least as extreme as b; NaN is more extreme than numbers, or less if it is left out."""
        ordered = a <= b if self.name.endswith("min") else a >= b
        if np.dtype(self.accumulator).kind != "f":
            return ordered
        return ordered | (b != b if self.name.startswith("nan") else a != a)

    def finished(self, item: Item, divisor: Any) -> Any:
        """Return the result of a whole reduction."""
        if self.keyed:
            return k._convert(item[0] & (self.beyond - 1), "int64")
        if self.places:
            return k._convert(item[1], "int64")
        if not self.divisor:
            return item[0]
        mean = k._convert(item[0], self.divided) / divisor
        return k._convert(mean, part_dtype(self.result)) if self.accumulator == "float64" else mean


def _select(first: Any, a: Any, b: Any) -> Any:
    return k._where(first, a, b)


OPERATIONS = {
    "sum": MONOIDS["add"],
    "mean": MONOIDS["add"],
    "prod": MONOIDS["mul"],
}  # the others choose one of two values


def reducer_of(name: str, kind: FieldType, count: int) -> Reducer:
    """Return the reducer of a field's type; `count` values become one."""
    dtype = "float32" if kind.dtype == "unorm8" else wide_float(part_dtype(kind.dtype))
    result = "float32" if kind.dtype == "unorm8" else kind.dtype
    number = np.dtype(dtype)
    if name in OPERATIONS:
        wide = {"b": "int64", "i": "int64", "u": "uint64"}.get(number.kind)
        accumulator, result = wide or dtype, wide or result
        if name == "mean" and wide:
            accumulator, result = wide if 8 * number.itemsize < FEWEST_BITS else "float64", "float32"
        operation, neutral = getattr(operator, OPERATIONS[name].name), OPERATIONS[name].neutral(BY_NUMPY[accumulator])
        return Reducer(
            name, accumulator, result, divisor=count * (name == "mean"), operation=operation, neutral=neutral
        )
    if name in ("min", "max", "nanmin", "nanmax"):
        return Reducer(name, "uint8" if dtype == "bool" else dtype, result)
    points = kind.array_shape.points
    if dtype == "bool":  # by integers: NVIDIA's compilers extend some of the compared bytes by their sign
        accumulator = "int32" if points < 2**30 else "int64"
        return Reducer(name, accumulator, "int64", keyed=True, operation=k._min, neutral=np.iinfo(accumulator).max)
    return Reducer(name, dtype, "int64", places="int32" if points < 2**31 else "int64")


@dataclass(frozen=True)
class Split:
    """A split of `count` values into `chunks`; in each `width` threads side by side take `share` values each.

    Attributes:
        full: whether shares are full iterations, as in all splits that are made alike of as many values or more.
    """

    count: int
    width: int
    share: int
    chunks: int
    full: bool = False

    @property
    def size(self) -> int:
        """The values of a chunk; the last one may have fewer."""
        return self.width * self.share

    @property
    def whole(self) -> int:
        """The number of values in a share that all threads have, in all chunks."""
        return (self.count - (self.chunks - 1) * self.size) // self.width

    @property
    def numbers(self) -> tuple[int, ...]:
        """The values, those of a share, those that all threads have, and those of the last chunk."""
        return self.count, self.share, self.whole, self.chunks - 1

    def bounds(self, most: int) -> tuple[Bounds, ...]:
        """Return the bounds of these numbers, for an axis of at most this extent."""
        share = LONG if self.width == 1 else AT_ONCE // self.width
        return (1, most), (1, share), (0, share), (0, most // (share * self.width))


def split(count: int, width: int, most: int, step: int = 1) -> Split:
    """Return equal chunks of shares of at most `most` values; several chunks have multiples of `step` values."""
    chunks = -(-count // (width * most))
    share = -(-count // (width * chunks))
    share = -(-share // step) * step if chunks > 1 else share
    return Split(count, width, share, -(-count // (width * share)), chunks > 1 and step % PER_ITERATION == 0)


Load = Callable[[Any], Item]  # returns the item at a position below the count


def share(reducer: Reducer, load: Load, parts: Split, chunk: Any, own: Any = 0, numbers: Sequence[Any] = ()) -> Item:
    """Reduce a thread's share: every `width`-th value of a chunk, from the thread's own on.

    No thread branches. Reads past the last value change nothing, and occur only in the iterations in which a thread needs them.

    Args:
        numbers: the numbers of the split, if the kernel must not depend on them.
    """

    def guarded(at: Any) -> Item:
        return _guarded(reducer, load, at, numbers[0] if numbers else parts.count)

    if parts.chunks == parts.width == 1 and parts.share <= PER_ITERATION:
        few = [guarded(j) for j in range(PER_ITERATION)] if numbers else [load(j) for j in range(parts.share)]
        return pairwise(reducer, few)
    if numbers:
        return _open_share(reducer, load, guarded, parts, chunk, own, numbers)
    first = chunk * parts.size + own if parts.chunks > 1 else own
    total = _started(reducer, load if parts.whole else guarded, first)
    iterations, rest = divmod(parts.share, PER_ITERATION)
    safe = parts.whole // PER_ITERATION
    _iterate(reducer, total, load, first, safe, parts.width)
    _iterate(reducer, total, guarded, first + safe * PER_ITERATION * parts.width, iterations - safe, parts.width)
    if rest:
        _one_iteration(
            reducer,
            total,
            load if parts.whole == parts.share else guarded,
            first + iterations * PER_ITERATION * parts.width,
            rest,
            parts.width,
        )
    return total


def _open_share(
    reducer: Reducer, load: Load, guarded: Load, parts: Split, chunk: Any, own: Any, numbers: Sequence[Any]
) -> Item:
    """Reduce in the same order with numbers that are arguments: whether there is one chunk, or full iterations, is known."""
    _, count, whole, last = numbers
    first = k._min(chunk, last) * (count * parts.width) + own if parts.chunks > 1 else own
    total = _started(reducer, guarded, first)
    iterations, rest, safe = count / PER_ITERATION, count % PER_ITERATION, whole / PER_ITERATION
    _iterate(reducer, total, load, first, safe, parts.width)
    _iterate(reducer, total, guarded, first + safe * (PER_ITERATION * parts.width), iterations - safe, parts.width)
    if not parts.full:
        with k._if(rest > 0) if reducer.key else nullcontext():  # the identity of a user function may change values
            _one_iteration(
                reducer, total, guarded, first + iterations * (PER_ITERATION * parts.width), rest, parts.width
            )
    return total


def _started(reducer: Reducer, load: Load, first: Any) -> Item:
    """Return accumulators, which have no value yet, or that of the first position, which changes nothing."""
    return tuple(map(k._var, (k._convert(reducer.neutral, reducer.accumulator),) if reducer.operation else load(first)))


def _iterate(reducer: Reducer, total: Item, load: Load, first: Any, iterations: Any, width: int) -> None:
    """Reduce some iterations, of every `width`-th value from the first on, into the accumulators."""
    if isinstance(iterations, int) and iterations == 1:
        _one_iteration(reducer, total, load, first, PER_ITERATION, width)
    elif not isinstance(iterations, int) or iterations:
        with k._for(iterations) as t:
            _one_iteration(reducer, total, load, first + t * (PER_ITERATION * width), PER_ITERATION, width)


def _one_iteration(reducer: Reducer, total: Item, load: Load, first: Any, count: Any, width: int) -> None:
    """Reduce one iteration into the accumulators. Sums have a partial sum of their own: fewer additions in a row round less.

    It is a loop, so that the text has the values' expression once, however long that is; compilers unroll short loops.
    """
    part = (k._var(k._convert(reducer.neutral, reducer.accumulator)),) if reducer.operation else total
    with k._for(count, unroll=min(count, reducer.in_a_row) if isinstance(count, int) else False) as j:
        take(reducer, part, load(first + j * width))
    if reducer.operation:
        take(reducer, total, part)


def _guarded(reducer: Reducer, load: Load, at: Any, count: Any) -> Item:
    """Return the item at a position; past the end the identity, or the last value, which changes nothing."""
    item = load(k._min(at, count - 1))
    return (
        (k._where(at < count, item[0], k._convert(reducer.neutral, reducer.accumulator)),)
        if reducer.operation
        else item
    )


def take(reducer: Reducer, total: Item, item: Item) -> None:
    """Combine accumulators and an item, into the accumulators."""
    assign(total, reducer.combine(total, item))


def assign(variables: Item, item: Item) -> None:
    for variable, part in zip(variables, item, strict=True):
        variable.assign(part)


def pairwise(reducer: Reducer, items: Sequence[Item]) -> Item:
    """Pairwise combination: the error of n additions is that of log2(n) in a row (N. Higham, SIAM J. Sci. Comput. 14(4), 1993)."""
    while len(items) > 1:
        pairs = [reducer.combine(a, b) for a, b in zip(items[::2], items[1::2], strict=False)]
        items = [*pairs, *items[len(pairs) * 2 :]]
    return items[0]
