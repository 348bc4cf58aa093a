"""What is kept of values while they are reduced, and how two of them become one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.ir.types import FieldType

Item = tuple[Any, ...]  # a kernel value; of argmin and argmax also where it was found
STRAIGHT = 32  # values that a thread reads without a loop, where threads share a row
TURN = 8  # values that it reads in each turn of one
FEWEST_BITS = 64  # integers of fewer bits are summed exactly, in integers of so many


@dataclass(frozen=True)
class Reducer:
    """A reduction of a dtype.

    Attributes:
        name: NumPy's.
        held: the dtype of what is kept; exact for the values, and for sums of integers.
        result: the dtype of the result.
        places: the dtype of positions while they are kept; empty where none are.
        divisor: of the mean.
    """

    name: str
    held: str
    result: str
    places: str = ""
    divisor: int = 0

    @property
    def adds(self) -> bool:
        return self.name in ("sum", "mean")

    @property
    def neutral(self) -> float | int:
        """What changes no sum: of floating values -0, as only that leaves a -0 what it is."""
        return -0.0 if np.dtype(self.held).kind == "f" else 0

    def combine(self, a: Item, b: Item) -> Item:
        """The sum, the smaller or the greater one; where both are equal, the first or the one found first."""
        if self.adds:
            return (a[0] + b[0],)
        if not self.places:
            return (_chosen(self._before(a[0], b[0]), a[0], b[0]),)
        first = self._before(a[0], b[0]) & (~self._before(b[0], a[0]) | (a[1] <= b[1]))
        return _chosen(first, a[0], b[0]), _chosen(first, a[1], b[1])

    def _before(self, a: Any, b: Any) -> Any:
        """Whether a is at least as extreme as b; NaN is more so than any number."""
        ordered = a <= b if self.name.endswith("min") else a >= b
        return ordered | (a != a) if np.dtype(self.held).kind == "f" else ordered

    def finished(self, item: Item) -> Any:
        """The result of a whole reduction."""
        if self.places:
            return k._convert(item[1], "int64")
        if not self.divisor:
            return item[0]
        total = item[0] if np.dtype(self.held).kind == "f" else k._convert_float(item[0])
        return total / self.divisor


def _chosen(first: Any, a: Any, b: Any) -> Any:
    return k._where(first, a, b)


def reducer_of(name: str, kind: FieldType, count: int) -> Reducer:
    """The reducer of a field's type; `count` values become one."""
    dtype = "float32" if kind.dtype in ("unorm8", "complex64", "float16") else kind.dtype
    result = "float32" if kind.dtype == "unorm8" else kind.dtype
    number = np.dtype(dtype)
    if name in ("sum", "mean"):
        wide = {"b": "int64", "i": "int64", "u": "uint64"}.get(number.kind)
        if name == "sum":
            return Reducer(name, wide or dtype, wide or result)
        exact = wide if 8 * number.itemsize < FEWEST_BITS else "float32"
        return Reducer(name, (exact if wide else dtype) or dtype, "float32" if wide else result, divisor=count)
    held = "uint8" if dtype == "bool" else dtype
    if name in ("min", "max"):
        return Reducer(name, held, result)
    return Reducer(name, held, "int64", places="int32" if kind.array_shape.points < 2**31 else "int64")


@dataclass(frozen=True)
class Split:
    """`count` values as `chunks`, of each of which `width` threads side by side take `share` values each."""

    count: int
    width: int
    share: int
    chunks: int

    @property
    def size(self) -> int:
        """The values of a chunk; the last one may have fewer."""
        return self.width * self.share


def split(count: int, width: int, most: int, step: int = 1) -> Split:
    """Equal chunks of shares of at most `most` values; a multiple of `step` values, where there are several chunks."""
    chunks = -(-count // (width * most))
    share = -(-count // (width * chunks))
    share = -(-share // step) * step if chunks > 1 else share
    return Split(count, width, share, -(-count // (width * share)))


Load = Callable[[Any], Item]  # what is at a position, which is below the count


def along(reducer: Reducer, load: Load, parts: Split, chunk: Any) -> Item:
    """Reduce a chunk of a thread's own (of width 1). No thread branches: the chunks may differ from thread to thread."""
    first = chunk * parts.share
    here = parts.count - (parts.chunks - 1) * parts.share  # in every chunk, the last one too

    def guarded(at: Any) -> Item:
        return _guarded(reducer, load, at, parts.count)

    if parts.share <= 2 * TURN:
        return pairwise(reducer, [(load if j < here else guarded)(first + j) for j in range(parts.share)])
    total = _started(reducer, load, first)
    whole, turns = here // TURN, parts.share // TURN
    _repeated(reducer, total, load, first, whole)
    _repeated(reducer, total, guarded, first + whole * TURN, turns - whole)
    if parts.share > turns * TURN:
        take(reducer, total, pairwise(reducer, [load(first + j) for j in range(turns * TURN, parts.share)]))
    return total


def _started(reducer: Reducer, load: Load, first: Any) -> Item:
    """Variables for what is reduced; they hold nothing yet, or what is at the first position, which changes nothing."""
    return tuple(map(k._var, (k._convert(reducer.neutral, reducer.held),) if reducer.adds else load(first)))


def _repeated(reducer: Reducer, total: Item, load: Load, first: Any, turns: int, width: int = 1) -> None:
    """Reduce so many turns, of every `width`-th value from the first on, into variables."""

    def turn(here: Any) -> None:
        take(reducer, total, pairwise(reducer, [load(here + j * width) for j in range(TURN)]))

    if turns == 1:
        turn(first)
    elif turns:
        with k._for(turns, unroll=turns) as t:  # where it is a hint that compilers get: a third faster on CPUs
            turn(first + t * (TURN * width))


def across(reducer: Reducer, load: Load, parts: Split, chunk: Any, own: Any) -> Item:
    """Reduce a thread's share of a chunk that is its group's; `own` is the thread's number in the group."""
    last = (parts.chunks - 1) * parts.size
    if parts.chunks == 1 or parts.count - last == parts.size:
        return share(reducer, load, parts, chunk * parts.size if parts.chunks > 1 else 0, own, parts.count - last)
    dtypes = (reducer.held, reducer.places) if reducer.places else (reducer.held,)
    item = tuple(k._var(k._convert(0, dtype)) for dtype in dtypes)
    with k._if(chunk < parts.chunks - 1):
        assign(item, share(reducer, load, parts, chunk * parts.size, own, parts.size))
    with k._else():
        assign(item, share(reducer, load, parts, last, own, parts.count - last))
    return item


def share(reducer: Reducer, load: Load, parts: Split, start: Any, own: Any, size: int) -> Item:
    """Reduce every `width`-th of `size` values from the thread's own on; all of them are there but for the last."""
    width = parts.width
    reads, some = divmod(size, width)
    turns = reads // TURN if reads > STRAIGHT else 0
    rest = [load(start + own + j * width) for j in range(turns * TURN, reads)]
    if some:
        rest.append(_guarded(reducer, load, start + own + reads * width, parts.count))
    if not turns:
        return pairwise(reducer, rest)
    total = _started(reducer, load, start + own)
    _repeated(reducer, total, load, start + own, turns, width)
    if rest:
        take(reducer, total, pairwise(reducer, rest))
    return total


def _guarded(reducer: Reducer, load: Load, at: Any, count: int) -> Item:
    """What is at a position; behind the end nothing, or the last value, which changes nothing."""
    item = load(k._min(at, count - 1))
    return (k._where(at < count, item[0], k._convert(reducer.neutral, reducer.held)),) if reducer.adds else item


def take(reducer: Reducer, total: Item, item: Item) -> None:
    """Reduce variables and an item, into the variables."""
    assign(total, reducer.combine(total, item))


def assign(variables: Item, item: Item) -> None:
    for variable, part in zip(variables, item, strict=True):
        variable.assign(part)


def pairwise(reducer: Reducer, items: Sequence[Item]) -> Item:
    """Neighbours first: the error of n additions is that of log2(n) in a row (N. Higham, SIAM J. Sci. Comput. 14(4), 1993)."""
    while len(items) > 1:
        pairs = [reducer.combine(a, b) for a, b in zip(items[::2], items[1::2], strict=False)]
        items = [*pairs, *items[len(pairs) * 2 :]]
    return items[0]
