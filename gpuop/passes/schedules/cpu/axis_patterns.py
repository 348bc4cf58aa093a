"""Patterns of integers along an axis of the grid, found by computing them for every point.

So all expressions like `2 * _column - 1` and `_column // 2` are recognized, whatever operations and borders they consist of:
away from the ends they grow by a constant from one period of points to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuop.ir.analysis.affine import joined_bounds
from gpuop.ir.build import Builder
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Array, Cast, Const, Expr, Index, Load, Read, Ref
from gpuop.ir.ops import OPS
from gpuop.ir.visit import operands
from gpuop.passes.schedules.common.known_positions import KnownPositions

PERIODS = (1, 2, 4, 8, 16)  # points after which an integer has grown by a constant
ALIGNED = 16  # a multiple of all periods
SHORTEST = 8 * ALIGNED  # least points along an axis
MOST_POINTS = 1 << 25  # points along an axis: the host computes an integer for each, of every variable


@dataclass(frozen=True)
class AxisInteger:
    """An integer along an axis: a number for each point, plus one that all points have in common.

    Attributes:
        steps: the numbers of the points.
        low, high: the bounds of the common summand; None where they are not known.
    """

    steps: NDArray[np.int64]
    low: int | None
    high: int | None

    @property
    def exact(self) -> bool:
        return self.low is not None and self.low == self.high

    @property
    def values(self) -> NDArray[np.int64]:
        """The integer at each point, if it is exact."""
        return self.steps + (self.low or 0)

    @cached_property
    def is_common(self) -> bool:
        return not np.any(self.steps != self.steps[0])

    @cached_property
    def pattern(self) -> Pattern | None:
        """The pattern in the middle of the axis; None where there is none, or the axis is short."""
        if len(self.steps) < SHORTEST:
            return None
        middle = len(self.steps) // 2 // ALIGNED * ALIGNED
        for period in PERIODS:
            table = self.steps[middle : middle + period]
            advance = int(self.steps[middle + period] - self.steps[middle])
            guess = Pattern(period, advance, tuple(int(k) - advance * (middle // period) for k in table))
            near = slice(middle - ALIGNED, middle + 2 * ALIGNED)
            if np.array_equal(guess.steps(len(self.steps))[near], self.steps[near]):
                return guess
        return None

    @cached_property
    def everywhere(self) -> Pattern | None:
        """The pattern of an integer that changes along the axis, if it holds up to the ends."""
        if not self.exact or self.is_common or self.pattern is None:
            return None
        return self.pattern if np.array_equal(self.pattern.steps(len(self.steps)), self.steps) else None


@dataclass(frozen=True)
class Pattern:
    """`advance` more after each `period` of points, within which the numbers are those of `table`."""

    period: int
    advance: int
    table: tuple[int, ...]

    def steps(self, count: int) -> NDArray[np.int64]:
        at = np.arange(count)
        return np.array(self.table)[at % self.period] + at // self.period * self.advance

    def ahead(self, lanes: int) -> tuple[int, ...]:
        """The distances of lanes from the first one, whose point is a multiple of the period."""
        return tuple(int(k) - self.table[0] for k in self.steps(lanes))

    @property
    def is_own(self) -> bool:
        """Whether it is the coordinate of the point, or one at a constant distance."""
        return self.period == self.advance == 1

    def at(self, b: Builder, place: Expr, further: int, added: int) -> Expr:
        """The integer at a distance from a point that is a multiple of the period, plus a number."""
        periods = b.apply("div", place, self.period) if self.period > 1 else place
        rest = self.table[further % self.period] + further // self.period * self.advance + added
        return b.apply("add", b.apply("mul", periods, self.advance), rest)


class AxisPatterns(KnownPositions[AxisInteger]):
    """The integers of a kernel's variables along an axis."""

    def __init__(self, kernel: Kernel, axis: str) -> None:
        self.axis, self.count = axis, kernel.domain.extent(axis)
        self.zeros = np.zeros(self.count, np.int64)
        super().__init__(kernel)

    def between(self, low: int, high: int) -> AxisInteger:
        return AxisInteger(self.zeros, low, high)

    def of(self, expr: Expr) -> AxisInteger | None:
        match expr:
            case Const(value=value) if expr.type.kind in "iub":
                return AxisInteger(self.zeros, int(value), int(value))
            case Index(kind="global", axis=axis, offset=offset) if axis == self.axis:
                return AxisInteger(np.arange(self.count) + offset, 0, 0)
            case Ref(var=var):
                return self.positions.get(var)
            case Read(point=None):
                return AxisInteger(self.zeros, None, None) if expr.field.by_value else None
            case Load(memory=Array() as array) if array.space != "constant":
                return None
        args = [self.of(e) for e in operands(expr)]
        integers = [each for each in args if each is not None]
        if len(integers) < len(args):
            return None
        if all(each.is_common for each in integers) and not (integers and all(each.exact for each in integers)):
            return AxisInteger(self.zeros, *self.bounds(expr, integers))
        return self.computed(expr, integers)

    def computed(self, expr: Expr, integers: list[AxisInteger]) -> AxisInteger | None:
        """The result of an operation on integers, where one at least changes along the axis or all are known."""
        match expr:
            case Apply(op="add" | "sub" as op, args=(x, _)) if x.type.integer and expr.type.integer:
                sign = 1 if op == "add" else -1
                return AxisInteger(integers[0].steps + sign * integers[1].steps, *self.bounds(expr, integers))
            case Apply(op=op, args=args) if all(each.exact for each in integers) and expr.type.kind in "iub":
                if all(a.type.kind in "iub" and a.type.lanes == 1 for a in args):
                    values = [k.values.astype(a.type.dtype.numpy) for k, a in zip(integers, args, strict=True)]
                    return AxisInteger(np.asarray(OPS[op].numpy(*values)).astype(np.int64) + self.zeros, 0, 0)
            case Cast(arg=arg, type=type_) if type_.integer and arg.type.kind in "iub" and integers[0].exact:
                (k,) = integers
                return AxisInteger(k.values.astype(type_.dtype.numpy).astype(np.int64), 0, 0)
        return AxisInteger(self.zeros, None, None) if all(each.is_common for each in integers) else None

    @staticmethod
    def bounds(expr: Expr, integers: list[AxisInteger]) -> tuple[int | None, int | None]:
        """The bounds of a sum; other operations on common integers have none."""
        if not isinstance(expr, Apply) or expr.op not in ("add", "sub"):
            return None, None
        x, y = integers
        return joined_bounds(expr.op, (x.low, x.high), (y.low, y.high))

    def is_common(self, expr: Expr) -> bool:
        value = self.of(expr)
        return value is not None and value.is_common

    def interior(self) -> tuple[int, int, int]:
        """The first column of the middle of a row, the one behind its last, and the longest period, of which both are multiples.

        In the middle all columns that are read follow their patterns, inside of their fields.
        """
        good, longest = np.ones(self.count, np.bool_), 1
        for read, along in self.reads():
            pattern = along.pattern if along is not None else None
            if along is None or pattern is None or along.is_common:
                continue
            assert along.low is not None and along.high is not None
            n, steps, longest = read.field.type.field_shape[-1], along.steps, max(longest, pattern.period)
            good &= (steps == pattern.steps(self.count)) & (steps + along.low >= 0) & (steps + along.high < n)
        bad, middle = np.flatnonzero(~good), self.count // 2
        first = int(max(bad[bad < middle], default=-1)) + 1
        end = int(min(bad[bad >= middle], default=self.count))
        return -(-first // longest) * longest, end // longest * longest, longest


@lru_cache(maxsize=2)
def axis_patterns(kernel: Kernel, axis: str) -> AxisPatterns:
    """The integers along an axis; cached, because a kernel is scheduled soon after the question whether the schedule suits."""
    return AxisPatterns(kernel, axis)
