"""Points whose elements alternate in the memory of a device: read and written there, in whole accesses where they are aligned."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import gpuop as gp
from gpuop.engine import evaluate
from gpuop.fusion.program import program
from gpuop.ir.layout import interleaved
from gpuop.runtime.devices import current
from gpuop.runtime.reference.gpu_memory import GpuMemory
from tests.engine.test_alternating_elements import PIPELINES

rng = np.random.default_rng(32)

ALIGNED, ELSEWHERE = (0, 16), (4, 6, None)  # elements before the first one
LONGER = 16  # elements behind a row that are not its own


def computed(
    name: str, memory: np.ndarray, shape: tuple[int, ...], behind: int | None, longer: int = LONGER
) -> tuple[list, list]:
    """The results of a pipeline of memory with longer rows, and the expected ones."""
    _, columns, planes = shape
    first, row = behind or 0, columns * planes + longer
    array = np.lib.stride_tricks.as_strided(memory[first:], shape, tuple(memory.itemsize * n for n in (row, planes, 1)))
    compute, expected = PIPELINES[name]
    backend, fields = current(), compute(gp.VectorField(np.ascontiguousarray(array)))
    what = program([f.node for f in (fields if isinstance(fields, tuple) else (fields,))])
    ((leaf, node),) = what.leaves.items()
    own = replace(
        interleaved(node.type),
        point=(row, planes),
        behind=None if behind is None else behind * memory.itemsize % 16 // memory.itemsize,
    )
    kinds = [what.types[v] for v in what.results]
    theirs = {
        v: replace(interleaved(kind), behind=0) for v, kind in zip(what.results, kinds, strict=True) if kind.planes > 1
    }
    given = memory[first : first + (memory.size - first) // planes * planes]
    buffer = backend.upload(gp.FieldType(given.size, dtype=memory.dtype), given.reshape(1, -1))
    values = evaluate.prepare(what, backend, None, layouts={leaf: own, **theirs}).run({leaf: buffer})
    results = []
    for v, kind in zip(what.results, kinds, strict=True):
        flat = backend.download(gp.FieldType(kind.field_shape.points * kind.planes, dtype=kind.dtype), values[v])
        results.append(np.asarray(flat).reshape(kind.array_shape))
    rights = expected(array.astype(np.int64))
    return results, list(rights if isinstance(rights, tuple) else (rights,))


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("planes", [2, 3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
@pytest.mark.parametrize("columns", [64, 36, 31])
def test_memory_of_users(device, columns, dtype, planes, name):
    if device == "reference":
        pytest.skip("results of recorded kernels lie in planes")
    memory = rng.integers(0, 4, 7 * (columns * planes + LONGER)).astype(dtype)
    for behind in (*ALIGNED, *ELSEWHERE):
        results, rights = computed(name, memory, (6, columns, planes), behind)
        for result, right in zip(results, rights, strict=True):
            np.testing.assert_array_equal(result, right)


@pytest.mark.parametrize(("dtype", "columns", "behind", "whole"), [
    ("uint8", 256, 0, True), ("uint8", 256, 16, True), ("uint8", 256, 4, True), ("uint8", 252, 0, True),
    ("uint8", 256, 1, False), ("uint8", 251, 0, False), ("uint8", 256, None, False), ("float32", 256, 0, False),
])  # fmt: skip
def test_bytes_are_read_in_words(dtype, columns, behind, whole):
    """As many accesses as there are elements; words of four bytes are read one by one, which GPUs do as fast."""
    memory = rng.integers(0, 4, 260 * (columns * 3 + LONGER)).astype(dtype)
    spy = mock.patch.object(GpuMemory, "wide", autospec=True, side_effect=GpuMemory.wide)
    with (
        gp.use_device("reference:sm_90"),
        mock.patch("gpuop.passes.coarsening_factor.lanes_of_accesses", return_value=(16, "")),
        spy as wide,
    ):
        results, rights = computed("one point", memory, (256, columns, 3), behind)
    np.testing.assert_array_equal(results[0], rights[0])
    assert {call.args[1].parts for call in wide.call_args_list} == ({3} if whole else set())


@pytest.mark.parametrize("planes", [2, 3, 4])
@pytest.mark.parametrize(("rows", "columns"), [(255, 251), (17, 31), (3, 5), (1, 16), (1, 1)])
def test_rows_of_any_number_of_points(rows, columns, planes):
    """Arrays without gaps are one row, in which only the last thread may have fewer points than others; it accesses them singly."""
    memory = rng.integers(0, 4, rows * columns * planes).astype(np.uint8)
    spy = mock.patch.object(GpuMemory, "wide", autospec=True, side_effect=GpuMemory.wide)
    most = mock.patch("gpuop.passes.coarsening_factor.lanes_of_accesses", return_value=(16, ""))
    with gp.use_device("reference:sm_90"), most, spy as wide:
        results, rights = computed("one point", memory, (rows, columns, planes), 0, 0)
    np.testing.assert_array_equal(results[0], rights[0])
    assert {call.args[1].parts for call in wide.call_args_list} == ({planes} if rows * columns >= 16 else set())


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "int32"])
def test_values_of_rows_without_gaps(device, dtype, name):
    if device == "reference":
        pytest.skip("results of recorded kernels lie in planes")
    for rows, columns in ((255, 251), (17, 31), (3, 5)):
        memory = rng.integers(0, 4, rows * columns * 3).astype(dtype)
        results, rights = computed(name, memory, (rows, columns, 3), 0, 0)
        for result, right in zip(results, rights, strict=True):
            np.testing.assert_array_equal(result, right)


def test_elements_that_do_not_mix_are_read_in_whole_accesses():
    memory = rng.integers(0, 4, 260 * (256 * 3 + LONGER)).astype(np.uint8)
    spy = mock.patch.object(GpuMemory, "wide", autospec=True, side_effect=GpuMemory.wide)
    most = mock.patch("gpuop.passes.coarsening_factor.lanes_of_accesses", return_value=(16, ""))
    with gp.use_device("reference:sm_90"), most, spy as wide:
        results, rights = computed("each element", memory, (256, 256, 3), 0)
    np.testing.assert_array_equal(results[0], rights[0])
    assert {(call.args[1].loads, call.args[1].array.elements) for call in wide.call_args_list} == {
        (True, 16),
        (False, 16),
    }
