"""Vectors of more lanes than OpenCL's own, where all that is computed has few bits: NumPy's values, and which kernels have them."""

from __future__ import annotations

import re
from unittest import mock

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.passes import coarsening_factor
from gpuop.passes.schedules.cpu.vector_lengths import vector_length
from gpuop.runtime import devices
from tests.borders import away
from tests.nightly import left_to_nightly

from .test_narrow import text_of
from .test_vector_rows import TARGET, kernel_of, vectors

rng = np.random.default_rng(47)
NUMPY = {"where": np.where, "min": np.minimum, "max": np.maximum, "number": lambda flag, dtype: flag.astype(dtype)}
GPUOP = {"where": _where, "min": _min, "max": _max, "number": _convert}
COUNT = 8


def results(at, dtype: str, use: dict) -> list:
    """Of each operator that vectors of any length have, in the type of what is read."""
    own, west, east = at(0, 0), at(0, -1), at(-1, 1)
    both = (own < west) & (east >= own)
    return [
        own + west * east - 3,
        (own & west) ^ (east | 5),
        use["min"](own, west) + use["max"](east, west),
        use["where"](own > west, own >> 2, east << 1),
        use["where"](~both, west, own),
        use["number"](both | (own == 7), dtype),
        use["where"](use["min"](own, 9) != west, east, 1 - own),
        own >> (west & 7),
    ]


@pytest.mark.parametrize(
    ("dtype", "columns"), [("uint8", 64), ("uint8", 131), ("int8", 70), ("uint16", 35), ("int16", 67)]
)
@pytest.mark.parametrize("streamed", [False, True])
def test_operators(device, dtype, columns, streamed):
    driver = devices.current().target.widening
    if device.startswith("opencl") and (columns, streamed) not in [(131, False), *[(35, True)] * (driver == "vector")]:
        left_to_nightly("a few will do for drivers")
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max + 1, (5, columns)).astype(dtype)
    x[::2] %= np.array(9, dtype)

    @gp.operator
    def several(f):
        return tuple(results(lambda i, j: _readTensor(f, _row + i, _column + j), dtype, GPUOP))

    least = 1 if streamed else coarsening_factor.STREAMED
    with vectors(), np.errstate(over="ignore"), mock.patch.object(coarsening_factor, "STREAMED", least):
        result = gp.evaluate(*several(gp.Field(x)))
    want = results(lambda i, j: away(x, i, j, border="clamp"), dtype, NUMPY)
    assert len(result) == len(want) == COUNT
    for k, (a, b) in enumerate(zip(result, want, strict=True)):
        assert b.dtype == dtype
        np.testing.assert_array_equal(a.numpy(), b, err_msg=str(k))


@gp.operator
def greatest(f):
    return _max(_readTensor(f, _row, _column - 1), _readTensor(f, _row, _column + 1))


def lanes_of(function, dtype: str, columns: int = 640) -> int:
    """The lanes of what is stored."""
    text = text_of(function(gp.Field(np.zeros((64, columns), dtype))))
    (lanes,) = {int(n) for n in re.findall(r"store_[a-z]+(\d+)\(", text)}
    return lanes


def test_registers_are_filled():
    """Two of a device's, whose registers hold four floats here; rows need not be long."""
    kinds = {"uint8": 32, "int8": 32, "uint16": 16, "int32": 8, "float32": 8}
    assert {dtype: lanes_of(greatest, dtype) for dtype in kinds} == kinds
    assert [lanes_of(greatest, "uint8", columns) for columns in (31, 32)] == [16, 32]


def test_what_only_functions_do_has_usual_vectors():
    @gp.operator
    def saturated(f):
        return _convert_uchar(_readTensor(f, _row, _column - 1))

    @gp.operator
    def placed(f):
        return _where(_readTensor(f, _row, _column - 1) > 3, _convert_ushort(_column), _readTensor(f))

    assert lanes_of(saturated, "uint16") == lanes_of(placed, "uint16") == 8


def test_strips_are_as_many_bytes():
    """The prefetch of processors ends with a page: rows of bytes have four times the columns of floats."""

    def columns(dtype: str) -> int:
        @gp.operator
        def along(f):
            return _readTensor(f, _row, _column - 1) & _readTensor(f, _row, _column + 1)

        @gp.operator
        def across(f):
            return _readTensor(f, _row - 1, _column) | _readTensor(f, _row + 1, _column)

        text = text_of(across(along(gp.Field(np.zeros((4096, 8192), dtype)))))
        (matches,) = re.findall(r"strips of (\d+) columns", text)
        return int(matches)

    assert (columns("uint8"), columns("int32"), columns("int64")) == (4096, 1024, 1024)


@pytest.mark.parametrize(("dtype", "times"), [("uint8", 4), ("int16", 2), ("float16", 1), ("float32", 1)])
def test_lanes_follow_what_is_computed(dtype: str, times: int) -> None:
    """Halves are floats there, though they have few bits in memory."""
    f = gp.ScalarField(np.zeros((40, 130), dtype))
    kernel = kernel_of(gp.operator(lambda f: _readTensor(f, _row - 1, _column) + _readTensor(f, _row, _column + 1))(f))
    assert vector_length(kernel) == times * TARGET.vector_length
