"""Coverage of a field by quotients and remainders of the linear thread index, as re-blockings compute them.

A coordinate is a sum of digits of the index, each times a constant. It takes each value once if the constants are the place values
of a mixed-radix number with digits of the same ranges, and the digits are independent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gpuop.ir.analysis.affine import Affine, affine, number, position
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Cast, Expr, Index, Ref, Var
from gpuop.ir.types import INT


@dataclass(frozen=True, order=True)
class Digit:
    """`index / step % radix`, of the linear index of a thread."""

    step: int
    radix: int


def most(place: Affine) -> int:
    """The greatest value of a sum of digits."""
    digits: Mapping[Digit, int] = place.parts
    return place.number + sum(times * (digit.radix - 1) for digit, times in digits.items())


def reaches_all(kernel: Kernel, values: Mapping[Var, Expr], point: Sequence[Expr], grid: Sequence[int]) -> bool:
    """Return whether the positions of all threads are all points of a grid.

    Args:
        values: the values of immutable variables.
        point: the position of each thread.
    """
    reader, whole = _Reader(kernel, values), number(0)
    for expr, extent in zip(point, grid, strict=True):
        place = reader.read(expr)
        if place is None or most(place) >= extent:
            return False
        moved = _merged(whole.times(extent))
        total = None if moved is None else moved.combined("add", place)
        merged = None if total is None else _merged(total)
        if merged is None:
            return False
        whole = merged
    return _independent(whole) and _counts(whole, math.prod(grid))


def _independent(place: Affine) -> bool:
    """True if the threads have all combinations of digit values."""
    digits = sorted(place.parts)
    return all(b.step % (a.step * a.radix) == 0 for a, b in pairwise(digits))


def _counts(place: Affine, points: int) -> bool:
    """True if the sums of digits are all numbers below this one."""
    reached = 1
    for times, radix in sorted((times, digit.radix) for digit, times in place.parts.items()):
        if times != reached:
            return False
        reached *= radix
    return reached == points


class _Reader:
    def __init__(self, kernel: Kernel, known: Mapping[Var, Expr]) -> None:
        self.kernel, self.known = kernel, known

    def read(self, expr: Expr) -> Affine | None:
        """Number as digits, each times a positive factor, plus a number that is not negative; None if it has another form."""
        return affine(expr, self._leaf, _merged, ("add", "mul"))

    def _leaf(self, expr: Expr) -> Affine | None:
        match expr:
            case Index(kind="global", axis=axis, offset=offset) if axis != "element" and offset >= 0:
                axes = self.kernel.domain.axes
                step = math.prod(self.kernel.domain.extent(a) for a in axes[axes.index(axis) + 1 :])
                return position(Digit(step, self.kernel.domain.extent(axis)), offset)
            case Index():
                low, high = self.kernel.bounds(expr)
                return number(low) if low == high else None
            case Ref(var=var) if var in self.known:
                return self.read(self.known[var])
            case Cast(arg=arg, type=type_) if type_.kind == arg.type.kind == "i" and type_.dtype.bits >= INT.bits:
                return self.read(arg)
            case Apply(op="div" | "mod" as op, args=(x, y)) if expr.type.lanes == 1:
                left, right = self.read(x), self.read(y)
                return None if left is None or right is None or right.varies else _part(op, left, right.number)
        return None


def _part(op: str, x: Affine, n: int) -> Affine | None:
    """Quotient by a number, or remainder, if each digit goes into one of them, or splits between the two."""
    if n < 1:
        return None
    high, low = dict[Digit, int](), dict[Digit, int]()
    for digit, times in x.parts.items():
        lower = n // times if n % times == 0 else 0  # number of its values below n
        if times % n == 0:
            high[digit] = times // n
        elif lower and digit.radix % lower == 0:
            low[Digit(digit.step, lower)] = times
            high[Digit(digit.step * lower, digit.radix // lower)] = 1
        else:
            low[digit] = times
    rest = _merged(Affine(low, x.low, x.high))
    if rest is None or most(rest) >= n:
        return None
    return rest if op == "mod" else Affine(high, 0, 0)


def _merged(place: Affine) -> Affine | None:
    """Digits with neighbours merged; None if an int may not hold the sum, or a term is negative."""
    done: dict[Digit, int] = {}
    last: Digit | None = None
    for digit in sorted(place.parts):
        times = place.parts[digit]
        if digit.radix == 1:
            continue
        if last is not None and digit.step == last.step * last.radix and times == done[last] * last.radix:
            times = done.pop(last)
            digit = Digit(last.step, last.radix * digit.radix)
        done[digit], last = times, digit
    result = Affine(done, place.low, place.high)
    return result if result.number >= 0 and most(result) <= 2**31 - 1 else None
