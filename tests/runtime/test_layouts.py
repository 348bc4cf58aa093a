"""Fields in memory of any strides: what kernels make of arrays that are neither in planes nor contiguous."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.engine import evaluate
from gpuop.fusion.program import program
from gpuop.ir.layout import layout_of
from gpuop.passes.coarsening_factor import LONG_ROW
from gpuop.runtime import devices
from gpuop.runtime.reference.gpu_memory import GpuMemory
from tests.conformance.compare import same
from tests.conftest import Widened

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
        values = evaluate.prepare(what, backend, None, layouts={leaf: layout}).run({leaf: buffer})
        (output,) = what.results
        actual = backend.download(what.types[output], values[output]).reshape(kind.field_shape)
    flat = array.reshape(*array.shape[:2], -1)
    left = np.maximum(np.arange(array.shape[1]) - 1, 0)
    same(actual, flat @ np.arange(1, flat.shape[-1] + 1, dtype=np.float32) + 100 * flat[:, left, 1])


@gp.operator
def doubled(field):
    return _readTensor(field) * 2 + 1


@pytest.mark.parametrize(
    ("columns", "stride", "behind"),
    [*((n, *rows) for n in (32, 30, 29) for rows in ((80, None), (80, 0), (80, 1), (82, 0), (43, 0))), (2050, 2060, 0)],
)
def test_threads_have_neighbours_in_rows(columns: int, stride: int, behind: int | None) -> None:
    """Read at once where they are aligned, and results written at once; as many as divide a row. In long rows they are apart."""
    memory = rng.integers(0, 100, 12 * stride + columns).astype(np.float32)
    array = np.lib.stride_tricks.as_strided(memory, (13, columns), (4 * stride, 4))
    spy = mock.patch.object(GpuMemory, "wide", autospec=True, side_effect=GpuMemory.wide)
    with mock.patch.dict(devices._open, reference=Widened()), gp.use_device("reference") as backend, spy as wide:
        what = program([doubled(gp.Field(np.ascontiguousarray(array))).node])
        ((leaf, _),) = what.leaves.items()
        buffer = backend.upload(gp.FieldType(memory.size), memory.reshape(1, -1))
        layout = replace(layout_of(gp.FieldType(array.shape), (stride, 1)), behind=behind)
        values = evaluate.prepare(what, backend, None, layouts={leaf: layout}).run({leaf: buffer})
        (output,) = what.results
        actual = backend.download(what.types[output], values[output]).reshape(array.shape)
    same(actual, array * 2 + 1)
    choices = {"loads" if call.args[1].loads else "stores" for call in wide.call_args_list}
    count = np.gcd(columns, 4) if columns < LONG_ROW else 1
    aligned = behind is not None and not (behind % count or stride % count)
    assert choices == (set() if count == 1 else {"loads", "stores"} if aligned else {"stores"})
