"""Kernels of the library that compilers would spend seconds on, and the text that keeps them from it."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

import gpuop as gp
from gpuop import ndimage
from gpuop.dsl import *

from .nvrtc import compile_cuda

LONGEST = 3.0  # seconds of CPU time, where NVRTC took up to 7; mostly a tenth
ROLLED = "#pragma unroll 1"


def matrices(n: int) -> gp.Field:
    return gp.Field(np.zeros((4, n, n), np.float32), 2)


def cuda(*fields: gp.Field) -> str:
    return gp.pipeline(lambda: fields).source(target="cuda:sm_90")


@pytest.mark.parametrize(
    ("name", "n"), [("svd", 16), ("pinv", 16), ("inv", 16), ("slogdet", 16), ("svdvals", 8), ("pinv", 8)]
)
def test_matrices_are_compiled_soon(name, n):
    result = getattr(np.linalg, name)(matrices(n))
    text = cuda(*(result if isinstance(result, tuple) else (result,)))
    assert ROLLED in text
    began = time.process_time()
    compile_cuda(text, "sm_90")
    assert time.process_time() - began < LONGEST


def test_splines_are_not_computed_at_each_read():
    """There would be 16 times 59 reads of neighbours in one kernel."""
    image = gp.ScalarField(np.zeros((512, 512), np.float32))
    filtered = ndimage.spline_filter1d(image, 3, 0)
    text = cuda(ndimage.map_coordinates(filtered, np.array([[1.5, 2.5], [3.5, 1.0]]), prefilter=False))
    assert len(re.findall("__global__", text)) == 2
    began = time.process_time()
    for source in re.split(r"(?=^// \w+: )", text, flags=re.M)[1:]:
        compile_cuda(source, "sm_90")
    assert time.process_time() - began < LONGEST


@pytest.mark.parametrize(("n", "count"), [(8, 0), (16, 3)])
def test_arrays_that_registers_hold_are_left_to_the_compiler(n, count):
    """Loops of constant bounds over 8×8 floats are written out, and the floats are in registers; 16×16 are too many."""

    @gp.operator(outputs="same")
    def transformed(f):
        x = _floatArray(n, n)
        with _for((n, n)) as (i, j):
            x[i, j] = _readTensor(f) * i + j
        total = _var(0.0)
        with _for(n) as i, _for(n) as j, _for(n) as m:
            total += x[i, m] * x[m, j]
        _writeTensor(_out0, total)

    text = cuda(transformed(gp.ScalarField(np.zeros(64, np.float32))))
    assert text.count(ROLLED) == count
    assert ROLLED not in gp.pipeline(lambda: transformed(gp.ScalarField(np.zeros(64, np.float32)))).source(
        target="opencl"
    )
