"""Rows that GPUs read some columns further: NumPy's values of its functions, at every alignment, and what stays as it was."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import gpuop as gp
from gpuop import ndimage
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.ir.kernel import Kernel
from gpuop.ir.layout import Layout
from gpuop.passes.schedules.gpu.shifted_rows import SHIFTED_ROWS
from gpuop.runtime.reference.gpu_memory import GpuMemory
from tests.codegen.nvrtc import compile_cuda
from tests.conftest import Widened

from .test_roll import FORMS, walking

rng = np.random.default_rng(23)
WIDENED = Widened.target
CASES = {
    "side by side": lambda m, x: m.concatenate([x, x[..., 3:], x], -1),
    "aligned parts": lambda m, x: m.concatenate([x[..., :16], x[..., -16:]], -1),
    "below one another": lambda m, x: m.concatenate([x, x + x], 0),
    "repeated": lambda m, x: m.tile(x, 3),
    "cut out": lambda m, x: x[..., 1:-1] + x[..., 2:],
    "framed": lambda m, x: m.pad(x, 5),
}


def kernel_of(result: gp.Field, target=WIDENED) -> Kernel:
    step = plan(program([result.node])).launches[0]
    return replace(step.kernel, target=target)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("shape", "dtype"), [((5, 32), "uint8"), ((3, 43), "uint8"), ((70,), "float16"), ((2, 3, 29), "float32")], ids=str
)
def test_functions(form, case, shape, dtype):
    if form != "interpreted" and (case != "cut out" or shape[-1] != 43):
        pytest.skip("drivers compile slowly")
    if case == "aligned parts" and shape[-1] < 32:
        shape = (*shape[:-1], 36)
    x = rng.integers(0, 99, shape).astype(dtype)
    with walking(form, SHIFTED_ROWS):
        result = CASES[case](np, gp.ScalarField(x, dtype=dtype))
        assert SHIFTED_ROWS.refuse(kernel_of(result)) == ""
        np.testing.assert_array_equal(result.numpy(), CASES[case](np, x))


@pytest.mark.parametrize(
    "of",
    [
        lambda m, x: m.concatenate([x, x[:, 16:], m.roll(x, -5, 1)], 1),
        lambda m, x: m.concatenate([x, x + 1], 0),
        lambda m, x: m.tile(x, (2, 2)),
    ],
    ids=["parts of rows", "rows on either side of a condition", "rows at computed coordinates"],
)
def test_what_is_loaded_at_once(of):
    x = rng.integers(0, 99, (3, 48)).astype(np.uint8)
    spy = mock.patch.object(GpuMemory, "wide", autospec=True, side_effect=GpuMemory.wide)
    with walking(method=SHIFTED_ROWS), spy as wide:
        np.testing.assert_array_equal(of(np, gp.Field(x)).numpy(), of(np, x))
    assert {call.args[1].loads for call in wide.call_args_list} == {True, False}


@gp.operator
def beyond(f):
    outside = _readTensor(f, _row + 2, _column + 3, border=("reflect", "zero"))
    return outside + _readTensor(f, _row, _column + 1, border="wrap")


def test_what_wraps_to_its_own_point():
    """In a part of the rows what is read a whole row further is the thread's own point, which is loaded there."""
    x = rng.integers(0, 99, (5, 2)).astype(np.uint16)
    with walking(method=SHIFTED_ROWS):
        smooth = ndimage.convolve(gp.ScalarField(x), np.array([[1, 1, 1]]), mode="grid-wrap")
        actual = beyond(smooth).numpy()
    whole = np.roll(x, 1, 1) + x + np.roll(x, -1, 1)
    np.testing.assert_array_equal(actual, np.roll(whole, -1, 1))


@pytest.mark.parametrize("columns", [4, 8, 16])
def test_parameters(columns):
    x = rng.integers(0, 99, (4, 21)).astype(np.uint8)
    with walking(method=SHIFTED_ROWS), gp.schedule("shifted rows", columns=columns):
        np.testing.assert_array_equal(np.pad(gp.Field(x), 2).numpy(), np.pad(x, 2))


@gp.operator
def far(f, count):
    return sum(_readTensor(f, _row, _column + 9 * k) for k in range(count))


@gp.operator
def turned(f):
    return _readTensor(f, _row, 63 - _column, border="unchecked")


def field(*shape):
    return gp.Field(np.zeros(shape, np.float32))


def test_what_stays_as_it_was():
    beyond = kernel_of(np.concatenate([field(4, 64)] * 2, 1))
    values = Layout((70, 1), 280, behind=0)
    odd = np.pad(gp.VectorField(np.zeros((4, 64, 3), np.float32)), ((1, 2), (1, 2), (0, 0)))
    for kernel, reason in (
        (kernel_of(far(field(4, 64), 2)), "its points read windows around them"),
        (kernel_of(turned(field(4, 64))), "it reads at places that are not constant offsets from the own point"),
        (kernel_of(far(field(4, 64), 5)[:, 1:]), "its points read more than 4 others"),
        (
            kernel_of(field(4096, 64).sum(0)),
            "its threads read row after row in loops, and fewer threads would wait for memory",
        ),
        (replace(beyond, layouts=((beyond.inputs[0], values),)), "an array of the user is not aligned"),
        (kernel_of(odd), "its planes are not aligned alike"),
        (replace(beyond, target=replace(WIDENED, least_threads=1 << 20)), "more lanes would leave too few threads"),
    ):
        assert SHIFTED_ROWS.refuse(kernel) == reason


@pytest.mark.parametrize("columns", [8192, 8189])
def test_text(columns):
    target = target_named("cuda")
    f = gp.Field(np.zeros((4096, columns), np.uint8))
    text = generate(kernel_of(np.concatenate([f, f], 1), target), target).text
    assert "neighbours<unsigned char, 16>::store" in text
    assert ("neighbours<unsigned char, 16>::load" in text) == (columns == 8192)
    if columns == 8189:
        compile_cuda(text, "sm_90")
