"""Sums and extremes of wide windows along an axis by logarithmic decomposition: from those of 3, 9, 27 … points.

Each step is an operator that reads three neighbours of the step before, so a window of n points takes O(log n) operations, no
thread waits for another one, and the steps fuse as stages of one kernel with operators before and behind them (R. van den
Boomgaard and R. van Balen, Methods for fast morphological image transforms using bitmapped binary images, CVGIP 54, 1992).
Nothing is subtracted, unlike in running sums, so results are more exact, and infinities stay local.

Centred windows keep mirroring and periodic borders: partial sums of a field with such a border have the same border. For other
borders the field is padded first; but extremes of windows that mirror have the same values as those that end at the edge.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.lib.ndimage.filter_arguments import ImageEdge, between_steps, rank
from gpuop.lib.ndimage.filters.neighbours import Around, combined, neighbourhood, padded_along, steps_along

KEPT = ("symmetric", "reflect", "wrap")  # borders that partial sums have if the field has them
MIRRORED = ImageEdge("symmetric")
METHODS = ("direct", "nested")
LARGE = 24  # least size of nested windows by default
FAR = 64  # the same for fields that are padded first
Operation = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class LineWindow:
    """A window along an axis, and the reduction of its values.

    Attributes:
        name: name of the filter.
        at: border of the field.
        operation: associative function of two values.
        repeats: whether values may be counted twice (idempotent operations).
        computed: dtype of the operation.
        partial: function from a number of points to the dtype of their partial result.
        last: function from the reduced value to the result.
    """

    name: str
    axis: int
    size: int
    origin: int
    at: ImageEdge
    operation: Operation
    repeats: bool
    computed: str
    partial: Callable[[int], str]
    last: Callable[[Any], Any]

    @property
    def key(self) -> tuple[Any, ...]:
        return self.size, self.axis, self.origin

    def suits(self) -> bool:
        """Return whether the window needs no padding."""
        return self.at.border in KEPT or (self.repeats and not self.origin)

    def is_nested(self, method: str | None) -> bool:
        """Return whether the window is nested, by `method` or by default."""
        return method == "nested" or (method is None and self.size >= (LARGE if self.suits() else FAR))

    def direct(self, field: Field, dtype: str) -> Field:
        """Return the results in a dtype, from the values one by one."""
        at_step = steps_along(self.axis, rank(field), self.origin)

        def value_at(around: Around) -> Any:
            return self.last(combined(self.size, lambda n: around(at_step(n - self.size // 2)), self.operation))

        return neighbourhood(self.name, field, value_at, self.at, self.computed, dtype, self.key)

    def nested(self, field: Field, dtype: str) -> Field:
        """Return the results in a dtype, from partial sums or extremes."""
        if self.suits():
            return self._last(self._steps(field), dtype)
        extent, half = field.field_shape[self.axis], self.size // 2
        low = half + self.origin
        between = between_steps(field, self.computed)
        wide = padded_along(field, self.axis, (low, self.size - 1 - low), self.at, between)
        result = replace(self, at=MIRRORED, origin=0).nested(wide, dtype)
        return result[(slice(None),) * self.axis + (slice(half, half + extent),)]

    def _steps(self, field: Field) -> dict[int, Field]:
        """Return the field, and its partial results over 3, 9, 27 … points around each point."""
        result, count = {1: field}, 1
        edge = self.at if self.at.border in KEPT else MIRRORED
        step = steps_along(self.axis, rank(field), 0)
        while 3 * count <= self._largest:

            def of_three(around: Around, far: int = count) -> Any:
                first = self.operation(around(step(-far)), around(step(0)))
                return self.operation(first, around(step(far)))

            name, partial, key = f"{self.name}_of_{3 * count}", self.partial(3 * count), (self.axis, count)
            result[3 * count] = neighbourhood(name, result[count], of_three, edge, self.computed, partial, key)
            count *= 3
        return result

    @property
    def _largest(self) -> int:
        """Size of the largest partial window."""
        if self.repeats:
            return int(3 ** max(round(math.log(self.size, 3) - 1.5), 0))
        powers: list[int] = [3**n for n in range(1 + int(math.log(self.size, 3)))]
        return min(powers, key=lambda count: 2 * math.log(count, 3) + len(_side_by_side(count, _odd(self.size))))

    def _last(self, result: dict[int, Field], dtype: str) -> Field:
        """Combine partial results to the whole window."""
        odd, largest = _odd(self.size), max(result)
        taps = _overlapping(largest, odd) if self.repeats else _side_by_side(largest, odd)
        step = steps_along(self.axis, rank(result[1]), self.origin)
        edge = self.at if self.at.border in KEPT else MIRRORED
        low, high = -(self.size // 2), self.size - 1 - self.size // 2

        def value_at(around: Around) -> Any:
            values = [around(step(far), result[count], edge) for count, far in taps]
            if odd < self.size or edge is not self.at:
                values.append(around(step(low)))
            if edge is not self.at:
                values.append(around(step(high)))
            total = values[0]
            for value in values[1:]:
                total = self.operation(total, value)
            return self.last(total)

        others = [result[largest]] if largest > 1 else []
        return neighbourhood(
            f"{self.name}_nested", result[1], value_at, self.at, self.computed, dtype, self.key, others
        )


def _odd(size: int) -> int:
    """Return the size of the largest centred window in one of `size` points."""
    return size - (size + 1) % 2


def _overlapping(count: int, size: int) -> list[tuple[int, int]]:
    """Return overlapping windows of `count` points that cover one of odd size."""
    gaps = -(-size // count) - 1
    return (
        [(count, (count - size) // 2 + (size - count) * n // gaps) for n in range(gaps + 1)] if gaps else [(count, 0)]
    )


def _side_by_side(count: int, size: int) -> list[tuple[int, int]]:
    """Return disjoint windows of `count` points and single points that make up one of odd size, each with its offset."""
    pairs = (size // count - 1) // 2
    end = ((2 * pairs + 1) * count + 1) // 2
    taps = [(count, n * count) for n in range(-pairs, pairs + 1)]
    return taps + [(1, sign * far) for far in range(end, size // 2 + 1) for sign in (-1, 1)]
