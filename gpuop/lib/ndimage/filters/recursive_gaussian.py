"""Recursive Gaussians, whose time does not depend on the standard deviation.

One side of a Gaussian is nearly a sum of three decaying oscillations (R. Deriche, Recursively implementing the Gaussian and its
derivatives, INRIA 1893, 1993). A sum with such weights follows from that at the point before by a complex product. The
coefficients are a least-squares fit, within 9e-6 of the Gaussian's maximum at every distance.

Lines are filtered in parallel chunks, each of which begins with the points before it. The chunks follow from the shape and the
standard deviation alone, so results are equal on every device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.types import Shape
from gpuop.lib.ndimage.filter_arguments import ImageEdge, computed_in, rank
from gpuop.lib.ndimage.filters.neighbours import read_around, steps_along, stored
from gpuop.ops.layout.gather import Reading, own_place
from gpuop.ops.layout.layouts import swapaxes
from gpuop.ops.reduce.kernels import planes_of

# exp(-x² / 2) is nearly the real part of the sum of FACTORS · exp(-RATES · x), for x of 0 and more
FACTORS = 2 * np.array([1.57730723 - 3.65657778j, -1.15658019 + 0.4600377j, 0.07926875 + 0.02195737j])
RATES = np.array([2.18275819 - 0.52660543j, 2.15165845 - 1.61612893j, 2.07928222 - 2.85671957j])
REACH = 6  # standard deviations beyond which weights are negligible
CHUNK = 256  # least number of points of a chunk; wide Gaussians have longer chunks
ABOVE = 2.0**-10  # added to sums that become integers, because rounding may have brought them below one


def recursive(field: Field, sigma: float, axis: int, dtype: str, at: ImageEdge) -> Field:
    """Return the sums along an axis with the weights of a Gaussian."""
    last = rank(field) - 1
    if axis == last > 0:  # neighbouring threads are on neighbouring lines
        return swapaxes(recursive(swapaxes(field, last - 1, last), sigma, last - 1, dtype, at), last - 1, last)
    lines = _Lines(field, sigma, axis, dtype, at)
    key = (sigma, axis, at)
    return library_call("gaussian_filter1d_recursive", (lines.out,), [field], lines.body, key, whole=True)[0]


class _Lines:
    """Lines along an axis; a thread filters one chunk of a line."""

    def __init__(self, field: Field, sigma: float, axis: int, dtype: str, at: ImageEdge) -> None:
        self.field, self.axis, self.at = field, axis, at
        self.out, self.computed = field.type.replace(dtype=dtype), computed_in(field, dtype)
        self.reach, self.extent = math.ceil(REACH * sigma), field.field_shape[axis]
        self.chunk = min(max(CHUNK, 4 * self.reach), self.extent)
        self.poles: Any = np.exp(-RATES / sigma)
        after = sum((FACTORS * self.poles**n).real.sum() for n in range(1, self.reach + 1))
        self.factors = FACTORS / (FACTORS.real.sum() + 2 * after)  # all weights add up to 1

    def body(self) -> None:
        grid = list(self.field.field_shape)
        grid[self.axis] = -(-self.extent // self.chunk)
        k._globalThreads(Shape(grid), planes_of(self.out))
        self.own = list(own_place(len(grid)))
        self.own[self.axis] = self.own[self.axis] * self.chunk
        held = (k._floatArray if self.computed == "float32" else k._doubleArray)(self.chunk)
        sums = _Recursion(self.poles, self.computed)
        with k._for(self.reach) as n:
            sums.add(self._value(n - self.reach))
        with k._for(self.chunk) as n:
            sums.add(self._value(n))
            held[n] = sums.total(self.factors)
        sums = _Recursion(self.poles, self.computed)  # sums of the points behind
        with k._for(self.reach) as n:
            sums.add(self._value(self.chunk + self.reach - 1 - n))
        with k._for(self.chunk) as n:
            at = self.chunk - 1 - n
            self._write(at, held[at] + sums.total(self.factors * self.poles))
            sums.add(self._value(at))

    def _value(self, n: Any) -> Any:
        """Return the value at a point of the chunk, or beyond."""
        step, read = steps_along(self.axis, len(self.own), 0)(n), Reading(True, k._tensorElement)
        return k._convert(read_around(self.field, self.own, step, read, self.at), self.computed)

    def _write(self, n: Any, total: Any) -> None:
        if self.out.element.kind in "iu":
            total = total + ABOVE
        place = [p + n if a == self.axis else p for a, p in enumerate(self.own)]
        with k._if(place[self.axis] < self.extent):
            k._writeTensorElement(k._out0, stored(total, self.out), *place, k._tensorElement)


class _Recursion:
    """Weighted sums of the points before, a complex number for each pole."""

    def __init__(self, poles: Sequence[complex], computed: str) -> None:
        self.poles = poles
        self.sums = [tuple(k._var(k._convert(0, computed)) for _ in range(2)) for _ in poles]

    def add(self, value: Any) -> None:
        for pole, (real, imaginary) in zip(self.poles, self.sums, strict=True):
            a, b = float(pole.real), float(pole.imag)
            new = real * a - imaginary * b + value
            imaginary.assign(real * b + imaginary * a)
            real.assign(new)

    def total(self, factors: Sequence[complex]) -> Any:
        """Return the real part of the sums times factors."""
        terms = [
            real * float(f.real) - imaginary * float(f.imag)
            for f, (real, imaginary) in zip(factors, self.sums, strict=True)
        ]
        return terms[0] + terms[1] + terms[2]
