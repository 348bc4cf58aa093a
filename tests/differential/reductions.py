"""Reductions, in NumPy, with bounds where they round."""

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
MORE = (
    "sum", "mean", "min", "max", "prod", "std", "var", "nansum", "nanprod", "nanmean", "nanstd", "nanvar", "nanmin", "nanmax",
    "count_nonzero", "any", "all",
)  # fmt: skip
DIGITS = {"float16": 11, "float32": 24, "float64": 53}


@dataclass(frozen=True)
class Reduce(Step):
    """A reduction.

    Attributes:
        mask: the name of bools, of which those that are true count.
        ddof: of moments.
        initial: of minima and maxima.
    """

    name: str
    of: str
    how: str
    axis: Any = None
    method: bool = True
    mask: str = ""
    keepdims: bool = False
    ddof: int = 0
    initial: int | None = None

    def lines(self) -> list[str]:
        values = {"axis": self.axis, "where": self.mask or None, "keepdims": self.keepdims or None}
        values |= {"ddof": self.ddof or None, "initial": self.initial}
        options = ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)
        if self.method:
            return [f"{self.name} = {self.of}.{self.how}({options})"]
        return [f"{self.name} = np.{self.how}({', '.join(filter(None, (self.of, options)))})"]

    def run(self, env: Env) -> None:
        value = env.usable(self.of)
        chosen = env.usable(self.mask) if self.mask else None
        if chosen is not None and (chosen.array.shape != value.array.shape or chosen.dtype != "bool"):
            raise Rejected("a mask of another shape")
        mask = np.ones(value.array.shape, bool) if chosen is None else chosen.array
        env.values[self.name] = self._reduced(value, mask)

    def smaller(self) -> Iterator[tuple[Step, ...]]:
        if not self.method and self.how in REDUCTIONS:
            yield (replace(self, method=True, mask="", keepdims=False, initial=None),)
        if self.mask:
            yield (replace(self, mask=""),)
        if self.keepdims:
            yield (replace(self, keepdims=False),)

    def alternatives(self, env: Env) -> dict[str, Val]:
        return {self.name: env.values[self.name]} if self.name in env.values else {}

    def _reduced(self, value: Val, mask: np.ndarray) -> Val:
        array = value.number
        axes = tuple(range(array.ndim)) if self.axis is None else self.axis
        axes = tuple(a % array.ndim for a in (axes if isinstance(axes, tuple) else (axes,)))
        order = sum(a not in axes for a in range(array.ndim - value.order, array.ndim))
        result = self._of_axes(array, mask, axes)
        if not self.keepdims:
            return replace(result, order=order)
        shape = tuple(1 if a in axes else n for a, n in enumerate(array.shape))
        exact, slack = (None if part is None else part.reshape(shape) for part in (result.exact, result.slack))
        return replace(result, array=result.array.reshape(shape), exact=exact, slack=slack, order=value.order)

    def _of_axes(self, array: np.ndarray, mask: np.ndarray, axes: tuple[int, ...]) -> Val:
        how, counts = self.how.removeprefix("nan"), mask
        if self.how.startswith("nan") and array.dtype.kind == "f":
            counts = mask & ~np.isnan(array)
        if how in ("any", "all"):
            return Val(np.asarray(getattr(np, how)(array, axis=axes, where=counts)))
        if how == "count_nonzero":
            return Val(np.asarray(np.count_nonzero(array, axis=axes)).astype(np.int64))
        if how in ("min", "max"):
            return _extreme(how, array, counts, axes, self.initial, counts is not mask)
        if how.startswith("arg"):
            if not math.prod(array.shape[a] for a in axes):
                raise Rejected("no value to choose")
            return Val(
                np.asarray(getattr(np, how)(array, axis=None if self.axis is None else axes[0])).astype(np.int64)
            )
        if how in ("sum", "prod") and array.dtype.kind in "biu":
            return Val(np.asarray(getattr(np, how)(array, axis=axes, where=counts)))
        return _rounded(how, array, counts, axes, self.ddof)


def _extreme(
    how: str, array: np.ndarray, counts: np.ndarray, axes: tuple[int, ...], initial: int | None, left_out: bool
) -> Val:
    """The least or the greatest value, or NaN where all are that are left out."""
    none = ~counts.any(axis=axes)
    if initial is None and ((none.any() and not left_out) or not math.prod(array.shape[a] for a in axes)):
        raise Rejected("no value to choose")
    if array.dtype.kind == "f":
        last = np.inf if how == "min" else -np.inf
    else:
        last = {"b": how == "min"}.get(array.dtype.kind)
        info = None if last is not None else np.iinfo(array.dtype)
        last = last if info is None else info.max if how == "min" else info.min
    start = last if initial is None else array.dtype.type(initial)
    values = np.asarray(getattr(np, how)(array, axis=axes, where=counts, initial=start))
    if left_out and initial is None:
        values = np.where(none, array.dtype.type("nan"), values)
    return Val(values, ends=array.dtype.kind == "f" and bool((values == 0).any()))


def _rounded(how: str, array: np.ndarray, counts: np.ndarray, axes: tuple[int, ...], ddof: int) -> Val:
    """Reductions that round on the way, with bounds."""
    dtype = array.dtype if array.dtype.kind == "f" else np.dtype("float32")
    rest = [a for a in range(array.ndim) if a not in axes]
    shape = [array.shape[a] for a in rest]
    count = math.prod(array.shape[a] for a in axes)
    rows, chosen = (np.transpose(a, (*rest, *axes)).reshape([*shape, count]) for a in (array, counts))
    exact, slack = np.empty(shape, np.longdouble), np.empty(shape, np.longdouble)
    for at in np.ndindex(*shape):
        values = [v.item() for v in rows[at][chosen[at]]]
        if how == "prod":
            exact[at], slack[at] = _product(values, dtype)
        elif how in ("std", "var"):
            exact[at], slack[at] = _moment(how, values, dtype, ddof, max(count, 1))
        else:
            exact[at], slack[at] = _row(values, dtype, how == "mean", array.dtype.kind != "f", max(count, 1))
    values = exact.astype(dtype)
    ends = how in ("prod", "std", "var") or bool(slack.any()) or bool((values == 0).any())
    return Val(values, ends=ends, exact=exact, slack=slack)


def _row(values: list[Any], dtype: np.dtype, mean: bool, integers: bool, added: int) -> tuple[Any, Any]:
    """The sum or the mean of some numbers, and how far a pairwise sum of the dtype may be off, of so many with the zeros."""
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
    steps = math.ceil(math.log2(added)) + 2 if rounds else 0
    exact = total / n if mean else total
    slack = (size / n if mean else size) * steps / 2**digits
    if mean:
        slack += abs(exact) * (2 if integers or dtype == np.float16 else 1) / 2**digits
    return _long(exact), np.longdouble(float(slack))


def _long(x: Fraction) -> Any:
    high = float(x)
    return np.longdouble(high) + np.longdouble(float(x - Fraction(high)))


def _product(values: list[Any], dtype: np.dtype) -> tuple[Any, Any]:
    """The product, and how far it may be off in any order; none that may leave the dtype's range on the way."""
    if any(map(math.isnan, values)):
        return math.nan, 0
    if not all(map(math.isfinite, values)):
        raise Rejected("infinities")
    info, sizes = np.finfo(dtype), [abs(Fraction(v)) for v in values if v]
    if math.prod(s for s in sizes if s > 1) > Fraction(float(info.max)) / 2:
        raise Rejected("overflow on the way")
    if math.prod(s for s in sizes if s < 1) < Fraction(float(info.tiny)) * 2:
        raise Rejected("denormals on the way")
    exact = math.prod(map(Fraction, values))
    return _long(Fraction(exact)), np.longdouble(float(abs(exact) * (len(values) + 1) / 2 ** DIGITS[dtype.name]))


def _moment(how: str, values: list[Any], dtype: np.dtype, ddof: int, added: int) -> tuple[Any, Any]:
    """The variance about the mean or its root, and how far either may be off where the mean is rounded first."""
    if not all(map(math.isfinite, values)):
        return math.nan, 0
    if len(values) <= ddof:
        raise Rejected("too few values")
    n, digits = len(values), 2 ** DIGITS[dtype.name]
    mean = sum(map(Fraction, values)) / n
    off = Fraction(float(_row(values, dtype, True, True, added)[1]))
    squares = sum((Fraction(v) - mean) ** 2 for v in values)
    info = np.finfo(dtype)
    if squares + n * off**2 > Fraction(float(info.max)) / 4 or 0 < squares < Fraction(float(info.tiny)) * 2**40:
        raise Rejected("overflow, or denormals, on the way")
    exact = squares / (n - ddof)
    most = n * off**2 / (n - ddof)
    slack = float(most + (exact + most) * (math.ceil(math.log2(added)) + 8) / digits)
    if how == "var":
        return _long(exact), np.longdouble(slack)
    root = math.sqrt(exact)
    spread = math.sqrt(float(exact) + slack) - math.sqrt(max(float(exact) - slack, 0))
    return np.longdouble(root), np.longdouble(spread + 4 * root / digits + float(off))


def a_reduction(maker: Maker) -> bool:
    """NumPy's functions with their options, or methods."""
    plain = maker.chance(0.4)
    of, how = maker.field(), maker.one_of(REDUCTIONS if plain else MORE)
    value = maker.value(of)
    n, axis = value.array.ndim, None
    if n and maker.chance(0.7):
        axis = int(maker.rng.integers(-n, n))
        if n > 1 and not how.startswith("arg") and maker.chance(0.4):
            axis = tuple(int(a) for a in maker.rng.permutation(n)[: maker.rng.integers(1, n + 1)])
    if plain:
        return maker.add(Reduce(maker.name(), of, how, axis, maker.chance(0.7)))
    extreme = how.endswith(("min", "max"))
    masked = how != "count_nonzero" and maker.chance(0.4)
    mask = maker.input("bool", value.tensor, value.grid) if masked else ""
    one = True if value.dtype == "bool" else 1
    initial = one if extreme and (mask or maker.chance(0.3)) else None
    ddof = int(how.endswith(("std", "var")) and maker.chance(0.4))
    return maker.add(Reduce(maker.name(), of, how, axis, False, mask, maker.chance(0.2), ddof, initial))
