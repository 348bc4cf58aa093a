"""Threads beside one another that compute stages for each other: NumPy's values at every border and size, in every direction."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gpuop as gp
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.fusion.iteration import kernels, launches
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.ir.kernel import Kernel
from gpuop.ir.values import Leaf
from gpuop.passes.schedules.gpu.layers import LAYER_BLOCKING
from tests.codegen.nvrtc import ptx_of

from .test_roll import FORMS, at, walking
from .test_roll_stages import computed, staged

CUDA = target_named("cuda")
SEVEN = [(-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1), (0, 0, 0)]
CORNERS = [(1, 1, 1), (-1, -1, 0), (0, 1, -1), (1, 0, -1)]
FAR = [(2, 0, 0), (0, -2, 1), (0, 0, 2), (-1, 1, 0)]


def stencil(border, window, placed=False):
    @gp.operator(name="stencil")
    def body(f):
        places = [(_layer + k, _row + r, _column + c) for k, r, c in window]
        taps = [_readTensor(f, *place, border=border) * (n + 2) for n, place in enumerate(places)]
        return sum(taps[1:], taps[0]) + (_layer * 7 + _row * 3 + _column if placed else 0)

    return body


def stenciled(x, border, window, placed=False):
    word, fill = ("zero", border) if isinstance(border, int) else (border, 0)
    taps = [at(x, *away, border=word, fill=fill) * (n + 2) for n, away in enumerate(window)]
    layer, row, column = np.indices(x.shape)
    return sum(taps) + (layer * 7 + row * 3 + column if placed else 0)


def reason(kernel: Kernel) -> str:
    """The reason against the walk, but for costs."""
    why = LAYER_BLOCKING.refuse(kernel)
    return "" if why.startswith(("its rows", "its windows", "its values", "its stages compute")) else why


LAYERS = replace(LAYER_BLOCKING, refuse=reason)


def walked(kernel: Kernel, *arrays: NDArray[Any], **walk: int) -> NDArray[Any]:
    """The results of threads that walk so, whether or not it pays."""
    assert not reason(kernel)
    return computed(kernel, replace(LAYERS, candidates=lambda kernel: (walk,)) if walk else LAYERS, *arrays)


@pytest.mark.parametrize("border", ["clamp", "reflect", "symmetric", "zero", 7, "wrap"])
@pytest.mark.parametrize(
    ("shape", "walk", "windows"),
    [
        ((3, 3, 3), (4, 8, 32), (FAR, CORNERS)),  # no larger than windows
        ((9, 4, 8), (4, 2, 2), (CORNERS, SEVEN)),  # several groups each way, the last ones not whole
        ((5, 19, 10), (2, 3, 2), (SEVEN, FAR)),
    ],
    ids=lambda each: str(each)[:10],
)
def test_borders(shape, walk, windows, border):
    """In corners too; a stage that knows where it is; along layers, and along rows where these are more."""
    x = np.random.default_rng(3).integers(-9, 10, shape).astype(np.int32)
    other = border if border == "wrap" else "reflect" if border == "clamp" else "clamp"
    first, second = (other, windows[0], border != "wrap"), (border, windows[1])
    kernel = staged(stencil(*second)(stencil(*first)(gp.Field(x))))
    columns, layers, width = walk
    actual = walked(kernel, x, columns=columns, layers=layers, width=width)
    np.testing.assert_array_equal(actual, stenciled(stenciled(x, *first), *second))


@gp.operator
def combined(a, b, f):
    """Two stages, one of them through two borders, and one at own columns only; the input too."""
    near = _readTensor(a, _layer + 1, _row, _column) + _readTensor(a, _layer, _row - 1, _column + 1, border="zero")
    far = _readTensor(b, _layer - 1, _row, _column) + _readTensor(a, _layer + 1, _row + 1, _column, border="reflect")
    return near + 2 * far + 3 * _readTensor(f, _layer, _row + 2, _column)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(6, 5, 24), (4, 9, 7)], ids=str)
def test_stages_that_share(form, shape):
    x = np.random.default_rng(3).integers(-9, 10, shape).astype(np.float32)
    with walking(form, LAYERS):
        f = gp.Field(x)
        a, b = stencil("clamp", SEVEN)(f), stencil("symmetric", CORNERS)(f)
        result = combined(a, b, f)
        assert not reason(staged(result))
        first, second = stenciled(x, "clamp", SEVEN), stenciled(x, "symmetric", CORNERS)
        want = at(first, 1, 0, 0) + at(first, 0, -1, 1, border="zero")
        want = want + 2 * (at(second, -1, 0, 0) + at(first, 1, 1, 0, border="reflect")) + 3 * at(x, 0, 2, 0)
        np.testing.assert_array_equal(result.numpy(), want)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float64"])
def test_intermediates_round_as_memory_does(dtype):
    x = (np.random.default_rng(3).random((4, 6, 16)) * 200).astype(dtype)
    weights = x.dtype.type(2), x.dtype.type(3), x.dtype.type(4)
    window = [(0, 0, 1), (1, 0, 0), (0, 1, 0)]
    want = x
    for _ in range(2):
        want = sum(
            (at(want, *away) * w for away, w in zip(window[1:], weights[1:], strict=True)),
            at(want, 0, 0, 1) * weights[0],
        )
    kernel = staged(stencil("clamp", window)(stencil("clamp", window)(gp.Field(x)) * 1))
    np.testing.assert_array_equal(walked(kernel, x).astype(dtype), want)


def test_refusals():
    def why(*windows, shape=(512, 512, 512), dtype="float32", local_memory_bytes=49152):
        field = gp.Field.of(Leaf(gp.FieldType(shape, (), dtype)))
        for window in windows:
            field = stencil("clamp", window)(field)
        return LAYER_BLOCKING.refuse(
            replace(staged(field), target=replace(CUDA, local_memory_bytes=local_memory_bytes))
        )

    assert why(SEVEN, SEVEN) == ""
    assert why(SEVEN, SEVEN, shape=(512, 512, 510)) == "its rows have no aligned places"
    assert why(SEVEN, SEVEN, shape=(128, 128, 128)) == "walking would leave too few threads"
    assert why(SEVEN, SEVEN, dtype="float16") == "its values are narrow"
    assert why(SEVEN, [*SEVEN, *SEVEN[:-1]] * 2) == "its stages compute 97 values"
    assert why(SEVEN, SEVEN[2:]) == "its stages do not read one another along layers and rows"
    assert why(SEVEN, SEVEN, SEVEN) == "other threads read values of its stages"
    assert re.fullmatch(r"its windows take \d+ registers", why(SEVEN, [*SEVEN, (0, 30, 0)]))
    assert why(SEVEN, SEVEN, local_memory_bytes=2048) == "its threads read too many values of one another"


def test_two_turns_are_a_launch():
    """Of CUDA: such a kernel stores 16 bytes at a time, and keeps no array in memory."""
    from benchmarks.pipelines.simulations import heat

    field = gp.iterate(heat, gp.Field(np.broadcast_to(np.float32(0), (512, 512, 512))), times=10)
    result = plan(program([field.node]), limits=Limits(target=CUDA))
    assert launches(result) == 5
    *_, both = kernels(result)
    ptx = ptx_of(generate(replace(both, target=CUDA), CUDA).text, "compute_90")
    assert ".local" not in ptx and "bar.sync" in ptx
    assert set(re.findall(r"\bst\.global\.(\w+)", ptx)) == {"v4"}


@pytest.mark.parametrize("columns", [1, 2, 4, 8])
def test_work_groups_are_no_deeper_than_gpus_have(columns):
    """Work-groups of threads that walk along rows lie along layers, of which NVIDIA's GPUs take 64."""
    before = stencil("zero", [(0, -1, 1)])
    after = stencil("zero", [(1, 0, 1), (0, 1, 0)])
    x = np.random.default_rng(1).integers(-9, 9, (2, 3, 16)).astype(np.float32)
    with gp.use_device("reference:gpu"), gp.schedule("layers", columns=columns):
        result = after(before(gp.Field(x, 0))).numpy()
    first = stenciled(x, "zero", [(0, -1, 1)]).astype(np.float32)
    np.testing.assert_array_equal(result, stenciled(first, "zero", [(1, 0, 1), (0, 1, 0)]))
