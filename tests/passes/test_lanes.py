"""Kernels whose threads handle several points: every size, dtype and form gives what NumPy does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate
from gpuop.dsl import *
from gpuop.runtime import devices
from tests.conftest import Vectorized

# one point, all sizes about a few lanes, odd rows, whole rows, planes that lanes divide and that they do not, three dimensions
SHAPES = [
    (1,), (3,), (4,), (5,), (15,), (16,), (17,), (1023,), (1025,), (2048,), (3, 7), (8, 33), (7, 64), (5, 1), (2, 3, 5), (3, 4, 16),
]  # fmt: skip
DTYPES = ["bool", "unorm8", "uint8", "int16", "float16", "float32", "int32", "float64", "complex64", "int64"]
rng = np.random.default_rng(17)


@contextmanager
def widened() -> Iterator[None]:
    """The device in use has lanes, those of GPUs where it has none of its own, however small the grid."""
    backend = devices.current()
    before = backend.target
    backend.target = replace(before, widening="vector" if before.vector_length > 1 else "unrolled", least_threads=1)
    try:
        yield
    finally:
        backend.target = before


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sizes_and_positions(device, shape):
    """The value depends on the position along every axis, and on the extents."""
    x = rng.random(shape, np.float32)

    @gp.operator
    def placed(f):
        rows = (_row, _rows) if len(shape) > 1 else (0, 1)
        layers = (_layer, _layers) if len(shape) > 2 else (0, 1)
        place = ((layers[0] * rows[1]) + rows[0]) * _columns + _column
        return _readTensor(f) * 2 + place + (rows[0] + 1) * layers[1]

    place = np.arange(x.size).reshape(shape)
    row, depth = (np.indices(shape)[-2] if len(shape) > 1 else 0), (shape[0] if len(shape) > 2 else 1)
    want = x * np.float32(2) + place.astype(np.float32) + np.asarray((row + 1) * depth, np.float32)
    with widened():
        np.testing.assert_array_equal(placed(gp.Field(x)).numpy(), want)
        np.testing.assert_array_equal((gp.Field(x) * 2 + 1).numpy(), x * np.float32(2) + 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [32, 37])
def test_dtypes(device, dtype, columns):
    x = (rng.random((6, columns)) * 100).astype("uint8" if dtype == "unorm8" else dtype)
    with widened():
        if dtype == "float64" and "double" not in getattr(devices.current(), "features", {"double"}):
            pytest.skip("no double")
        f = gp.Field(x, dtype=dtype)
        both = gp.operator(outputs=lambda f: (f.type, f.type), name="both")
        same = both(lambda f: (_writeTensor(_out0, _readTensor(f)), _writeTensor(_out1, _readTensor(f)), None)[2])(f)
        for copy in same:
            np.testing.assert_array_equal(copy.numpy(), x)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "uint32", "int64", "float32"])
def test_numbers_beside_lanes(device, dtype):
    """On either side of every operator."""
    x = (np.arange(64) % 7 + 1).astype(dtype)
    names = ["add", "subtract", "multiply", "floor_divide", "remainder", "less", "greater_equal", "equal", "maximum"]
    if dtype != "float32":
        names += ["left_shift", "right_shift", "bitwise_and", "bitwise_or", "bitwise_xor"]
    with widened():
        field = gp.ScalarField(x)
        actual = [getattr(np, name)(*pair) for name in names for pair in ((3, field), (field, 3))]
        gp.evaluate(*actual)
        want = [getattr(np, name)(*pair) for name in names for pair in ((3, x), (x, 3))]
        for name, a, b in zip(np.repeat(names, 2), actual, want, strict=True):
            np.testing.assert_array_equal(a.numpy(), b, err_msg=f"{name} of {dtype}")


@pytest.mark.parametrize("columns", [32, 37])
def test_tensors(device, columns):
    """Planes of small tensors, elements by a thread each, a table, and a value that is one for all."""
    small, big = rng.random((3, columns, 3), np.float32), rng.random((3, columns, 2, 5), np.float32)

    @gp.operator
    def turned(f, scale):
        table = _constantArray(np.array([1, 2, 4], np.float32))
        x, y, z = _readTensor(f)
        return _float3(z * table[_column % 3], x, y) * _readTensor(scale)

    with widened():
        scale = np.array([1, 2, 4], np.float32)[np.arange(columns) % 3]
        actual = turned(gp.Field(small, 1), gp.ScalarField(np.float32(0.5))).numpy()
        want = np.stack([small[..., 2] * scale, small[..., 0], small[..., 1]], -1) * np.float32(0.5)
        np.testing.assert_array_equal(actual, want)
        np.testing.assert_array_equal((gp.Field(big, 2) * 3).numpy(), big * np.float32(3))


def test_branches_loops_and_arrays(device):
    x = rng.integers(0, 12, (5, 21)).astype(np.int32)

    @gp.operator
    def steps(f):
        seen = _intArray(4)
        left, n = _var(_readTensor(f)), _intVar()
        with _while(left > 0):
            seen[left & 3] = seen[left & 3] + left
            with _if(left > 7):
                left -= 3
            with _else():
                left -= 1
            n += 1
            with _if(n > 6):
                _break()
        return seen[0] * 100 + seen[1] * 10 + seen[3] + n

    def plain(left: int) -> int:
        counts, n = [0] * 4, 0
        while left > 0:
            counts[left & 3] += left
            left -= 3 if left > 7 else 1
            n += 1
            if n > 6:
                break
        return counts[0] * 100 + counts[1] * 10 + counts[3] + n

    with widened():
        np.testing.assert_array_equal(steps(gp.Field(x)).numpy(), np.vectorize(plain)(x))


# --- outputs past the caches --------------------------------------------------------------------------------------------

DRIVERS = [d.name for d in gp.devices() if d.name.startswith("opencl") and gp.device(d.name).target.vector_length > 1]
STREAMED = [
    ("float32", (2048, 4096), ()), ("uint8", (4099, 8192), ()), ("int64", (1025, 4096), ()), ("bool", (4096, 8192), ()),
    ("complex64", (1024, 4096), ()),
]  # fmt: skip


@pytest.mark.parametrize("name", DRIVERS)
@pytest.mark.parametrize(("dtype", "shape", "tensor"), STREAMED)
def test_outputs_past_the_caches(name, dtype, shape, tensor):
    x = np.resize(np.arange(101).astype(dtype), shape + tensor)
    with gp.use_device(name):
        f = gp.Field(x, len(tensor))
        if dtype == "bool":
            np.testing.assert_array_equal((~f).numpy(), ~x)
        else:
            np.testing.assert_array_equal((f + f).numpy(), x + x)


@pytest.mark.filterwarnings("ignore::gpuop.base.errors.KernelWarning")  # sums of bytes, whose text is looked at
def test_text_of_outputs_past_the_caches():
    def text(shape, tensor=(), dtype="float32", body=lambda f: _readTensor(f) * 2):
        target = replace(
            gp.device("reference").target, backend="opencl", widening="vector", simd_width=8, least_threads=1
        )
        kernel = gp.operator(body, name="double")(gp.Field(np.zeros(shape + tensor, dtype), len(tensor)))
        return generate(kernel.node.call.kernel, target).text

    large = text((4096, 4096))
    assert "stream_float16(out0_lanes, &out0[first]);" in large
    assert large.count("*(__global anywhere *)p = x;") == 1  # where an array of the user's is not aligned
    assert large.count("__builtin_nontemporal_store(") == 4  # of 16 bytes each
    assert "stream_" not in text((1024, 1024))
    assert "stream_" not in text((4096, 4096), dtype="float16")
    assert "stream_" not in text((4095, 2049), (3,))  # planes that do not begin at 16 bytes

    def above(f):
        return _readTensor(f, _row - 1, _column) + _readTensor(f, _row + 1, _column)

    def streams(dtype):
        return sum("stream_" in line and "&out0[" in line for line in text((4096, 8192), (), dtype, above).splitlines())

    assert streams("float32") == streams("uint8") == 4

    def scaled(f):
        return _convert(above(f) * 0.5, "uint8")

    assert "stream_" not in text((4096, 8192), (3,), "uint8", scaled)  # quarters of twelve lines


@pytest.mark.parametrize("name", DRIVERS)
@pytest.mark.parametrize("offset", [1, 2, 3, 4])
def test_arrays_that_begin_anywhere(name, offset):
    """Stores past the caches are of aligned 16 bytes: elsewhere they would end the process."""
    memory = np.zeros(2048 * 4096 + 8, np.float32)
    out = memory[offset : offset + 2048 * 4096].reshape(2048, 4096)
    array = np.ones(2048 * 4096 + 8, np.float32)[offset : offset + 2048 * 4096].reshape(2048, 4096)
    with gp.use_device(name):
        gp.pipeline(lambda a: gp.ScalarField(a) * 3)(array, out=out)
    assert (out == 3).all() and not memory[:offset].any() and not memory[offset + out.size :].any()


@pytest.mark.parametrize("size", [2, 3, 7])
def test_outputs_that_are_written_again(size):
    """The second value of an element takes the place of the first in the vector of lanes."""
    x = rng.random((6, 10, size), np.float32)

    @gp.operator(outputs=lambda f: f.type)
    def again(f):
        for n in range(size):
            _writeTensorElement(_out0, _readTensorElement(f, n) * 2, n)
        _writeTensorElement(_out0, _readTensorElement(f, 1), 0)

    want = x * np.float32(2)
    want[..., 0] = x[..., 1]
    with mock.patch.dict(devices._open, {"reference": Vectorized()}), gp.use_device("reference"):
        np.testing.assert_array_equal(again(gp.VectorField(x)).numpy(), want)
