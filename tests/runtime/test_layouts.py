"""Fields in memory of any strides: what kernels make of arrays that are neither in planes nor contiguous."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop import evaluation
from gpuop.dsl import *
from gpuop.fusion.program import program
from gpuop.ir.layout import layout_of
from tests.conformance.compare import same

rng = np.random.default_rng(17)
DRIVERS = [d.name for d in gp.devices() if d.name != "reference"]

VIEWS = {
    "every second row and column of a matrix": lambda a: a[..., ::2, ::2],
    "transposed matrices": lambda a: a.swapaxes(-1, -2),
    "matrices before points": lambda a: np.moveaxis(a, (0, 1), (2, 3)),
    "rows of the tensor between axes of the grid": lambda a: a.transpose(0, 2, 1, 3),
    "one row for all": lambda a: np.broadcast_to(a[..., :1, :], a.shape),
    "one number for all": lambda a: np.broadcast_to(a[..., :1, :1], a.shape),
    "a window of contiguous matrices": lambda a: a[1:, 2:-1],
    "one column": lambda a: a[..., 1:2],
    "one row": lambda a: a[..., 2:3, :],
}


@gp.operator
def weighed(field, count):
    """Elements by a counter and by number, of this point and of another."""
    total = _floatVar(0)
    with _for(0, count) as k:
        total += (k + 1) * _readTensorElement(field, k)
    return total + 100 * _readTensorElement(field, _row, _column - 1, 1)


@pytest.mark.parametrize("name", DRIVERS)
@pytest.mark.parametrize("view", VIEWS)
def test_matrices(name: str, view: str) -> None:
    memory = rng.integers(0, 100, (6, 7, 4, 5)).astype(np.float32)
    array = VIEWS[view](memory)
    kind = gp.FieldType(array.shape[:2], array.shape[2:], "float32")
    with gp.use_device(name) as backend:
        result = weighed(gp.Field(np.ascontiguousarray(array), 2), kind.planes)
        what = program([result.node])
        ((leaf, node),) = what.leaves.items()
        assert node.type == kind
        layout = layout_of(kind, tuple(n // 4 for n in array.strides))
        low = array.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
        memory = memory.reshape(-1)[low // 4 :]  # buffers begin where their fields do
        buffer = backend.upload(gp.FieldType(memory.size), memory.reshape(1, -1))
        values = evaluation.prepare(what, backend, None, layouts={leaf: layout}).run({leaf: buffer})
        (wanted,) = what.wanted
        got = backend.download(what.types[wanted], values[wanted]).reshape(kind.field_shape)
    flat = array.reshape(*array.shape[:2], -1)
    left = np.maximum(np.arange(array.shape[1]) - 1, 0)
    same(got, flat @ np.arange(1, flat.shape[-1] + 1, dtype=np.float32) + 100 * flat[:, left, 1])
