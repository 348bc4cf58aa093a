"""A prepared call is few calls of functions: counted, Python's and C's, where a timing would depend on the machine."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import scipy.ndimage

import gpuop as gp
from gpuop.base.config import config
from gpuop.dsl import *
from gpuop.runtime.cuda.launch import CudaLaunches
from gpuop.runtime.devices import current
from gpuop.runtime.opencl.device import OpenCL
from gpuop.runtime.reference.device import Reference
from tests.counted import counted
from tests.engine.ran import plans_that_run
from tests.harness import same_bits

pytestmark = pytest.mark.daily  # which form of a device it is decides what is used in place
A = np.random.default_rng(0).random((32, 40), np.float32)

one = gp.pipeline(lambda a: gp.ScalarField(a) * 2 + 1)
two = gp.pipeline(lambda a, b: (gp.ScalarField(a) + gp.ScalarField(b), gp.ScalarField(a) - gp.ScalarField(b)))
three = gp.pipeline(optimize=False)(lambda a: (gp.ScalarField(a) * 2 + 1) * 3)


@pytest.fixture
def driver():
    if not getattr(current(), "shares_host_memory", False):
        pytest.skip("calls are counted where a driver computes in the arrays, without maps")


def test_a_pipeline_of_one_kernel(driver):
    out = np.empty_like(A)
    assert counted(lambda: one(A)) <= 36
    assert counted(lambda: one(A, out=out)) <= 39
    same_bits(out, A * 2 + 1)


def test_more_arrays_and_kernels(driver):
    B, out = A[::-1].copy(), np.empty_like(A)
    assert counted(lambda: two(A, B)) <= 44  # two kernels of two arrays
    assert counted(lambda: three(A)) <= 41  # one for each further kernel, and memory between them
    assert counted(lambda: three(A, out=out)) <= 44
    same_bits(out, (A * 2 + 1) * 3)


def test_a_parameter_as_an_argument(driver):
    times, p = gp.pipeline(lambda a, n: gp.ScalarField(a) * n), gp.Parameter(2.0)
    assert counted(lambda: times(A, p)) <= 60
    value = np.array(3, np.float32)
    for number in (3, 4):  # the same array of the caller, changed in place
        value[...] = number
        p.set(value)
        for _ in range(2):
            same_bits(times(A, p), A * np.float32(number))
    value[...] = 5
    same_bits(times(A, p), A * np.float32(4))


def test_a_function_of_the_library(driver):
    out = np.empty_like(A)
    assert counted(lambda: gp.ndimage.gaussian_filter(A, 1.5)) <= 42  # two kernels
    assert counted(lambda: gp.ndimage.gaussian_filter(A, 1.5, output=out)) <= 45
    np.testing.assert_allclose(out, scipy.ndimage.gaussian_filter(A, 1.5), rtol=1e-5)


def test_numbers_as_arguments(driver, monkeypatch):
    """Weights that other calls have others of, 25 arguments of a kernel: set once, and anew where they change."""
    monkeypatch.setattr(config, "specialize", "auto")
    weights = [np.random.default_rng(n).integers(-9, 9, (5, 5)).astype(float) for n in range(4)]
    a = np.random.default_rng(9).integers(-99, 99, A.shape).astype(np.float32)
    for n in (0, 1, 2, 3, 3, 2, 3, 1, 1, 2):
        same_bits(gp.ndimage.correlate(a, weights[n]), scipy.ndimage.correlate(a, weights[n]))
    assert counted(lambda: gp.ndimage.correlate(a, weights[3])) <= 56
    same_bits(gp.ndimage.correlate(a, weights[2]), scipy.ndimage.correlate(a, weights[2]))


def test_threads_have_numbers_of_their_own(driver, monkeypatch):
    monkeypatch.setattr(config, "specialize", "auto")
    add, wrong = gp.pipeline(lambda a, n: gp.ScalarField(a) + n), []
    for n in range(3):
        add(A, float(n))

    def work(n):
        for _ in range(60):
            wrong.extend([n] * (not np.array_equal(add(A, float(n)), A + np.float32(n))))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


class Far(Reference):
    """The reference, with a memory of its own as GPUs have."""

    name = "far"

    def wrap(self, array):
        return None


def test_a_device_with_memory_of_its_own(monkeypatch):
    """But for what the interpreter does; an array of the type that kernels take is copied, and nothing else."""
    out = np.empty_like(A)
    with gp.use_device(Far()):
        for _ in range(3):
            same_bits(one(A), A * 2 + 1)
            same_bits(one(A, out=out), A * 2 + 1)
        monkeypatch.setattr(Far, "once", lambda *_: None)
        assert counted(lambda: one(A)) <= 60
        assert counted(lambda: one(A, out=out)) <= 65


doubled = gp.operator(lambda f: _readTensor(f) * 2)


def test_eager_operators_and_steps(driver):
    """An eager call records, walks the graph and looks for values that are there: 40 % of its calls are the operator's."""
    field = gp.ScalarField(A)
    assert counted(lambda: doubled(field).numpy()) <= 235  # 186 in a process of its own, and more among other tests
    assert counted(lambda: (field * 2 + 1).numpy()) <= 300  # 246
    with gp.ComputeGraph() as graph:
        graph.probe(field * 2, "doubled")
    assert counted(graph.step) <= 13


# --- what prepared calls must still see -----------------------------------------------------------------------------------


def prepared(call, *arrays):
    for _ in range(3):
        call(*arrays)


def test_arrays_that_lie_otherwise(device):
    prepared(one, A)
    wide = np.zeros((64, 80), np.float32)
    wide[::2, ::2] = A
    bytes_of = np.zeros(A.nbytes + 8, np.uint8)
    misplaced, odd = (bytes_of[n : n + A.nbytes].view(np.float32).reshape(A.shape) for n in (4, 1))
    misplaced[...] = A
    for array in (wide[::2, ::2], A.copy(order="F"), A[::-1], misplaced, np.broadcast_to(A[:1], A.shape)):
        expected = array * 2 + 1
        for _ in range(2):
            same_bits(one(array), expected)
    odd[...] = A
    same_bits(one(odd), A * 2 + 1)
    frozen = A.copy()
    frozen.flags.writeable = False
    same_bits(one(frozen), A * 2 + 1)
    with pytest.raises(gp.ArgumentError, match="read-only"):
        one(A, out=frozen)
    same_bits(one(A), A * 2 + 1)


def test_results_into_arrays_that_lie_otherwise(device):
    prepared(lambda: one(A, out=np.empty_like(A)))
    wide = np.zeros((64, 80), np.float32)
    bytes_of = np.zeros(A.nbytes + 16, np.uint8)
    for out in (wide[::2, ::2], np.empty_like(A, order="F"), bytes_of[4 : 4 + A.nbytes].view("f").reshape(A.shape)):
        for _ in range(2):
            assert one(A, out=out) is out
            same_bits(out, A * 2 + 1)
    for wrong in (np.empty((32, 41), "f"), np.empty_like(A, dtype="f8"), [np.empty_like(A)] * 2):
        with pytest.raises(gp.ArgumentError, match="out="):
            one(A, out=wrong)


def test_results_over_arguments(device):
    blurred = gp.pipeline(lambda a: gp.ndimage.uniform_filter(gp.ScalarField(a), 3))
    expected = blurred(A)
    prepared(lambda: blurred(A, out=np.empty_like(A)))
    array = A.copy()
    assert blurred(array, out=array) is array
    same_bits(array, expected)
    whole = np.zeros((33, 40), np.float32)
    whole[:32] = A
    blurred(whole[:32], out=whole[1:])
    same_bits(whole[1:], expected)
    B, both = A[::-1].copy(), np.empty((2, *A.shape), np.float32)
    prepared(lambda: two(A, B, out=(both[0], both[1])))
    same_bits(both, np.stack([A + B, A - B]))
    with pytest.raises(gp.ArgumentError, match="same memory"):
        two(A, B, out=(both[0], both[0]))


def test_arrays_without_points(device):
    empty = np.empty((0, 5), np.float32)
    for _ in range(3):
        assert one(empty).shape == (0, 5)
        assert one(empty, out=(out := np.empty_like(empty))) is out


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "bool", "uint8", "float16", "int64"])
def test_dtypes_that_are_stored_otherwise(device, dtype):
    a = (A * 100).astype(dtype)
    same = gp.pipeline(lambda x: np.where(gp.Field(x) != 0, gp.Field(x), gp.Field(x)))
    for _ in range(3):
        same_bits(same(a), a)
        same_bits(same(a, out=np.empty_like(a)), a)


def test_tensors_that_are_converted(device):
    photo = np.random.default_rng(1).random((12, 16, 3), np.float32)
    shifted = gp.pipeline(lambda x: np.roll(gp.VectorField(x), 1, axis=0))
    for n in range(3):
        same_bits(shifted(photo + n), np.roll(photo + n, 1, axis=0))
        shifted(photo + n, out=(out := np.empty_like(photo)))
        same_bits(out, np.roll(photo + n, 1, axis=0))


scale = 2.0


def test_globals_parameters_pins_and_devices(device, monkeypatch):
    p = gp.Parameter(3.0)
    scaled = gp.pipeline(lambda a: gp.ScalarField(a) * scale + p)
    for _ in range(3):
        same_bits(scaled(A), A * np.float32(2) + np.float32(3))
    p.set(5.0)
    same_bits(scaled(A), A * np.float32(2) + np.float32(5))
    with gp.schedule("plain"):
        same_bits(scaled(A), A * np.float32(2) + np.float32(5))
    with gp.use_device("reference"):
        for _ in range(3):
            same_bits(scaled(A), A * np.float32(2) + np.float32(5))
    with gp.queue("another"):
        for _ in range(3):
            same_bits(scaled(A), A * np.float32(2) + np.float32(5))
    given = gp.pipeline(lambda a, n, kind: (gp.ScalarField(a) * n).astype(kind))
    for value in (1.0, 2.5, 2.5):
        p.set(value)
        same_bits(given(A, p, "float32"), A * np.float32(value))
        same_bits(given(A, gp.Parameter(2.0), "float32"), A * np.float32(2))
    p.set(5.0)
    monkeypatch.setitem(globals(), "scale", 4.0)
    for _ in range(2):
        same_bits(scaled(A), A * np.float32(4) + np.float32(5))


def test_each_pin_and_device_has_its_plan(driver, monkeypatch):
    ran = plans_that_run(monkeypatch)
    pinned = gp.pipeline(lambda a: gp.ndimage.uniform_filter(gp.ScalarField(a), 5))
    prepared(pinned, A)
    with gp.schedule("plain"):
        prepared(pinned, A)
    with gp.use_device("reference"):
        prepared(pinned, A)
    prepared(pinned, A)
    assert [plan.backend.name for plan in ran] == [current().name] * 6 + ["reference"] * 3 + [current().name] * 3
    assert len({id(plan) for plan in ran[:3]}) == 1 and ran[9] is ran[0] is not ran[3] is ran[5]


def test_plans_that_are_gone(device):
    prepared(three, A)
    gp.release()
    for _ in range(3):
        same_bits(three(A), (A * 2 + 1) * 3)


def test_threads_at_once(device):
    """Each has results of its own arrays, and intermediate values of its own."""
    prepared(three, A)
    wrong = []

    def work(n):
        mine = A + n
        wrong.extend(n for _ in range(50) if not np.array_equal(three(mine), (mine * 2 + 1) * 3))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_a_call_within_a_call(device):
    """A host function of a pipeline calls the pipeline that is running."""
    inner = gp.pipeline(optimize=False)(lambda a: (gp.ScalarField(a) * 2 + 1) * 3)
    outer = gp.pipeline(
        lambda a: gp.HostOperator(inner, (gp.ScalarField(a) * 2 + 1) * 3, outputs=gp.FieldType(A.shape))
    )
    expected = (A * 2 + 1) * 3
    for _ in range(3):
        same_bits(outer(A), (expected * 2 + 1) * 3)


def test_a_call_that_fails_leaves_the_next_as_it_was(device, monkeypatch):
    prepared(three, A)
    by_driver = isinstance(current(), OpenCL)
    where, name = (current().cl, "enqueue_nd_range_kernel") if by_driver else (type(current()), "once")
    if is_cuda := device[:5] == "cuda:" and device[5:].isdigit():  # which runs all kernels by one function
        where, name = CudaLaunches, "run"
    inner, fails = getattr(where, name), [True] * (1 + is_cuda)

    def once(*args):
        if fails[0] and len(fails) == 2:
            raise gp.DeviceError("no memory")
        fails.append(True)
        return inner(*args)

    monkeypatch.setattr(where, name, once)
    with pytest.raises(gp.DeviceError, match="no memory"):
        three(A)
    fails[0] = False
    for n in range(3):
        same_bits(three(A + n), ((A + n) * 2 + 1) * 3)
