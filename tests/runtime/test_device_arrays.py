"""Arrays of CuPy, PyTorch, JAX and Numba in the memory of a CUDA device: in and out without copies, in order, alive long enough."""

from __future__ import annotations

import gc
import importlib

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.runtime.cuda.memory import CudaMemory
from tests.nightly import left_to_nightly

LIBRARIES = ("cupy", "torch", "jax", "numba")
rng = np.random.default_rng(17)


@pytest.fixture(autouse=True)
def cuda():
    if "cuda:0" not in [d.name for d in gp.devices()]:
        pytest.skip("there is no CUDA device")
    with gp.use_device("cuda:0") as backend:
        yield backend


@pytest.fixture(params=LIBRARIES)
def library(request):
    pytest.importorskip(request.param)
    return request.param


def to(library: str, array: np.ndarray):
    """An array of a library on the device."""
    if library == "cupy":
        return importlib.import_module("cupy").asarray(array)
    if library == "torch":
        return importlib.import_module("torch").from_numpy(array.copy()).cuda()
    if library == "jax":
        jax = importlib.import_module("jax")
        return jax.device_put(array, jax.devices("gpu")[0])
    return importlib.import_module("numba.cuda").to_device(array)


def back(array) -> np.ndarray:
    if hasattr(array, "get"):
        return array.get()
    if hasattr(array, "cpu"):
        return array.cpu().numpy()
    return array.copy_to_host() if hasattr(array, "copy_to_host") else np.asarray(array)


def address(array) -> int:
    return array.__cuda_array_interface__["data"][0]


@pytest.fixture
def no_copies(monkeypatch):
    """Nothing goes through the host, and nothing is copied on the device but by kernels."""

    def refuse(*_):
        raise AssertionError("a copy")

    for name in ("send", "receive", "copy", "synchronize"):
        monkeypatch.setattr(CudaMemory, name, refuse)
    yield
    monkeypatch.undo()


@gp.pipeline
def blend(image):
    f = gp.VectorField(image)
    return 0.5 * f + 1


@gp.pipeline
def half(a):
    return gp.ScalarField(a) * 0.5


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "uint8", "int16", "int64", "uint32", "bool", "complex64"]
)
def test_every_dtype_goes_in_and_comes_out(library, dtype):
    if dtype == "complex64" and library == "numba":
        left_to_nightly("as the others, but slow to make")
    array = (rng.random((19, 33)) * 100).astype(dtype)
    same = gp.pipeline(lambda a: gp.ScalarField(a))
    values = to(library, array)
    if str(values.dtype).rpartition(".")[2] != dtype:
        pytest.skip("JAX keeps no 64 bits by default")
    result = same(values)
    assert type(result) is type(values)
    np.testing.assert_array_equal(back(result), array)
    assert address(result) != address(values)


def test_the_same_kind_without_copies_or_waiting(library, no_copies, monkeypatch):
    image = rng.random((45, 67, 3), np.float32)
    array = to(library, image)
    results = [blend(array) for _ in range(3)]
    monkeypatch.undo()
    for result in results:
        assert type(result) is type(array)
        np.testing.assert_array_equal(back(result), np.float32(0.5) * image + 1)


STRIDED = {
    "every second": lambda a: a[::2, 1::3],
    "transposed": lambda a: a.transpose(1, 0, 2) if hasattr(a, "get") else a.permute(1, 0, 2),
    "a window": lambda a: a[3:-2, 5:-1],
    "a channel": lambda a: a[..., 1:3],
}


@pytest.mark.parametrize("library", ["cupy", "torch"], indirect=True)
@pytest.mark.parametrize("view", STRIDED)
def test_any_strides_without_copies(library, view, no_copies, monkeypatch):
    image = rng.random((45, 67, 3), np.float32)
    values = STRIDED[view](to(library, image))
    result = blend(values)
    monkeypatch.undo()
    expected = back(values.copy() if library == "cupy" else values.contiguous())
    np.testing.assert_array_equal(back(result), np.float32(0.5) * expected + 1)


def test_reversed_axes():
    cupy = pytest.importorskip("cupy")
    image = rng.random((45, 67, 3), np.float32)
    for view in (np.s_[::-1], np.s_[:, ::-2], np.s_[::-3, ::-1, ::-1]):
        np.testing.assert_array_equal(blend(cupy.asarray(image)[view]).get(), np.float32(0.5) * image[view] + 1)
    array = rng.random((6, 7, 4, 5), np.float32)
    halved = gp.pipeline(lambda a: gp.Field(a, 2) / 2)
    for view in (np.s_[..., ::-1, ::-1], np.s_[..., ::-2, :], np.s_[::-1, :, ::-1, 1::2]):
        np.testing.assert_array_equal(halved(cupy.asarray(array)[view]).get(), array[view] / 2)


MATRICES = {
    "every second": lambda a: a[..., ::2, ::2],
    "swapped": lambda a: a.swapaxes(-1, -2),
    "between the axes of the grid": lambda a: a.swapaxes(1, 2),
}


@pytest.mark.parametrize("library", ["cupy", "torch"], indirect=True)
@pytest.mark.parametrize("view", MATRICES)
def test_matrices_of_any_strides_without_copies(library, view, no_copies, monkeypatch):
    array = rng.random((6, 7, 4, 5), np.float32)
    values, out = (MATRICES[view](to(library, a)) for a in (array, np.zeros_like(array)))
    linear = gp.pipeline(lambda a: 0.5 * gp.Field(a, 2) + 1)
    result = linear(values)
    linear(values, out=out)
    monkeypatch.undo()
    expected = np.float32(0.5) * MATRICES[view](array) + 1
    np.testing.assert_array_equal(back(result), expected)
    np.testing.assert_array_equal(back(out.copy() if library == "cupy" else out.contiguous()), expected)


@pytest.mark.parametrize("library", ["cupy", "torch"], indirect=True)
@pytest.mark.parametrize("foreign_stream", [False, True])
def test_a_source_may_be_overwritten_at_once(library, foreign_stream):
    """A thousand times: any launch out of order would see the wrong values."""
    module = importlib.import_module(library)
    shape = (1024, 1024)
    stream = (
        (module.cuda.Stream(non_blocking=True) if library == "cupy" else module.cuda.Stream())
        if foreign_stream
        else None
    )
    with stream if library == "cupy" and stream else module.cuda.stream(stream) if stream else gp.use_device("cuda:0"):
        source = module.zeros(shape, dtype=module.float32) if library == "cupy" else module.zeros(shape, device="cuda")
        wrong = (
            module.zeros((), dtype=module.int64)
            if library == "cupy"
            else module.zeros((), dtype=module.int64, device="cuda")
        )
        for n in range(1000):
            source[...] = 2 * n
            result = half(source)
            source[...] = -1
            wrong += (result != n).sum()
            del result
        assert int(wrong) == 0


@pytest.mark.parametrize("library", ["cupy", "torch"], indirect=True)
def test_a_source_may_be_deleted_at_once(library):
    module = importlib.import_module(library)
    results = []
    for n in range(50):
        source = to(library, np.full((512, 512), n, np.float32))
        results.append(half(source))
        del source
        if library == "cupy":
            module.full((512, 512), -1, dtype=module.float32)  # takes the memory that was given back
    gc.collect()
    for n, result in enumerate(results):
        np.testing.assert_array_equal(back(result), np.full((512, 512), n / 2, np.float32))


@pytest.mark.parametrize("library", ["cupy", "torch"], indirect=True)
def test_results_of_later_calls_are_of_the_memory_of_the_library(library, monkeypatch):
    array = to(library, rng.random((64, 96), np.float32))
    for _ in range(2):
        half(array)
    monkeypatch.setattr(CudaMemory, "allocate", None)
    monkeypatch.setattr(type(array), "__dlpack__", None)
    monkeypatch.setattr(type(array), "__cuda_array_interface__", None)
    result = half(array)
    monkeypatch.undo()
    assert type(result) is type(array) and result.dtype == array.dtype and result.shape == array.shape
    np.testing.assert_array_equal(back(result), back(array) * np.float32(0.5))


@pytest.mark.parametrize("library", ["cupy", "torch"], indirect=True)
def test_queues_that_hand_arrays_to_one_another(library):
    """In the legacy stream, in which nothing runs between them."""
    array = to(library, np.ones((2048, 2048), np.float32))
    for _ in range(3):
        with gp.queue("another"):
            half(array)
        half(array)
    for _ in range(50):
        with gp.queue("another"):
            quarter = half(half(array))
        result = half(quarter)
        del quarter
        with gp.queue("another"):
            result = half(result)
        assert (back(result) == 0.0625).all()


def test_a_tensor_that_requires_gradients():
    torch = pytest.importorskip("torch")
    array = torch.ones((8, 8), device="cuda")
    for _ in range(3):
        half(array)
    with pytest.raises(gp.SemanticError, match="this tensor requires a gradient"):
        half(array.clone().requires_grad_())
    np.testing.assert_array_equal(back(half(array)), np.full((8, 8), 0.5, np.float32))


def test_calls_in_a_captured_graph():
    torch = pytest.importorskip("torch")
    array, out = torch.ones((64, 64), device="cuda"), torch.empty((64, 64), device="cuda")
    for _ in range(3):
        half(half(array)), half(array, out=out)
    gc.collect()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        quarter = half(half(array))
        half(array, out=out)
    for n in range(5):
        array.fill_(8 * n)
        graph.replay()
        assert (quarter == 2 * n).all() and (out == 4 * n).all()
    np.testing.assert_array_equal(back(half(array)), np.full((64, 64), 16, np.float32))


def test_fields_of_device_arrays(library):
    array = rng.random((33, 21), np.float32)
    values = to(library, array)
    field = gp.ScalarField(values)
    if library == "cupy":
        values[...] = 0
    np.testing.assert_array_equal((field + 1).numpy(), array + 1)
    np.testing.assert_array_equal(field.numpy(), array)
    assert gp.ScalarField(values, dtype="float64").dtype == "float64"


def test_fields_that_use_the_arrays_memory(no_copies, monkeypatch):
    cupy = pytest.importorskip("cupy")
    array = rng.random((33, 21, 3), np.float32)
    field = gp.VectorField(cupy.asarray(array), copy=False)
    result = gp.evaluate(field * 2)
    monkeypatch.undo()
    np.testing.assert_array_equal(result.numpy(), 2 * array)
    np.testing.assert_array_equal(field.numpy(), array)


@pytest.mark.parametrize("library", ["cupy", "torch", "jax"], indirect=True)
def test_fields_as_arrays_of_others(library):
    array = rng.random((33, 21), np.float32)
    field = gp.evaluate(gp.ScalarField(array) * 2)
    module = importlib.import_module("jax.dlpack" if library == "jax" else library)
    there = module.from_dlpack(field)
    np.testing.assert_array_equal(back(there), 2 * array)
    assert address(there) == address(field)
    del field
    gc.collect()
    np.testing.assert_array_equal(back(there), 2 * array)
    vectors = gp.VectorField(rng.random((5, 7, 3), np.float32))
    np.testing.assert_array_equal(back(module.from_dlpack(vectors)), vectors.numpy())


@pytest.mark.parametrize("library", ["cupy", "torch"], indirect=True)
def test_results_in_arrays_of_the_callers(library, no_copies, monkeypatch):
    image = rng.random((45, 67, 3), np.float32)
    values, out = to(library, image), to(library, np.zeros((45, 67, 3), np.float32))
    where = address(out)
    assert blend(values, out=out) is out
    wide = to(library, np.zeros((45, 134, 3), np.float32))
    blend(values, out=wide[:, ::2])
    blend(values, out=values)
    monkeypatch.undo()
    expected = np.float32(0.5) * image + 1
    assert address(out) == where
    for array in (out, wide[:, ::2], values):
        np.testing.assert_array_equal(back(array), expected)
    assert not back(wide[:, 1::2]).any()


def test_mixed_kinds_are_refused():
    cupy = pytest.importorskip("cupy")
    add = gp.pipeline(lambda a, b: gp.ScalarField(a) + gp.ScalarField(b))
    with pytest.raises(gp.SemanticError, match="gets arrays of several kinds"):
        add(cupy.zeros(3, "f"), np.zeros(3, "f"))


def test_another_device_cannot_use_them():
    cupy = pytest.importorskip("cupy")
    with (
        gp.use_device("reference"),
        pytest.raises(gp.DeviceError, match="reference cannot use the memory of this array"),
    ):
        half(cupy.zeros(3, "f"))


def test_host_operators_and_iterations_take_them():
    cupy = pytest.importorskip("cupy")
    array = rng.random((16, 8, 3), np.float32)

    @gp.pipeline
    def turned(image):
        f = gp.VectorField(image)
        return gp.HostOperator(lambda a: a[::-1], f, outputs=f.type) + gp.iterate(lambda u: u * 2, f, times=3)

    result = turned(cupy.asarray(array))
    np.testing.assert_array_equal(result.get(), array[::-1] + 8 * array)
