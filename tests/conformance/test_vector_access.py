"""Vectors of every dtype are read and written at every kind of place; and drivers compile whatever helper a kernel can ask for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import EXPRESSIONS
from gpuop.codegen.opencl.lane_calls import LENGTHS
from gpuop.codegen.opencl.vector_access import HELPERS, gathering, loading, storing
from gpuop.dsl import *
from gpuop.ir.types import DTYPES
from gpuop.runtime.devices import current
from gpuop.runtime.opencl.device import OpenCL
from gpuop.runtime.opencl.programs import built

from .compare import same

EXTENSIONS = (
    "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable"
)
KINDS = {dtype.numpy.name: dtype.c for dtype in DTYPES.values() if dtype.c != "bool"}
PLACES = {
    "turned": lambda c, n: (c + 1) % n,
    "backwards": lambda c, n: n - 1 - c,
    "halves": lambda c, n: c // 2,
    "doubles": lambda c, n: 2 * c,
    "thirds": lambda c, n: 3 * c - 5,
    "computed": lambda c, n: c * c % n,
    "beside": lambda c, n: c - 3,
}


CASES = [(place, dtype) for place in PLACES for dtype in KINDS if place == "turned" or dtype == "float16"]


@pytest.mark.parametrize(("place", "dtype"), CASES)
def test_places(device: str, place: str, dtype: str) -> None:
    a = np.random.default_rng(8).integers(0, 100, (257, 31)).astype(dtype)

    @gp.operator
    def moved(f):
        at = PLACES[place](_column, 31)
        return _convert_double(_readTensor(f, _row, at, border="symmetric")) * 2.0

    r, c = np.indices(a.shape)
    at = PLACES[place](c, 31) % 62
    same(moved(gp.ScalarField(a)), a[r, np.where(at < 31, at, 61 - at)].astype(np.float64) * 2)


@pytest.mark.parametrize("c", KINDS.values())
def test_there_is_a_helper_for_every_dtype_and_length(c: str) -> None:
    for n in LENGTHS:
        expected = {
            gathering(c, n, "int"),
            gathering(c, n, "long"),
            f"load_first_{c}{n}",
            f"load_within_{c}{n}",
            f"store_first_{c}{n}",
        }
        if c != "half":  # OpenCL has functions for vectors of neighbouring halves
            expected |= {
                loading(c, n),
                storing(c, n),
                loading(c, n, "private"),
                storing(c, n, "local"),
                loading(c, n, "constant"),
            }
        assert expected <= HELPERS.keys(), expected - HELPERS.keys()


def written(helper: str | Callable[[], str]) -> str:
    return helper if isinstance(helper, str) else helper()


def test_every_helper_compiles(device: str) -> None:
    """Each by itself is text that the driver takes, whichever kernel asks for it."""
    backend = current()
    if not isinstance(backend, OpenCL):
        pytest.skip("helpers are OpenCL's")
    dialect = EXPRESSIONS["opencl"](backend.target).dialect
    kernel = "__kernel void nothing(__global int *x)\n{\n    x[0] = 1;\n}\n"
    text = "\n".join([dialect.head, EXTENSIONS, *dict.fromkeys(map(written, dialect.helpers.values())), kernel])
    built(backend.device, backend.cl._cl._Program(backend.context, text), backend.options)
