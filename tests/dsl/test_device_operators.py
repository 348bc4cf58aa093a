"""Device operators: libraries in gpuop's own memory, among the kernels, eagerly, in pipelines, graphs and iterations."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.runtime.base.backend import Backend
from gpuop.runtime.cuda.arrays import cupy_arrays
from gpuop.runtime.execute import Prepared
from tests.as_gpus import AS_A_GPU
from tests.harness import image, same_bits


@pytest.fixture(autouse=True)
def arrays(request):
    """Devices of OpenCL that are GPUs have no arrays of libraries, and refuse."""
    if "device" in request.fixturenames:
        name = request.getfixturevalue("device").removesuffix(AS_A_GPU)
        if name.startswith("opencl") and gp.device(name).target.device == "gpu":
            pytest.skip("a GPU of OpenCL")


def product(a, b, c):
    return np.matmul(a, b, out=c)


def spectrum(z, out):
    out[...] = np.fft.fft2(z)


def reverse(a, out):
    out[...] = a[::-1]


def matrices():
    rng = np.random.default_rng(3)
    return rng.integers(-4, 5, (6, 9)).astype("f"), rng.integers(-4, 5, (9, 5)).astype("f")  # products are exact


def test_a_product_between_kernels(device):
    a, b = matrices()
    with gp.ComputeGraph() as graph:
        f, g = gp.ScalarField(a) * 2, gp.ScalarField(b) + 1
        graph.probe(gp.DeviceOperator(product, f, g, outputs=gp.FieldType((6, 5))) - 1, "y")
    same_bits(graph.read("y"), (2 * a) @ (b + 1) - 1)
    assert graph.kernel_count == 3
    text = graph.explain()
    assert text.startswith("3 kernels and 1 library call for 4 operators\n")
    assert "product on the device's arrays; reads 396 B, writes 120 B" in text
    assert "multiply → product: `product` is a library's work on the device" in text
    assert "product" not in graph.source("opencl")
    assert [row.name for row in graph.profile(2).rows] == [launch.kernel.name for launch in graph.plan.launches]
    with gp.profile() as times:
        graph.step()
    assert "product" in str(times)


def test_pipelines_parameters_and_iterations(device):
    a, b = matrices()
    gain = gp.Parameter(3.0)

    @gp.pipeline
    def scaled_product(x, y):
        f = gp.DeviceOperator(product, gp.ScalarField(x), gp.ScalarField(y), outputs=gp.FieldType((6, 5)))
        return gp.DeviceOperator(lambda v, k, out: np.multiply(v, k, out=out), f, gain, outputs=f.type)

    same_bits(scaled_product(a, b), 3 * (a @ b))
    gain.set(-1.0)
    out = np.empty((6, 5), "f")
    same_bits(scaled_product(a + 1, b, out=out), -((a + 1) @ b))
    assert "product on the device's arrays" in scaled_product.explain(a, b)

    turned = gp.iterate(lambda u: gp.DeviceOperator(reverse, u * 2, outputs=u.type) + 1, gp.ScalarField(a), times=3)
    expected = a
    for _ in range(3):
        expected = (2 * expected)[::-1] + 1
    same_bits(turned.numpy(), expected)


@pytest.mark.parametrize(("pure", "calls"), [(True, (1, 2, 3)), (False, (3, 3, 3))])
def test_pure_ones_are_called_when_their_fields_change(device, pure, calls):
    """Of a constant, of a parameter that is set before the last step, and of a state."""
    a, _ = matrices()
    called = []

    def flipped(name):
        def function(f, out):
            called.append(name)
            np.multiply(f, -1, out=out)

        return lambda f: gp.DeviceOperator(function, f, outputs=f.type, pure=pure)

    with gp.ComputeGraph() as graph:
        gain, state = gp.Parameter(2.0), gp.ScalarField(a)
        state.next = flipped("state")(state)
        graph.probe(flipped("constant")(gp.ScalarField(a + 1)) * flipped("gain")(gain) + state, "y")
    graph.step()
    gain.set(5.0)
    graph.step()
    same_bits(graph.read("y"), (a + 1) * 5 + a)
    assert [called.count(name) for name in ("constant", "gain", "state")] == list(calls)


def minus(f, out):
    np.multiply(f, -1, out=out)


def of_results(f, out):
    np.multiply(f, -1, out=out)


def test_calls_of_a_pipeline_have_what_is_pure_in_common(device, monkeypatch):
    """Calls share a pure operator of constants alone: not of an argument or a parameter, and not one that is a result."""
    a, _ = matrices()
    gain, ran, bind = gp.Parameter(2.0), [], Prepared.bind

    def noted(self, number, values):
        ran.append(self.plan.launches[number].kernel.name)
        return bind(self, number, values)

    @gp.pipeline
    def mixed(x):
        constant, given, number = gp.ScalarField(a) * 2, gp.ScalarField(x), gain
        constant, given, number = (
            gp.DeviceOperator(minus, f, outputs=f.type, pure=True) for f in (constant, given, number)
        )
        return given * constant + number * constant[::-1]

    monkeypatch.setattr(Prepared, "bind", noted)
    for x, value in ((a, 2.0), (a + 3, 2.0), (a, -1.0)):
        gain.set(value)
        same_bits(mixed(x), 2 * x * a + np.float32(value) * 2 * a[::-1])
    with gp.queue("beside"):
        same_bits(mixed(a), 2 * a * a - 2 * a[::-1])
    assert ran.count("minus") == 1 + 4 * 2
    assert (
        "computed once" in mixed.explain(a)
        and [row.share > 0 for row in mixed.profile(a, steps=2).rows].count(False) >= 1
    )
    both = gp.pipeline(
        lambda x: (
            gp.DeviceOperator(of_results, gp.ScalarField(a), outputs=gp.ScalarField(a).type, pure=True),
            gp.ScalarField(x),
        )
    )
    for _ in range(2):
        same_bits(both(a)[0], -a)
    assert ran.count("of_results") == 2


def test_states_step_after_step(device):
    start = np.array([[1, 2], [3, -1]], "f")
    with gp.ComputeGraph() as graph:
        state, count = gp.ScalarField(start), gp.ScalarField(np.zeros((), "int32"))
        state.next = gp.DeviceOperator(product, state, state * 0.5, outputs=state.type)
        count.next = count + 1
        graph.probe(state, "state")
        graph.probe(count, "count")
    expected = start
    for tick in range(5):
        same_bits(graph.read("state"), expected)
        assert int(graph.read("count")) == tick
        expected = expected @ (expected * np.float32(0.5))
        graph.step()
    graph.reset()
    same_bits(graph.read("state"), start)


def test_spectra(device):
    rng = np.random.default_rng(5)
    z = (rng.standard_normal((6, 10)) + 1j * rng.standard_normal((6, 10))).astype("complex64")
    f = gp.ComplexField(z)

    def back(y, out):
        out[...] = np.fft.ifft2(y)

    there = gp.DeviceOperator(spectrum, f * 2, outputs=f.type)
    np.testing.assert_allclose(abs(there).numpy(), abs(np.fft.fft2(2 * z)), rtol=1e-5)
    np.testing.assert_allclose(gp.DeviceOperator(back, there, outputs=f.type).numpy(), 2 * z, rtol=1e-4)
    with gp.ComputeGraph() as graph:
        graph.probe(gp.DeviceOperator(spectrum, f.conj() * 1, outputs=f.type).real + 1, "r")
    assert graph.kernel_count == 2  # by which parts are put beside one another, and taken apart
    np.testing.assert_allclose(graph.read("r"), np.fft.fft2(z.conj()).real + 1, rtol=1e-3)


KINDS = [
    (gp.FieldType((2, 2), dtype="bool"), np.array([[True, False], [True, True]])),
    (gp.FieldType((2, 2), 4, "unorm8"), np.arange(16, dtype="uint8").reshape(2, 2, 4)),
    (gp.FieldType(3, 2, "complex64"), np.arange(12, dtype="f").view("complex64").reshape(3, 2)),
    (gp.FieldType(3, (5, 2), "int16"), np.arange(30, dtype="int16").reshape(3, 5, 2)),
    (gp.FieldType((1, 2, 3), dtype="float16"), np.arange(6, dtype="float16").reshape(1, 2, 3)),
    (gp.FieldType((2, 3, 5), (2, 3), "float64"), np.arange(180.0).reshape(2, 3, 5, 2, 3)),
    (gp.FieldType((2, 2), (2, 3), "complex64"), np.arange(48, dtype="f").view("complex64").reshape(2, 2, 2, 3)),
    (gp.FieldType((), (), "complex64"), np.array(1 + 2j, "complex64")),
    (gp.FieldType((0, 4)), np.zeros((0, 4), "f")),
    (gp.FieldType((), (2,), "uint64"), np.array([2**64 - 1, 3], "uint64")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "array"), KINDS, ids=lambda v: str(v) if isinstance(v, gp.FieldType) else "")
def test_every_kind_of_array(device, kind, array):
    calls = []

    def reversing(a, out):
        calls.append((a.shape, a.dtype, out.shape, out.dtype))
        out[...] = a[::-1] if a.ndim else a

    field = gp.Field(array, len(kind.tensor_shape), kind.dtype)
    same_bits(gp.DeviceOperator(reversing, field, outputs=kind).numpy(), np.array(array[::-1] if array.ndim else array))
    assert calls == [(array.shape, array.dtype) * 2]


def test_several_outputs_and_one_field_twice(device):
    x = image(4, 6)
    f = gp.ScalarField(x)
    calls = []

    def split(a, b, low, high):
        calls.append(1)
        low[...], high[...] = a[:2], b[2:]
        return low, high

    half = gp.FieldType((2, 6))
    low, high = gp.DeviceOperator(split, f + 1, f + 1, outputs=(half, half))
    same_bits((low * high).numpy(), (x + 1)[:2] * (x + 1)[2:])
    assert calls == [1]
    result = gp.DeviceOperator(lambda out: out.fill(7), outputs=gp.FieldType(3, dtype="int32"))
    same_bits(result.numpy(), np.full(3, 7, "int32"))


def test_results_of_its_own(device):
    f = gp.ScalarField(image(3, 4))
    result = gp.DeviceOperator(lambda a, out: a[::-1] * 2, f + 0, outputs=f.type)  # here
    message = (
        r"device operator `lambda` returns an? \w+ of its own; it must fill the arrays .* or `result\[\.\.\.\] = …`"
    )
    with pytest.raises(gp.SemanticError, match=message) as caught:
        result.numpy()
    assert str(caught.value).endswith("# here")
    with pytest.raises(ZeroDivisionError):
        gp.DeviceOperator(lambda a, out: 1 / 0, f + 0, outputs=f.type).numpy()
    same_bits(gp.DeviceOperator(reverse, f + 0, outputs=f.type).numpy(), f.numpy()[::-1])


@pytest.mark.parametrize(("dtype", "result"), [("bfloat16", "float32"), ("float32", "bfloat16")])
def test_bfloat16_is_refused(dtype, result):
    f = gp.ScalarField(image(3, 4), dtype=dtype)
    with pytest.raises(
        gp.SemanticError, match="`reverse` has no bfloat16 fields: NumPy and CuPy have no such dtype; write"
    ):
        gp.DeviceOperator(reverse, f, outputs=f.type.replace(dtype=result))


def test_inputs_are_read_only_on_the_host():
    f = gp.ScalarField(image(3, 4))

    def careless(a, out):
        a += 1

    with gp.use_device("reference"), pytest.raises(ValueError, match="read-only"):
        gp.DeviceOperator(careless, f + 0, outputs=f.type).numpy()


def test_devices_without_arrays():
    text = "gpu:7 has no arrays for a DeviceOperator, as CUDA devices and CPUs have; a gp.HostOperator takes values to the host"
    with pytest.raises(gp.DeviceError, match=text):
        Backend.arrays(SimpleNamespace(name="gpu:7"), [], [])


@pytest.mark.parametrize("from_external", [False, True], ids=["handles", "protocol"])
def test_cuda_works_on_its_own_stream_through_cupy(monkeypatch, from_external):
    """The calls to CuPy, by a stand-in that only notes them; the GPU's own runs are those of the tests above."""
    messages = []

    def note(name):
        return lambda *args: messages.append((name, *args)) or nullcontext()

    class Given:
        def __init__(self, lent):
            messages.append(
                ("from_dlpack", lent.array.shape, lent.array.strides, lent.array.dtype.name, lent.array.device)
            )

        def view(self, dtype):
            return dtype.name

    def external(stream):
        messages.append(("stream", *stream.__cuda_stream__()))
        return nullcontext()

    streams = SimpleNamespace(from_external=external) if from_external else SimpleNamespace()
    names = SimpleNamespace(ExternalStream=note("stream"), Stream=streams, Device=note("device"))
    cupy = SimpleNamespace(cuda=names, from_dlpack=Given)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    memory = SimpleNamespace(name="cuda:1", handle=77, ordinal=1, active=note("active"))
    kinds = [gp.FieldType((2, 3), 4), gp.FieldType(5, (), "bool")]
    with cupy_arrays(memory, [(kind, 4096) for kind in kinds]) as arrays:
        assert arrays == ["float32", "bool"]
    assert messages == [
        ("active",),
        ("device", 1),
        ("stream", 0, 77) if from_external else ("stream", 77, 1),
        ("from_dlpack", (2, 3, 4), (3, 1, 6), "float32", (2, 1)),
        ("from_dlpack", (5,), (1,), "uint8", (2, 1)),
    ]
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(
        gp.DeviceError, match="a DeviceOperator on cuda:1 works with CuPy arrays, and CuPy is not installed"
    ):
        cupy_arrays(memory, []).__enter__()


@pytest.mark.parametrize("pure", [False, True])
def test_called_once_for_all_outputs(device, pure):
    x, calls = image(3, 4), []

    def both(a, low, high):
        calls.append(1)
        low[...] = a + 1
        high[...] = a * 2

    field = gp.ScalarField(x)
    low, high = gp.DeviceOperator(both, field, outputs=(field.type, field.type), pure=pure)
    same_bits(low.numpy(), x + 1)
    same_bits(high.numpy(), x * 2)
    same_bits((low + high).numpy(), (x + 1) + x * 2)
    assert len(calls) == 1
