"""The nearest point outside of a mask, for each point: axis after axis, along lines, for CPUs.

Along the first axis it is the nearer one of those before and behind. Along each further one, points of a line know what is nearest
among those that differ along the axes before, and how far it is. Which of these is nearest along this axis too follows from those
that are nearest somewhere: they are kept on a stack, with the places from which on they are (A. Meijster, J. Roerdink,
W. Hesselink, A general algorithm for computing distance transforms in linear time, 2000; P. Felzenszwalb, D. Huttenlocher,
Distance transforms of sampled functions, 2012). This is exact, and takes as long as lines are, whatever the distances. One thread
has a line; rows come last, so that they are read from neighbour to neighbour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.types import FieldType
from gpuop.ops.layout.gather import apart
from gpuop.ops.layout.layouts import ravel

NONE = -1  # the nearest point where there is none
GROUP = 64  # threads side by side


@dataclass(frozen=True)
class Metric:
    """How far points are from each other.

    Attributes:
        name: "euclidean", "taxicab" or "chessboard".
        sampling: the distance of neighbours along each axis, of the first; None: 1.
    """

    name: str
    sampling: tuple[float, ...] | None = None

    @property
    def dtype(self) -> str:
        """Of what is compared: squares of lengths, or numbers of steps."""
        return "int32" if self.name != "euclidean" else "float64"

    def along(self, axis: int, steps: Any) -> Any:
        """What so many steps along an axis count."""
        if self.name != "euclidean":
            return k._max(steps, -steps)
        far = k._convert(steps, "float64")
        far = far if self.sampling is None else far * self.sampling[axis]
        return far * far

    def both(self, one: Any, other: Any) -> Any:
        """What steps along different axes count together."""
        return k._max(one, other) if self.name == "chessboard" else one + other

    def last(self, axis: int, near: Any, near_cost: Any, far: Any, far_cost: Any) -> Any:
        """The last place of a line at which one of two points is not farther than the other, which is behind it."""
        middle = (near + far) >> 1
        if self.name == "taxicab":
            never, always = far_cost > near_cost + far - near, near_cost > far_cost + far - near
            between = (far + near + far_cost - near_cost) >> 1
            return k._where(never, 1 << 30, k._where(always, NONE, between))
        if self.name == "chessboard":
            left, right = k._max(near + far_cost, middle), k._min(far - near_cost, middle)
            return k._where(near_cost <= far_cost, left, right)
        step = 1.0 if self.sampling is None else self.sampling[axis] * self.sampling[axis]
        a, b = k._convert(near, "float64"), k._convert(far, "float64")
        place = (step * (b - a) * (b + a) + far_cost - near_cost) / (2.0 * step * (b - a))
        return k._convert_int(k._floor(k._fmin(k._fmax(place, -1.0), float(1 << 30))))


def longer_axes(mask: Field, metric: Metric) -> tuple[tuple[int, ...], Metric]:
    """The shape of a mask without axes of one point, and the metric of the others."""
    longer = [axis for axis, n in enumerate(mask.field_shape) if n > 1] or [0]
    if metric.sampling is not None:
        metric = replace(metric, sampling=tuple(metric.sampling[axis] for axis in longer))
    return tuple(mask.field_shape[axis] for axis in longer), metric


def nearest(mask: Field, metric: Metric) -> Field:
    """The number in memory's order of the nearest point that is 0, for each point in that order; NONE if there is none."""
    shape, metric = longer_axes(mask, metric)
    found = _along_first(ravel(mask), shape)
    for axis in range(1, len(shape)):
        found = _along(found, shape, axis, metric)
    return found


def cost(metric: Metric, shape: Sequence[int], axes: Sequence[int], place: Sequence[Any], number: Any) -> Any:
    """How far a point is from a place, along some axes."""
    total: Any = None
    for axis, at in enumerate(apart(number, shape)):
        if axis in axes:
            here = metric.along(axis, at - place[axis])
            total = here if total is None else metric.both(total, here)
    return total


@dataclass(frozen=True)
class _LinePoints:
    """A thread's line along an axis: where its points are in memory. Of the axes before they know the nearest point."""

    shape: tuple[int, ...]
    axis: int

    @property
    def count(self) -> int:
        return self.shape[self.axis]

    @property
    def step(self) -> int:
        return math.prod(self.shape[self.axis + 1 :])

    @property
    def place(self) -> list[Any]:
        """The line's coordinates; 0 along its own axis."""
        others = [1 if a == self.axis else n for a, n in enumerate(self.shape)]
        return apart(k._column, others)

    def number(self, place: Sequence[Any], at: Any) -> Any:
        """Where a point of the line is in memory."""
        first = sum(p * math.prod(self.shape[a + 1 :]) for a, p in enumerate(place) if a != self.axis)
        return first + at * self.step

    def threads(self) -> None:
        """Have one for each line."""
        k._globalThreads(math.prod(self.shape) // self.count)
        k._localThreads(GROUP)


def _along_first(mask: Field, shape: tuple[int, ...]) -> Field:
    """The nearer one of the points before and behind, along the first axis."""
    out, line = FieldType(mask.field_shape, (), "int32"), _LinePoints(shape, 0)

    def body() -> None:
        line.threads()
        place, last = line.place, k._var(NONE)
        with k._for(line.count) as at:
            number = line.number(place, at)
            last.assign(k._where(k._readTensor(mask, number, border="unchecked") != 0, last, at))
            k._writeTensor(k._out0, last, number)
        last.assign(NONE)
        with k._for(line.count) as done:
            at = line.count - 1 - done
            number = line.number(place, at)
            before = k._readTensor(k._out0, number, border="unchecked")
            last.assign(k._where(before == at, at, last))
            nearer = k._where((before < 0) | ((last >= 0) & (last - at < at - before)), last, before)
            k._writeTensor(k._out0, k._where(nearer < 0, NONE, line.number(place, nearer)), number)

    return library_call("nearest", (out,), [mask], body, shape, whole=True)[0]


def _along(found: Field, shape: tuple[int, ...], axis: int, metric: Metric) -> Field:
    """The nearest points along one more axis."""
    kept = FieldType(found.field_shape, (), "int16" if max(shape) < 1 << 15 else "int32")
    line = _LinePoints(shape, axis)

    def body() -> None:
        line.threads()
        stack = _Stack(line, found, metric)
        with k._for(line.count) as at:
            stack.add(at)
        stack.write()

    return library_call("nearest", (found.type, kept, kept), [found], body, (shape, axis, metric), whole=True)[0]


class _Stack:
    """The points of a line whose nearest points are nearest somewhere; the topmost one is in variables, the others in memory."""

    def __init__(self, line: _LinePoints, found: Field, metric: Metric) -> None:
        self.line, self.found, self.metric, self.place = line, found, metric, line.place
        self.height = k._var(0)
        self.site, self.start = k._var(0), k._var(0)  # the topmost one, and the place from which on it is nearest
        self.cost = k._var(k._convert(0, metric.dtype))

    def point(self, at: Any) -> Any:
        return k._readTensor(self.found, self.line.number(self.place, at), border="unchecked")

    def cost_of(self, at: Any) -> Any:
        line = self.line
        return cost(self.metric, line.shape, range(line.axis), self.place, self.point(at))

    def far(self, at: Any, site: Any, cost_: Any) -> Any:
        return self.metric.both(self.metric.along(self.line.axis, at - site), cost_)

    def add(self, at: Any) -> None:
        """Put a point of the line on the stack, instead of those that are nowhere nearest from now on."""
        with k._if(self.point(at) >= 0):
            own = self.cost_of(at)
            with k._while(lambda: (self.height > 0) & (self._far_above() > self.far(self.start, at, own))):
                self.drop()
            begin = k._var(0)
            with k._if(self.height > 0):
                last = self.metric.last(self.line.axis, self.site, self.cost, at, own)
                begin.assign(k._max(last, self.start) + 1)  # which rounding may have put before
            with k._if(begin < self.line.count):
                number = self.line.number(self.place, self.height)
                k._writeTensor(k._out1, at, number)
                k._writeTensor(k._out2, begin, number)
                self.height.assign(self.height + 1)
                self.site.assign(at)
                self.start.assign(begin)
                self.cost.assign(own)

    def _far_above(self) -> Any:
        return self.far(self.start, self.site, self.cost)

    def drop(self) -> None:
        """Take the topmost one away."""
        self.height.assign(self.height - 1)
        with k._if(self.height > 0):
            number = self.line.number(self.place, self.height - 1)
            self.site.assign(k._convert_int(k._readTensor(k._out1, number, border="unchecked")))
            self.start.assign(k._convert_int(k._readTensor(k._out2, number, border="unchecked")))
            self.cost.assign(self.cost_of(self.site))

    def write(self) -> None:
        """Write for each point of the line, from the last one on, what is nearest there."""
        line = self.line
        now = k._var(NONE)
        with k._if(self.height > 0):
            now.assign(self.point(self.site))
        with k._for(line.count) as done:
            at = line.count - 1 - done
            k._writeTensor(k._out0, now, line.number(self.place, at))
            with k._if((at == self.start) & (self.height > 1)):
                self.drop()
                now.assign(self.point(self.site))
