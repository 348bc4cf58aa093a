"""Stages that walking threads compute ahead of one another: intermediates beyond the edges are what their borders say."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray

import gpuop as gp
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.fusion.program import program
from gpuop.fusion.splice import splice
from gpuop.ir.kernel import Kernel, Pin
from gpuop.passes.pipeline import lower
from gpuop.passes.schedules import methods as schedules
from gpuop.passes.schedules.common.method import Method
from gpuop.passes.schedules.gpu.roll import ROLL
from gpuop.runtime.reference.interpreter import run
from tests.codegen.nvrtc import ptx_of
from tests.conftest import Widened

from .test_roll import FORMS, WALK, at, reason, walking

WIDENED = Widened.target
UPPER, LOWER = [(-2, -1), (0, 2), (1, 0)], [(2, 1), (-1, -2), (0, 0)]


def stencil(border, window, placed=False):
    @gp.operator(name="stencil")
    def body(f):
        taps = [_readTensor(f, _row + r, _column + c, border=border) * (n + 2) for n, (r, c) in enumerate(window)]
        return sum(taps[1:], taps[0]) + (_row * 3 + _column if placed else 0)

    return body


def stenciled(x, border, window, placed=False):
    word, fill = ("zero", border) if isinstance(border, int) else (border, 0)
    taps = [at(x, *away, border=word, fill=fill) * (n + 2) for n, away in enumerate(window)]
    return sum(taps) + (np.arange(x.shape[0])[:, None] * 3 + np.arange(x.shape[1]) if placed else 0)


def staged(result: gp.Field) -> Kernel:
    """All operators as one kernel."""
    whole = program([result.node])
    kernel, _, _ = splice(whole.ops, set(whole.results))
    assert isinstance(kernel, Kernel) and kernel.intermediates
    return replace(kernel, target=WIDENED)


def walked(kernel: Kernel, *arrays: NDArray[Any], **walk: int) -> NDArray[Any]:
    """The results of threads that walk so, whether or not it pays."""
    assert not reason(kernel)
    return computed(kernel, replace(WALK, candidates=lambda kernel: (walk,)) if walk else WALK, *arrays)


def computed(kernel: Kernel, method: Method, *arrays: NDArray[Any]) -> NDArray[Any]:
    """The results of a kernel with a method."""
    kernel = replace(kernel, pin=Pin(method.name))  # of fields as they are, not of words
    with mock.patch.object(schedules, "METHODS", (method,)):
        lowered = lower(kernel, WIDENED)
    fields = {p: np.array(a).reshape(p.type.planes, -1) for a, p in zip(arrays, kernel.inputs, strict=True)}
    ((out, kind),) = ((o.param, o.param.type) for o in kernel.outputs)
    fields[out] = np.zeros((kind.planes, kind.field_shape.points), kind.dtype)
    run(lowered, fields, lowered=True)
    return fields[out].reshape(kind.array_shape)


@pytest.mark.parametrize("border", ["clamp", "reflect", "symmetric", "zero", 7])
@pytest.mark.parametrize(("shape", "walk"), [((4, 4), (4, 8, 1)), ((7, 5), (1, 8, 4)), ((19, 8), (2, 16, 3))], ids=str)
def test_borders(shape, walk, border):
    """Windows that reach as far as the field is wide, in corners too; the second stage knows where it is."""
    x = np.random.default_rng(3).integers(-9, 10, shape).astype(np.int32)
    other = "reflect" if border == "clamp" else "clamp"
    first, second, third = (border, UPPER), (other, LOWER, True), (border, UPPER[1:])
    kernel = staged(stencil(*third)(stencil(*second)(stencil(*first)(gp.ScalarField(x)))))
    want = stenciled(stenciled(stenciled(x, *first), *second), *third)
    columns, rows, turn = walk
    np.testing.assert_array_equal(walked(kernel, x, columns=columns, rows=rows, turn=turn, width=64), want)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (9, 16), (13, 6)], ids=str)
def test_toruses(shape):
    """All axes wrap: the values outside are those of the other end, however small the field."""
    x = np.random.default_rng(3).integers(-9, 10, shape).astype(np.int32)
    kernel = staged(stencil("wrap", LOWER)(stencil("wrap", UPPER)(gp.ScalarField(x))))
    want = stenciled(stenciled(x, "wrap", UPPER), "wrap", LOWER)
    np.testing.assert_array_equal(walked(kernel, x), want)


@gp.operator
def combined(a, b, c):
    """One read by two stages and with two borders, one at the own point only, the input too."""
    far = _readTensor(a, _row + 1, _column, border="zero") + _readTensor(a, _row, _column - 2) + _readTensor(a)
    return far + 2 * _readTensor(b, _row - 1, _column + 1, border="reflect") + 3 * _readTensor(c, _row + 2, _column)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(6, 24), (37, 7)], ids=str)
def test_stages_that_share(form, shape):
    x = np.random.default_rng(3).integers(-9, 10, shape).astype(np.float32)
    with walking(form):
        f = gp.ScalarField(x)
        a = stencil("clamp", UPPER)(f)
        result = combined(a, stencil("symmetric", [(1, 0), (0, 1)])(a * 2), f)
        assert not reason(staged(result))
        first = stenciled(x, "clamp", UPPER)
        second = stenciled(first * 2, "symmetric", [(1, 0), (0, 1)])
        want = at(first, 1, 0, border="zero") + at(first, 0, -2) + first
        want = want + 2 * at(second, -1, 1, border="reflect") + 3 * at(x, 2, 0)
        np.testing.assert_array_equal(result.numpy(), want)


@pytest.mark.parametrize("dtype", ["uint8", "float16"])
def test_intermediates_round_as_memory_does(dtype):
    x = (np.random.default_rng(3).random((9, 16)) * 200).astype(dtype)
    kernel = staged(stencil("clamp", [(1, 1), (0, 0)])(stencil("clamp", [(0, 0), (-1, 1)])(gp.ScalarField(x)) * 1))
    first = at(x, 0, 0) * x.dtype.type(2) + at(x, -1, 1) * x.dtype.type(3)
    want = at(first, 1, 1) * x.dtype.type(2) + first * x.dtype.type(3)
    np.testing.assert_array_equal(walked(kernel, x).astype(dtype), want)


def test_refusals():
    def why(*borders, shape=(40, 40), window=((1, 1), (-2, 0)), dtype="float32"):
        field = gp.ScalarField(np.zeros(shape, dtype))
        for border in borders:
            field = stencil(border, window)(field)
        return ROLL.refuse(staged(field))

    assert why("clamp", "reflect") == ""
    assert why("clamp", "reflect", shape=(2, 40)) == "its grid is smaller than its windows"
    assert why("clamp", "wrap") == "values of its stages do not repeat beyond the edges"
    assert why("wrap", "wrap") == ""
    assert why("clamp", "clamp", "clamp") == "its stages build on one another"
    wide = why(
        "clamp", "clamp", window=((0, 6), (0, -6)), dtype="float64"
    )  # 14 columns and 2, where 2 and 2 are needed
    assert wide == "its threads would compute 4.0 times the values that are needed"
    tall = why("clamp", "clamp", window=((-9, 0), (9, 0), (0, -9), (0, 9)))
    assert re.fullmatch(r"its windows take \d+ registers", tall)
    flat = gp.Field(np.zeros((9, 9, 9), np.float32))

    @gp.operator
    def around(f):
        return _readTensor(f, _layer + 1, _row, _column) + _readTensor(f, _layer - 1, _row + 1, _column)

    assert ROLL.refuse(staged(around(around(flat)))) == "other threads read values of its stages"


@pytest.mark.parametrize("columns", [4096, 4093])
def test_stages_are_in_registers(columns):
    """Of CUDA: Harris' corners are one kernel that reads and writes what it must, and keeps no array in memory.

    Where rows are not aligned, outputs are stored in halves, and the rare warps at edges get no more registers than others.
    """
    from benchmarks.pipelines.stencils import harris

    kernel = staged(harris(gp.ScalarField(np.broadcast_to(np.float32(0), (4096, columns)))))
    ptx = ptx_of(generate(kernel, target_named("cuda")).text, "compute_90")
    assert ".local" not in ptx
    assert ("st.global.v2.f32" in ptx) == (".minnctapersm" in ptx) == (columns == 4093)
