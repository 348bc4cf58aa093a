"""Partial reductions: windows give parts of a reduction over a whole grid, which combine in any order."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.dsl.fields.field import Field
from gpuop.ir.monoids import MONOIDS
from gpuop.ir.types import FieldType
from gpuop.ops.reduce.reducers import OPERATIONS, Reducer
from gpuop.ops.reduce.reductions import reduced_by
from gpuop.runtime.base.backend import Array

Region = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class WindowPart:
    """The part of a reduction that some windows give; it can be pickled.

    Attributes:
        rule: name of the reduction.
        kind: type of the whole result.
        divisor: the divisor of a mean, 0 for other reductions; and its dtype.
        pieces: for each region of the remaining axes the values of the windows there, and for arg reductions their places.
    """

    rule: str
    kind: FieldType
    divisor: tuple[int, str]
    pieces: dict[Region, tuple[Array, ...]]
    reducer: Reducer | None = None

    def joined(self, other: WindowPart) -> WindowPart:
        """Combine two parts. The order changes the last bits of floating-point sums, and nothing else."""
        pieces = dict(self.pieces)
        for region, piece in other.pieces.items():
            pieces[region] = self._combined(pieces[region], piece) if region in pieces else piece
        return replace(self, pieces=pieces)

    def _combined(self, a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
        if self.reducer is not None:
            stacked = Field(np.stack([a[0], b[0]]), len(self.kind.tensor_shape))
            return (reduced_by(self.reducer, stacked, [0], 0).numpy(),)
        if self.rule in OPERATIONS:
            return (OPERATIONS[self.rule].numpy(a[0], b[0]),)
        x, y = a[0], b[0]
        first = x < y if self.rule.endswith("min") else x > y
        if x.dtype.kind == "f":
            first |= ((y != y) if self.rule.startswith("nan") else (x != x)) & ~((x != x) & (y != y))
        if len(a) == 1:
            return (np.where(first, x, y),)
        alike = (x == y) | ((x != x) & (y != y))
        first |= alike & (a[1] <= b[1])
        return np.where(first, x, y), np.where(first, a[1], b[1])

    def result(self) -> Array:
        """The whole result, once the parts of all windows are joined."""
        grid = self.kind.field_shape
        found = np.empty(self.kind.array_shape, self.kind.array_dtype)
        filled = 0
        for region, piece in self.pieces.items():
            place = tuple(slice(a, b) for a, b in region)
            found[place] = self._finished(piece[-1])
            filled += math.prod(b - a for a, b in region)
        if filled != grid.points:
            raise SemanticError(f"windows have given {filled} of the {grid.points} points of `{self.rule}`")
        return found

    def _finished(self, value: Array) -> Array:
        count, dtype = self.divisor
        if not count:
            return value
        if value.dtype.kind != "c":
            return np.asarray(value.astype(dtype) / np.dtype(dtype).type(count))
        found = np.empty_like(value)
        found.real, found.imag = value.real / np.float32(count), value.imag / np.float32(count)
        return found


@dataclass(frozen=True)
class UpdatedPart(WindowPart):
    """The part of an output that the threads of some windows update atomically; `fill` is its initial value."""

    fill: float = 0

    def _combined(self, a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
        x, y = (_numbers(each[0]) for each in (a, b))
        return (MONOIDS[self.rule].joined(x, y).view(a[0].dtype),)

    def result(self) -> Array:
        """The whole output, once the parts of all windows are joined."""
        ((found,),) = self.pieces.values()
        if not MONOIDS[self.rule].idempotent:
            (found,) = self._combined((found,), (np.full(found.shape, self.fill, found.dtype),))
        return np.asarray(found).reshape(self.kind.array_shape)


def _numbers(array: Array) -> Array:
    """View complex numbers as pairs of floats, which are updated independently."""
    return np.ascontiguousarray(array).view(np.float32) if array.dtype.kind == "c" else np.asarray(array)
