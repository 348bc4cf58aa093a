"""Slices and reductions, in NumPy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from .choose import Maker
from .program import Env, Step
from .values import Rejected, Val

REDUCTIONS = ("sum", "mean", "min", "max", "argmin", "argmax")
DIGITS = {"float16": 11, "float32": 24, "float64": 53}


def index_text(index: Any) -> str:
    if isinstance(index, slice):
        parts = ["" if p is None else str(p) for p in (index.start, index.stop)]
        return ":".join(parts) + ("" if index.step is None else f":{index.step}")
    return "..." if index is Ellipsis else str(index)


@dataclass(frozen=True)
class Slice(Step):
    name: str
    of: str
    index: tuple[Any, ...]

    def lines(self) -> list[str]:
        return [f"{self.name} = {self.of}[{', '.join(map(index_text, self.index)) or '...'}]"]

    def run(self, env: Env) -> None:
        given = env.usable(self.of)
        try:
            array = np.asarray(given.array[self.index])
        except IndexError:
            raise Rejected("index") from None
        whole = list(self.index)
        dots = [k for k, i in enumerate(whole) if i is Ellipsis]
        missing = [slice(None)] * (given.array.ndim - len(whole) + len(dots))
        at = dots[0] if dots else len(whole)
        whole[at : at + len(dots)] = missing
        order = sum(isinstance(i, slice) for i in whole[given.array.ndim - given.order :])
        made = replace(given, array=array.copy(), order=order)
        if 0 in made.tensor:
            raise Rejected("a tensor without elements")
        env.values[self.name] = made

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        for k, i in enumerate(self.index):
            if isinstance(i, slice) and i != slice(None):
                yield (replace(self, index=(*self.index[:k], slice(None), *self.index[k + 1 :])),)


def a_slice(maker: Maker) -> bool:
    of = maker.field()
    shape = maker.value(of).array.shape
    if not shape:
        return False
    index: list[Any] = [_cut(maker, n) for n in shape[: int(maker.rng.integers(1, len(shape) + 1))]]
    if maker.chance(0.3):
        at = int(maker.rng.integers(0, len(index) + 1))
        tail = [_cut(maker, n) for n in shape[len(shape) - (len(index) - at) :]] if at < len(index) else []
        index = [*index[:at], Ellipsis, *tail]
    return maker.add(Slice(maker.name(), of, tuple(index)))


def _cut(maker: Maker, n: int) -> Any:
    """An index, or a slice, of an axis."""
    if n and maker.chance(0.25):
        return int(maker.rng.integers(-n, n))
    ends = [None if maker.chance(0.4) else int(maker.rng.integers(-n - 2, n + 3)) for _ in range(2)]
    return slice(*ends, maker.one_of((None, None, 1, 2, 3, -1, -1, -2, -5)))


# --- reductions -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reduce(Step):
    name: str
    of: str
    how: str
    axis: Any = None
    method: bool = True

    def lines(self) -> list[str]:
        axis = "" if self.axis is None else f"axis={self.axis}"
        if self.method:
            return [f"{self.name} = {self.of}.{self.how}({axis})"]
        return [f"{self.name} = np.{self.how}({', '.join(filter(None, (self.of, axis)))})"]

    def run(self, env: Env) -> None:
        given = env.usable(self.of)
        env.values[self.name] = reduced(self.how, given, self.axis)

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        if not self.method:
            yield (replace(self, method=True),)

    def made(self, env: Env) -> dict[str, Val]:
        return {self.name: env.values[self.name]} if self.name in env.values else {}


def reduced(how: str, given: Val, axis: Any) -> Val:
    array = given.number
    axes = tuple(range(array.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(a % array.ndim for a in axes)
    order = sum(a not in axes for a in range(array.ndim - given.order, array.ndim))
    count = math.prod(array.shape[a] for a in axes)
    if how in ("sum", "mean"):
        return _added(how, array, axes, order, count)
    if not count:
        raise Rejected("no value to choose")
    values = np.asarray(getattr(np, how)(array, axis=axis))
    free = array.dtype.kind == "f" and how in ("min", "max") and bool((values == 0).any())
    if how.startswith("arg"):
        return Val(values.astype(np.int64), order)
    return Val(values, order, ends=free)


def _added(how: str, array: np.ndarray, axes: tuple[int, ...], order: int, count: int) -> Val:
    """The sum or the mean, with a bound for pairwise sums where they round."""
    if how == "sum" and array.dtype.kind in "biu":
        return Val(np.asarray(array.sum(axis=axes)), order)
    dtype = array.dtype if array.dtype.kind == "f" else np.dtype("float32")
    kept = [a for a in range(array.ndim) if a not in axes]
    rows = np.transpose(array, (*kept, *axes)).reshape([array.shape[a] for a in kept] + [count])
    exact, slack = np.empty(rows.shape[:-1], np.longdouble), np.empty(rows.shape[:-1], np.longdouble)
    for at in np.ndindex(exact.shape):
        exact[at], slack[at] = _row([v.item() for v in rows[at]], dtype, how == "mean", array.dtype.kind != "f")
    values = exact.astype(dtype)
    return Val(values, order, ends=bool(slack.any()) or bool((values == 0).any()), exact=exact, slack=slack)


def _row(values: list[Any], dtype: np.dtype, mean: bool, integers: bool) -> tuple[Any, Any]:
    """The sum or the mean of some numbers, and how far a pairwise sum of the dtype may be off."""
    n = len(values)
    odd = [v for v in values if not math.isfinite(v)]
    if odd or (mean and not n):
        return (sum(odd) if odd else math.nan), 0
    total, size = sum(map(Fraction, values)), sum(abs(Fraction(v)) for v in values)
    if size >= Fraction(float(np.finfo(dtype).max)) / 2 or 0 < size < Fraction(float(np.finfo(dtype).tiny)) * 2**30:
        raise Rejected("overflow on the way")
    digits = DIGITS[dtype.name]
    grain = max((Fraction(v).denominator for v in values), default=1)
    rounds = size * grain > 2**digits
    steps = (math.ceil(math.log2(n)) + 2 if rounds else 0) if n else 0
    exact = total / n if mean else total
    slack = (size / n if mean else size) * steps / 2**digits
    if mean:
        slack += abs(exact) * (2 if integers or dtype == np.float16 else 1) / 2**digits
    return _long(exact), np.longdouble(float(slack))


def _long(x: Fraction) -> Any:
    high = float(x)
    return np.longdouble(high) + np.longdouble(float(x - Fraction(high)))


def a_reduction(maker: Maker) -> bool:
    of = maker.field()
    how = maker.one_of(REDUCTIONS)
    n = maker.value(of).array.ndim
    axis = None
    if n and maker.chance(0.7):
        axis = int(maker.rng.integers(-n, n))
        if n > 1 and not how.startswith("arg") and maker.chance(0.4):
            axis = tuple(int(a) for a in maker.rng.permutation(n)[: maker.rng.integers(1, n + 1)])
    return maker.add(Reduce(maker.name(), of, how, axis, maker.chance(0.7)))
