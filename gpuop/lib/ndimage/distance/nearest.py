"""Nearest point outside of a mask, on CPUs: axis after axis, along lines.

Along the first axis it is the nearer of those before and behind. Along each further axis, points of a line have their nearest
point along the axes before, and its distance. The lower envelope of these distances gives the nearest along this axis too: it is
a stack of points, each with the place from which it is nearest (A. Meijster, J. Roerdink, W. Hesselink, A general algorithm for
computing distance transforms in linear time, 2000; P. Felzenszwalb, D. Huttenlocher, Distance transforms of sampled functions,
2012). This is exact, and takes time linear in the length of lines, whatever the distances. A thread has one line; rows come last,
so that they are read contiguously.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gpuop.dsl as k
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.types import FieldType
from gpuop.ops.layout.gather import apart
from gpuop.ops.layout.layouts import ravel

NONE = -1  # index where there is no nearest point
GROUP = 64  # threads of a work-group


@dataclass(frozen=True)
class Metric:
    """Distance between points.

    Attributes:
        name: "euclidean", "taxicab" or "chessboard".
        sampling: spacing along each axis, for "euclidean"; None: 1.
    """

    name: str
    sampling: tuple[float, ...] | None = None

    @property
    def dtype(self) -> str:
        """Dtype of the distances that are compared: squares of lengths, or numbers of steps."""
        return "int32" if self.name != "euclidean" else "float64"

    def along(self, axis: int, steps: Any) -> Any:
        """Return the cost of so many steps along an axis."""
        if self.name != "euclidean":
            return k._max(steps, -steps)
        far = k._convert(steps, "float64")
        far = far if self.sampling is None else far * self.sampling[axis]
        return far * far

    def both(self, one: Any, other: Any) -> Any:
        """Combine the costs of steps along different axes."""
        return k._max(one, other) if self.name == "chessboard" else one + other

    def last(self, axis: int, near: Any, near_cost: Any, far: Any, far_cost: Any) -> Any:
        """Return the last place of a line at which the first of two points is not farther than the second, which is behind it."""
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
    """Return the shape of a mask without axes of one point, and the metric of the remaining axes."""
    longer = [axis for axis, n in enumerate(mask.field_shape) if n > 1] or [0]
    if metric.sampling is not None:
        metric = replace(metric, sampling=tuple(metric.sampling[axis] for axis in longer))
    return tuple(mask.field_shape[axis] for axis in longer), metric


def nearest(mask: Field, metric: Metric) -> Field:
    """Return the row-major index of the nearest zero for each point, in row-major order; NONE if there is none."""
    shape, metric = longer_axes(mask, metric)
    result = _along_first(ravel(mask), shape)
    for axis in range(1, len(shape)):
        result = _along(result, shape, axis, metric)
    return result


def cost(metric: Metric, shape: Sequence[int], axes: Sequence[int], place: Sequence[Any], number: Any) -> Any:
    """Return the cost from a place to a point, along some axes."""
    total: Any = None
    for axis, at in enumerate(apart(number, shape)):
        if axis in axes:
            here = metric.along(axis, at - place[axis])
            total = here if total is None else metric.both(total, here)
    return total


@dataclass(frozen=True)
class _LinePoints:
    """Points of a thread's line along an axis, by their places in memory; each has its nearest point along the axes before."""

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
        """Coordinates of the line; 0 along its own axis."""
        others = [1 if a == self.axis else n for a, n in enumerate(self.shape)]
        return apart(k._column, others)

    def number(self, place: Sequence[Any], at: Any) -> Any:
        """Return the place of a point of the line in memory."""
        first = sum(p * math.prod(self.shape[a + 1 :]) for a, p in enumerate(place) if a != self.axis)
        return first + at * self.step

    def threads(self) -> None:
        """Launch one thread for each line."""
        k._globalThreads(math.prod(self.shape) // self.count)
        k._localThreads(GROUP)


def _along_first(mask: Field, shape: tuple[int, ...]) -> Field:
    """Return the nearer of the points before and behind, along the first axis."""
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


def _along(result: Field, shape: tuple[int, ...], axis: int, metric: Metric) -> Field:
    """Return the nearest points along one more axis."""
    narrow = FieldType(result.field_shape, (), "int16" if max(shape) < 1 << 15 else "int32")
    line = _LinePoints(shape, axis)

    def body() -> None:
        line.threads()
        stack = _Stack(line, result, metric)
        with k._for(line.count) as at:
            stack.add(at)
        stack.write()

    return library_call("nearest", (result.type, narrow, narrow), [result], body, (shape, axis, metric), whole=True)[0]


class _Stack:
    """Stack of a line's lower envelope: the points that are nearest somewhere. Its top is in variables, the rest in memory."""

    def __init__(self, line: _LinePoints, nearest: Field, metric: Metric) -> None:
        self.line, self.nearest, self.metric, self.place = line, nearest, metric, line.place
        self.height = k._var(0)
        self.site, self.start = k._var(0), k._var(0)  # top of the stack, and the place from which it is nearest
        self.cost = k._var(k._convert(0, metric.dtype))

    def point(self, at: Any) -> Any:
        return k._readTensor(self.nearest, self.line.number(self.place, at), border="unchecked")

    def cost_of(self, at: Any) -> Any:
        line = self.line
        return cost(self.metric, line.shape, range(line.axis), self.place, self.point(at))

    def far(self, at: Any, site: Any, cost_: Any) -> Any:
        return self.metric.both(self.metric.along(self.line.axis, at - site), cost_)

    def add(self, at: Any) -> None:
        """Push a point of the line, after popping those that are nearest nowhere any more."""
        with k._if(self.point(at) >= 0):
            own = self.cost_of(at)
            with k._while(lambda: (self.height > 0) & (self._far_above() > self.far(self.start, at, own))):
                self.drop()
            begin = k._var(0)
            with k._if(self.height > 0):
                last = self.metric.last(self.line.axis, self.site, self.cost, at, own)
                begin.assign(k._max(last, self.start) + 1)  # rounding may put it before
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
        """Pop the top."""
        self.height.assign(self.height - 1)
        with k._if(self.height > 0):
            number = self.line.number(self.place, self.height - 1)
            self.site.assign(k._convert_int(k._readTensor(k._out1, number, border="unchecked")))
            self.start.assign(k._convert_int(k._readTensor(k._out2, number, border="unchecked")))
            self.cost.assign(self.cost_of(self.site))

    def write(self) -> None:
        """Write the nearest point of each point of the line, from the last one on."""
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
