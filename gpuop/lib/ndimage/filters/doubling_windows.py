"""Sums and extremes of many points along an axis, made of those of 3, 9, 27 … points.

Each step is an operator that reads three neighbours of the step before, so a window of n points takes some operations times log n,
no thread waits for another one, and steps are stages of one kernel with what comes before and behind them (logarithmic
decomposition: R. van den Boomgaard and R. van Balen, Methods for fast morphological image transforms using bitmapped binary
images, CVGIP 54, 1992). Nothing is taken away from sums, as running ones do, so they are more exact, and what is infinite stays
where it is.

Windows around their own points keep edges: a field that mirrors or wraps gives sums that do so too. With others it is padded
first; but extremes of windows that mirror have no other values than those that end at the edge.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from gpuop.dsl.fields.field import Field
from gpuop.lib.ndimage.filter_arguments import ImageEdge, rank
from gpuop.lib.ndimage.filters.neighbours import Around, combined, neighbourhood, padded_along, steps_along

KEPT = ("symmetric", "reflect", "wrap")  # borders that hold of sums around a point, as they hold of what is added
MIRRORED = ImageEdge("symmetric")
METHODS = ("direct", "nested")
LARGE = 24  # points from which on windows are nested by default
FAR = 64  # the same where fields are padded first
Operation = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class LineWindow:
    """A window along an axis, and what is made of its values.

    Attributes:
        name: of the filter.
        at: what is outside of the field.
        operation: of two values; associative.
        repeats: whether values may be counted twice.
        computed: the dtype that it computes in.
        held: the dtype that holds what it makes of so many points.
        last: what the result is made of.
    """

    name: str
    axis: int
    size: int
    origin: int
    at: ImageEdge
    operation: Operation
    repeats: bool
    computed: str
    held: Callable[[int], str]
    last: Callable[[Any], Any]

    @property
    def key(self) -> tuple[Any, ...]:
        return self.size, self.axis, self.origin

    def suits(self) -> bool:
        """Whether this is made without padding."""
        return self.at.border in KEPT or (self.repeats and not self.origin)

    def is_nested(self, method: str | None) -> bool:
        """Whether this is how it is made, if nobody says it."""
        return method == "nested" or (method is None and self.size >= (LARGE if self.suits() else FAR))

    def direct(self, field: Field, dtype: str) -> Field:
        """The results in a dtype, of the values one after the other."""
        at_step = steps_along(self.axis, rank(field), self.origin)

        def found(around: Around) -> Any:
            return self.last(combined(self.size, lambda n: around(at_step(n - self.size // 2)), self.operation))

        return neighbourhood(self.name, field, found, self.at, self.computed, dtype, self.key)

    def nested(self, field: Field, dtype: str) -> Field:
        """The results in a dtype, of sums or extremes of fewer values."""
        if self.suits():
            return self._last(self._steps(field), dtype)
        extent, half = field.field_shape[self.axis], self.size // 2
        low = half + self.origin
        wide = padded_along(field, self.axis, (low, self.size - 1 - low), self.at, self.computed)
        found = replace(self, at=MIRRORED, origin=0).nested(wide, dtype)
        return found[(slice(None),) * self.axis + (slice(half, half + extent),)]

    def _steps(self, field: Field) -> dict[int, Field]:
        """The field, and what is made of 3, 9, 27 … points around each of its own."""
        made, count = {1: field}, 1
        edge = self.at if self.at.border in KEPT else MIRRORED
        step = steps_along(self.axis, rank(field), 0)
        while 3 * count <= self._largest:

            def of_three(around: Around, far: int = count) -> Any:
                first = self.operation(around(step(-far)), around(step(0)))
                return self.operation(first, around(step(far)))

            name, held, key = f"{self.name}_of_{3 * count}", self.held(3 * count), (self.axis, count)
            made[3 * count] = neighbourhood(name, made[count], of_three, edge, self.computed, held, key)
            count *= 3
        return made

    @property
    def _largest(self) -> int:
        """The points of the windows that this one is made of."""
        if self.repeats:
            return int(3 ** max(round(math.log(self.size, 3) - 1.5), 0))
        powers: list[int] = [3**n for n in range(1 + int(math.log(self.size, 3)))]
        return min(powers, key=lambda count: 2 * math.log(count, 3) + len(_side_by_side(count, _odd(self.size))))

    def _last(self, made: dict[int, Field], dtype: str) -> Field:
        """The window put together of what is made of fewer points."""
        odd, largest = _odd(self.size), max(made)
        taps = _overlapping(largest, odd) if self.repeats else _side_by_side(largest, odd)
        step = steps_along(self.axis, rank(made[1]), self.origin)
        edge = self.at if self.at.border in KEPT else MIRRORED
        low, high = -(self.size // 2), self.size - 1 - self.size // 2

        def found(around: Around) -> Any:
            values = [around(step(far), made[count], edge) for count, far in taps]
            if odd < self.size or edge is not self.at:
                values.append(around(step(low)))
            if edge is not self.at:
                values.append(around(step(high)))
            total = values[0]
            for value in values[1:]:
                total = self.operation(total, value)
            return self.last(total)

        others = [made[largest]] if largest > 1 else []
        return neighbourhood(f"{self.name}_nested", made[1], found, self.at, self.computed, dtype, self.key, others)


def _odd(size: int) -> int:
    """The points of the largest window around its own point in one of a size."""
    return size - (size + 1) % 2


def _overlapping(count: int, size: int) -> list[tuple[int, int]]:
    """Windows of so many points that cover one of odd size."""
    gaps = -(-size // count) - 1
    return (
        [(count, (count - size) // 2 + (size - count) * n // gaps) for n in range(gaps + 1)] if gaps else [(count, 0)]
    )


def _side_by_side(count: int, size: int) -> list[tuple[int, int]]:
    """Windows of so many points, each with its distance, that are one of odd size without overlapping, and single points."""
    pairs = (size // count - 1) // 2
    end = ((2 * pairs + 1) * count + 1) // 2
    taps = [(count, n * count) for n in range(-pairs, pairs + 1)]
    return taps + [(1, sign * far) for far in range(end, size // 2 + 1) for sign in (-1, 1)]
