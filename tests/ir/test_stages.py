"""Kernels with intermediates: what they mean, how they are taken apart, and that computing all where it is read is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage

import gpuop as gp
from gpuop.base.config import config
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.program import program
from gpuop.fusion.splice import splice
from gpuop.ir.analysis.footprints import Surrounding, footprints
from gpuop.ir.analysis.stages import levels, stages
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Const
from gpuop.ir.types import FLOAT, Type
from gpuop.ir.verify import Form, verify
from gpuop.passes.schedules.common.plain import without_intermediates
from gpuop.runtime.reference.device import Reference

MODES = {"clamp": "nearest", "zero": "constant", "wrap": "grid-wrap", "reflect": "mirror", "symmetric": "grid-mirror"}


@gp.operator
def along_rows(f, border="clamp"):
    return (
        _readTensor(f, _row, _column - 1, border=border)
        + 2 * _readTensor(f)
        + _readTensor(f, _row, _column + 2, border=border)
    )


@gp.operator
def along_columns(f, border="clamp"):
    near = [_readTensor(f, _row + k, _column, border=border) for k in (-2, 0, 1)]
    return near[0] + 2 * near[1] + near[2]


@gp.operator
def both(a, b):
    return _readTensor(a) * _readTensor(b)


def staged(*fields: gp.Field) -> tuple[Kernel, list[gp.Field]]:
    """All operators as one kernel, and the fields that are its inputs."""
    whole = program([field.node for field in fields])
    kernel, inputs, _ = splice(whole.ops, set(whole.results))
    assert isinstance(kernel, Kernel)
    return verify(kernel, Form.RECORDED), [whole.leaves[value] for value in inputs]


def run(kernel: Kernel, *arrays: NDArray[Any]) -> NDArray[Any]:
    device, out = Reference(), kernel.outputs[0].param.type
    result = device.empty(out)
    values = [np.array(a).reshape(p.type.planes, -1) for a, p in zip(arrays, kernel.inputs, strict=True)]
    for part in device.bind(device.compile(kernel), [*values, result]).parts:
        part()
    return result.reshape(out.array_shape)


@pytest.mark.parametrize("border", MODES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (7, 5), (33, 2)])
def test_a_read_through_a_border_is_the_value_at_the_bordered_point(border: str, shape: tuple[int, int]) -> None:
    image = np.random.default_rng(3).integers(-9, 9, shape).astype(np.float32)
    kernel, _ = staged(along_columns(along_rows(gp.ScalarField(image), border), border))
    rows = ndimage.correlate1d(image, [0, 1, 2, 0, 1], 1, mode=MODES[border])
    expected = ndimage.correlate1d(rows, [1, 0, 2, 1, 0], 0, mode=MODES[border])
    if border == "reflect" and 1 in shape:  # SciPy mirrors a single point otherwise
        expected = run(without_intermediates(kernel), image)
    np.testing.assert_array_equal(run(kernel, image), expected)
    np.testing.assert_array_equal(run(without_intermediates(kernel), image), expected)


def test_stages_are_by_level_and_compute_what_they_share_once() -> None:
    f = gp.ScalarField(np.ones((9, 9), np.float32))
    x, y = along_rows(f), along_columns(f)
    kernel, _ = staged(both(along_columns(both(x, x)), along_rows(along_columns(both(x, y)))))
    assert [[p.hint for p in level] for level in levels(kernel)] == [["both", "both"], ["along_columns"]]
    parts = stages(kernel)
    assert [[o.param.hint for o in part.outputs] for part in parts] == [["both", "both"], ["along_columns"], ["out0"]]
    assert [[p.hint for p in part.inputs] for part in parts] == [["f"], ["both"], ["both", "along_columns"]]
    for part in parts:
        verify(part, Form.RECORDED)
        assert not part.intermediates


def test_a_kernel_without_intermediates_is_its_only_stage() -> None:
    kernel, _ = staged(along_rows(gp.ScalarField(np.ones((4, 4), np.float32))))
    assert stages(kernel) == (kernel,)
    assert levels(kernel) == []


def test_what_is_wanted_and_read_by_neighbours_is_an_output_and_an_intermediate() -> None:
    rows = along_rows(gp.ScalarField(np.ones((4, 5), np.float32)))
    kernel, _ = staged(rows, along_columns(rows))
    assert [param.hint for param in kernel.intermediates] == ["along_rows"]
    assert len(kernel.outputs) == 2
    results = [{output.param for output in part.outputs} for part in stages(kernel)]
    assert results == [set(kernel.intermediates), set(kernel.written)]


@pytest.mark.parametrize("target", ["opencl", "cuda"])
def test_text_without_a_schedule_computes_stages_where_they_are_read(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "schedule", "plain")
    kernel, _ = staged(along_columns(along_rows(gp.ScalarField(np.ones((8, 8), np.float32)))))
    text = generate(kernel, target_named(target)).text
    assert "const float" in text and "intermediate" not in text
    assert text.count("f[") == 9


def test_footprints() -> None:
    @gp.operator
    def reads(f, g, h, table):
        total = _var(
            _readTensor(f, _row - 2, _column + 1, border="wrap") + _readTensor(g) + _readTensor(h, _column, _row)
        )
        with _for(-3, 4) as k:
            total @= total + _readTensor(f, _row, _column + k, border=0)
        return total + _readTensor(table, 3)

    f, g, h = (gp.ScalarField(np.ones((8, 8), np.float32)) for _ in range(3))
    node = reads(f, g, h, gp.ScalarField(np.ones(5, np.float32))).node
    kernel = node.call.kernel
    results = {param.hint: near for param, near in footprints(kernel).items()}
    zero = Const(0.0, Type(FLOAT))
    assert results["f"] == Surrounding((-2, -3), (0, 3), frozenset({("wrap", None), ("fill", zero)}))
    assert results["g"] == Surrounding((0, 0), (0, 0), frozenset()) and results["g"].is_own
    assert results["h"] is None and results["table"] is None


def test_nothing_is_staged_where_no_schedule_is_for_it() -> None:
    from gpuop.fusion.plan import plan

    field = along_columns(along_rows(gp.ScalarField(np.ones((8, 8), np.float32))))
    result = plan(program([field.node]), limits=Limits(target=target_named("opencl")))
    kernels = [launch.kernel for launch in result.launches]
    assert all(isinstance(kernel, Kernel) and not kernel.intermediates for kernel in kernels)
