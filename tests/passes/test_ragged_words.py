"""Stencils of bytes whose rows are no words, in words all the same: NumPy's values of every expression, border and width."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.passes.schedules.gpu import unaligned_words
from gpuop.passes.schedules.gpu.unaligned_words import UNALIGNED_WORDS
from tests.borders import away
from tests.codegen.nvrtc import compile_cuda
from tests.nightly import left_to_nightly

from .test_narrow import GPUOP, NUMPY, value
from .test_pack import life, tree
from .test_roll import FORMS, kernel_of, walking

rng = np.random.default_rng(37)


def data(*shape: int) -> np.ndarray:
    x = rng.integers(0, 256, shape).astype(np.uint8)
    x[rng.random(shape) < 0.3] = 0
    return x


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("columns", "border"), [(131, "clamp"), (129, "wrap"), (134, "reflect"), (141, "symmetric"), (163, "zero")]
)
def test_expressions(form, columns, border):
    if form != "interpreted" and columns != 131:
        left_to_nightly("one width will do for drivers, which compile slowly")
    x, count = data(6, columns), 0
    for _ in range(3 if form == "interpreted" else 1):
        node = tree(3 if form == "interpreted" else 1)

        @gp.operator
        def computed(f, node=node):
            def at(row, column):
                return _convert_int(_readTensor(f, _row + row, _column + column, border=border))

            return _convert_uchar(value(node, at, GPUOP) & 255)

        with walking(form, UNALIGNED_WORDS), mock.patch.object(unaligned_words, "GAIN", 9):
            result = computed(gp.Field(x))
            want = value(node, lambda r, c: away(x.astype(np.int32), r, c, border=border), NUMPY)
            np.testing.assert_array_equal(result.numpy(), (want & 255).astype(np.uint8), err_msg=str(node))
            count += not UNALIGNED_WORDS.refuse(kernel_of(result))
    assert count or form != "interpreted", "all stay bytes"


@gp.operator
def edges(f, g):
    """Of two fields, of which the first is read in three layers."""
    near = [_convert_int(_readTensor(f, _layer + k, _row + 1 - k, _column - 3 * k)) for k in (-1, 0, 1)]
    other = _convert_int(_readTensor(g))
    return _convert_uchar((sum(near) + other) >> 2), _convert_uchar(_max(near[0], other))


@pytest.mark.parametrize("shape", [(3, 4, 130), (2, 1, 149)], ids=str)
def test_layers(shape):
    x, y = data(*shape), data(*shape)
    near = [away(x.astype(int), k, 1 - k, -3 * k) for k in (-1, 0, 1)]
    with walking(method=UNALIGNED_WORDS):
        results = edges(gp.ScalarField(x, dtype="uint8"), gp.ScalarField(y, dtype="uint8"))
        assert UNALIGNED_WORDS.refuse(kernel_of(*results)) == ""
        for result, want in zip(results, ((sum(near) + y) >> 2, np.maximum(near[0], y)), strict=True):
            np.testing.assert_array_equal(result.numpy(), want)


@gp.operator
def moved(f, columns):
    return _max(_readTensor(f), _readTensor(f, _row, _column + columns))


def test_what_stays_bytes():
    def kernel(shape, dtype="uint8", columns=1):
        return kernel_of(moved(gp.ScalarField(np.zeros(shape, dtype), dtype=dtype), columns))

    many = kernel((700, 701))
    for case, reason in (
        (kernel((700, 700)), "its rows are whole words, or short"),
        (kernel((700, 127)), "its rows are whole words, or short"),
        (kernel((700, 701), "uint16"), "not all of its fields are planes of bytes"),
        (kernel((700, 701), columns=17), "it reads far away"),
        (
            replace(many, target=replace(many.target, least_threads=1 << 15)),
            "wide accesses would leave too few threads",
        ),
    ):
        assert UNALIGNED_WORDS.refuse(case) == reason


def test_text():
    target = target_named("cuda")
    text = generate(replace(kernel_of(life(gp.Field(np.zeros((8191, 8189), np.uint8)))), target=target), target).text
    assert "neighbours<unsigned int, 4>::store((unsigned int *)&out0[" in text
    compile_cuda(text, "sm_90")
