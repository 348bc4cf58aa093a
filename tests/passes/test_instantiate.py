"""Bodies at other points: threads that compute each other's points compute what NumPy does, whatever policies load and store."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.errors import Loc
from gpuop.dsl import *
from gpuop.ir import nodes as ir
from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import FLOAT
from gpuop.passes.instantiate import Instance, indices_at, point_at
from tests.ir.test_stages import run, staged

WEIGHTS = (3.0, -1.0, 0.5)


@gp.operator
def weighed(f):
    """A read beside the own point, one at it, a table, positions and an extent."""
    table = _constantArray(WEIGHTS)
    return _readTensor(f, _row, _column + 1) * table[_row % 3] + _readTensor(f) + _column * 10 - _rows


def expected(image: np.ndarray, own: float | None = None) -> np.ndarray:
    rows, columns = np.indices(image.shape)
    beside = image[:, np.minimum(np.arange(image.shape[1]) + 1, image.shape[1] - 1)]
    centre = image if own is None else np.full_like(image, own)
    return beside * np.float32(WEIGHTS)[rows % 3] + centre + (columns * 10 - image.shape[0]).astype(np.float32)


def mirrored(kernel: Kernel, cls: type[Instance]) -> Kernel:
    """The kernel whose threads compute the point on the other side of both axes."""
    out: list[ir.Stmt] = []
    b = collector(out)
    there = {
        axis: b.apply("sub", kernel.domain.extent(axis) - 1, ir.Index("global", axis)) for axis in kernel.domain.axes
    }
    at = {axis: lambda away, axis=axis: b.apply("add", there[axis], away) for axis in there}
    copy = cls(kernel, indices_at(kernel, at)).copy()
    return replace(kernel, body=(*kernel.shared("constant"), *out, *copy))


class OwnIsTwo(Instance):
    """Reads of the own point are served by a constant, and writes name their point themselves."""

    def loaded(self, read: ir.Read, loc: Loc | None, out: list[ir.Stmt]) -> ir.Expr | None:
        return constant(2.0, FLOAT) if read.point is None else None

    def written(self, write: ir.Write) -> ir.Block:
        point = tuple(map(self.expr, point_at(self.kernel, {})))
        return (replace(write, value=self.expr(write.value), point=point),)


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (5, 1), (6, 4)])
def test_threads_may_compute_the_points_of_others(shape: tuple[int, int]) -> None:
    image = np.random.default_rng(5).integers(-9, 9, shape).astype(np.float32)
    kernel, _ = staged(weighed(gp.ScalarField(image)))
    np.testing.assert_array_equal(run(mirrored(kernel, Instance), image), expected(image))
    np.testing.assert_array_equal(run(mirrored(kernel, OwnIsTwo), image), expected(image, own=2.0))
