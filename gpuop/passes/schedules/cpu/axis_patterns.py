"""How integers change along an axis of the grid: each is computed for every point of it, and looked at.

So `2 * _column - 1`, `_column // 2` and their like are understood whatever they are made of, borders among it: away from the
ends they grow by a constant from one period of points to the next.
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
from gpuop.passes.schedules.common.known_positions import KnownPlaces

PERIODS = (1, 2, 4, 8, 16)  # points after which an integer has grown by a constant
ALIGNED = 16  # a multiple of all of them
SHORTEST = 8 * ALIGNED  # points along an axis
MOST_POINTS = 1 << 25  # along an axis: the host has an integer for each of them, of every variable


@dataclass(frozen=True)
class Along:
    """An integer: a number for each point of the axis, and another one that they have in common.

    Attributes:
        steps: the numbers of the points.
        low, high: the bounds of what is added, None where they are not known.
    """

    steps: NDArray[np.int64]
    low: int | None
    high: int | None

    @property
    def exact(self) -> bool:
        return self.low is not None and self.low == self.high

    @property
    def values(self) -> NDArray[np.int64]:
        """Of one that is exact."""
        return self.steps + (self.low or 0)

    @cached_property
    def is_common(self) -> bool:
        return not np.any(self.steps != self.steps[0])

    @cached_property
    def pattern(self) -> Pattern | None:
        """How it grows in the middle of the axis; None of short ones too."""
        if len(self.steps) < SHORTEST:
            return None
        middle = len(self.steps) // 2 // ALIGNED * ALIGNED
        for period in PERIODS:
            table = self.steps[middle : middle + period]
            advance = int(self.steps[middle + period] - self.steps[middle])
            found = Pattern(period, advance, tuple(int(k) - advance * (middle // period) for k in table))
            near = slice(middle - ALIGNED, middle + 2 * ALIGNED)
            if np.array_equal(found.steps(len(self.steps))[near], self.steps[near]):
                return found
        return None

    @cached_property
    def everywhere(self) -> Pattern | None:
        """The pattern of one that changes along the axis, if it has no exceptions at the ends."""
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
        """How far lanes are ahead of the first one, whose place is a multiple of the period."""
        return tuple(int(k) - self.table[0] for k in self.steps(lanes))

    @property
    def is_own(self) -> bool:
        """Whether it is the point's own place, or one at a constant distance."""
        return self.period == self.advance == 1

    def at(self, b: Builder, place: Expr, further: int, added: int) -> Expr:
        """What it is so far from a place that is a multiple of the period, and a number more."""
        turns = b.apply("div", place, self.period) if self.period > 1 else place
        known = self.table[further % self.period] + further // self.period * self.advance + added
        return b.apply("add", b.apply("mul", turns, self.advance), known)


class AxisPatterns(KnownPlaces[Along]):
    """The integers of a kernel's variables along an axis."""

    def __init__(self, kernel: Kernel, axis: str) -> None:
        self.axis, self.count = axis, kernel.domain.extent(axis)
        self.nothing = np.zeros(self.count, np.int64)
        super().__init__(kernel)

    def between(self, low: int, high: int) -> Along:
        return Along(self.nothing, low, high)

    def of(self, expr: Expr) -> Along | None:
        match expr:
            case Const(value=value) if expr.type.kind in "iub":
                return Along(self.nothing, int(value), int(value))
            case Index(kind="global", axis=axis, offset=offset) if axis == self.axis:
                return Along(np.arange(self.count) + offset, 0, 0)
            case Ref(var=var):
                return self.places.get(var)
            case Read(point=None):
                return Along(self.nothing, None, None) if expr.field.by_value else None
            case Load(memory=Array() as array) if array.space != "constant":
                return None
        found = [self.of(e) for e in operands(expr)]
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            return None
        if all(each.is_common for each in known) and not (known and all(each.exact for each in known)):
            return Along(self.nothing, *self.bounds(expr, known))
        return self.computed(expr, known)

    def computed(self, expr: Expr, known: list[Along]) -> Along | None:
        """An operation on integers, of which one at least changes along the axis or all are known."""
        match expr:
            case Apply(op="add" | "sub" as op, args=(x, _)) if x.type.integer and expr.type.integer:
                sign = 1 if op == "add" else -1
                return Along(known[0].steps + sign * known[1].steps, *self.bounds(expr, known))
            case Apply(op=op, args=args) if all(each.exact for each in known) and expr.type.kind in "iub":
                if all(a.type.kind in "iub" and a.type.lanes == 1 for a in args):
                    given = [k.values.astype(a.type.dtype.numpy) for k, a in zip(known, args, strict=True)]
                    return Along(np.asarray(OPS[op].numpy(*given)).astype(np.int64) + self.nothing, 0, 0)
            case Cast(arg=arg, type=type_) if type_.integer and arg.type.kind in "iub" and known[0].exact:
                (k,) = known
                return Along(k.values.astype(type_.dtype.numpy).astype(np.int64), 0, 0)
        return Along(self.nothing, None, None) if all(each.is_common for each in known) else None

    @staticmethod
    def bounds(expr: Expr, known: list[Along]) -> tuple[int | None, int | None]:
        """Of a sum; nothing is known of what else points have in common."""
        if not isinstance(expr, Apply) or expr.op not in ("add", "sub"):
            return None, None
        x, y = known
        return joined_bounds(expr.op, (x.low, x.high), (y.low, y.high))

    def is_common(self, expr: Expr) -> bool:
        found = self.of(expr)
        return found is not None and found.is_common

    def interior(self) -> tuple[int, int, int]:
        """The first column, and the one behind the last, of the middle of a row, where all columns that are read follow their
        patterns inside of their fields; both are multiples of the last number, the longest period."""
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
    """The integers along an axis, kept because who asks whether a schedule suits then wants the kernel that it makes."""
    return AxisPatterns(kernel, axis)
