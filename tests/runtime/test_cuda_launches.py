"""CUDA's launches of a plan, here by a driver that runs the kernels on the host: streams, memory, scalars, fills and threads."""

from __future__ import annotations

import ctypes
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.errors import DeviceError
from gpuop.dsl import *
from gpuop.engine.evaluate import plan_on
from gpuop.fusion.program import program
from gpuop.runtime.base.stream_arrays import Address
from gpuop.runtime.cuda import launch
from gpuop.runtime.cuda.driver import Active
from gpuop.runtime.cuda.stages import CudaStages
from gpuop.runtime.execute import Prepared
from tests.harness import same_bits
from tests.runtime.cuda_on_host.compiled import COMPILER
from tests.runtime.cuda_on_host.host_device import CudaOnHost, guarded

pytestmark = pytest.mark.skipif(COMPILER is None, reason="g++ is not installed")
A = np.random.default_rng(0).random((12, 20), np.float32)
QUEUE = 40


class Driver:
    """The driver, whose functions are numbers.

    Attributes:
        order: what was enqueued, with its stream.
        fails: the number of the launch that fails.
    """

    def __init__(self):
        self.functions, self.order, self.fails = [], [], None
        self.cu = SimpleNamespace(cuMemsetD32Async=self.fill, cuMemsetD8Async=lambda *args: self.fill(*args, size=1))

    def alone(self, name, *types):
        assert name == "cuLaunchKernel" and len(types) == 11
        return self.launch

    def launch(self, function, *rest):
        *size, shared, stream, table, extra = rest
        assert not shared and extra is None and len(size) == 6
        if len(self.order) == self.fails:
            raise DeviceError("CUDA: CUDA_ERROR_LAUNCH_FAILED")
        self.order.append(("launch", stream))
        wrong = self.functions[function].run(ctypes.c_void_p(table), size)
        assert not wrong

    def fill(self, address, value, count, stream, size=4):
        self.order.append(("fill", stream))
        memory = (ctypes.c_char * (size * count)).from_address(address)
        memory[:] = int(value).to_bytes(size, "little") * count
        return (0,)


@pytest.fixture
def driver(monkeypatch):
    driver = Driver()
    monkeypatch.setattr(launch, "alone", driver.alone)
    return driver


class Launches:
    """The kernels of a field on the host, with memory for all values."""

    def __init__(self, driver, field, optimize=False):
        device = CudaOnHost()
        what = program([field.node])
        self.prepared = Prepared(device, plan_on(device, what, None, optimize))
        self.program = what
        for number, each in enumerate(self.prepared.programs):
            self.prepared.programs[number] = replace(each, code=SimpleNamespace(handle=len(driver.functions)))
            driver.functions.append(each.code)
        memory = SimpleNamespace(
            handle=QUEUE, cu_stream=QUEUE, cu=driver.cu, active=lambda: Active(lambda: None, lambda: None)
        )
        device.list_programs = lambda launches: launch.CudaLaunches(memory, launches)
        self.list = self.prepared.list_on(device)

    def values(self, *leaves):
        """Arrays of all values, in memory that ends where nobody may read; tuples are by-value parameters."""
        arrays = dict(zip(self.program.leaves, leaves, strict=True))
        types = self.prepared.plan.program.types
        for step in self.prepared.plan.launches:
            for v in step.outputs:
                arrays[v] = guarded(types[v].nbytes).view(types[v].memory_dtype).reshape(tuple(types[v].array_shape))
        addresses = {v: a if type(a) is tuple else Address(a.ctypes.data) for v, a in arrays.items()}
        return addresses, arrays

    def run(self, *leaves, stream=0):
        addresses, arrays = self.values(*leaves)
        given = {v: addresses[v] for v in self.program.leaves}
        self.list.run(given, {v: a for v, a in addresses.items() if v not in given}, stream)
        return arrays[self.prepared.plan.program.results[0]]


def in_guarded(a):
    memory = guarded(a.nbytes).view(a.dtype).reshape(a.shape)
    memory[...] = a
    return memory


@pytest.mark.parametrize("stream", [0, 77])
def test_kernels_in_order_in_a_stream(driver, stream):
    f = gp.ScalarField(A)
    launches = Launches(driver, (f * 2 + 1) * 3)
    for n in range(3):
        same_bits(launches.run(in_guarded(A + n), stream=stream), ((A + n) * 2 + 1) * 3)
    assert driver.order == [("launch", stream or QUEUE)] * 9
    assert len(launches.list.idle) == 1  # which all three have used


def test_scalars_change(driver):
    gain, offset = gp.Parameter(2.0), gp.Parameter(np.array([1, 2], "int32"))
    f = gp.ScalarField(A)
    launches = Launches(driver, gp.operator(lambda a, g, o: _readTensor(a) * g + _readTensor(o)[1])(f, gain, offset))
    by_type = {"float32": (2.5,), "int32": (7, -3)}
    leaves = [in_guarded(A) if not node.by_value else None for node in launches.program.leaves.values()]
    for factor in (2.5, -1.0):
        by_type["float32"] = (factor,)
        given = [
            by_type[node.type.dtype] if leaf is None else leaf
            for node, leaf in zip(launches.program.leaves.values(), leaves, strict=True)
        ]
        same_bits(launches.run(*given), A * np.float32(factor) + np.float32(-3))


def test_numbers_are_set_where_they_have_changed(driver, monkeypatch):
    """The same tuple is not set again, another one is, of the same numbers too; all kinds of floats arrive as they are."""
    gain, offset, places = gp.Parameter(2.0), gp.Parameter(np.zeros(3, "f")), []
    body = gp.operator(lambda a, g, o: _readTensor(a) * g + _readTensor(o)[1])
    launches = Launches(driver, body(gp.ScalarField(A), gain, offset))
    kinds = [node.type.planes if node.by_value else 0 for node in launches.program.leaves.values()]
    set_numbers, a = launch.Arguments.set_numbers, in_guarded(A)
    monkeypatch.setattr(
        launch.Arguments, "set_numbers", lambda self, *rest: places.append(rest[0]) or set_numbers(self, *rest)
    )
    one, other, more = ((number,) for number in (3.0, 3.0, -0.0))
    offsets = [(0.0, value, 0.0) for value in (np.inf, -1.5, float(np.float32(1e-45)), np.nan)]
    runs = [
        (one, offsets[1], 2),
        (one, offsets[1], 0),
        (other, offsets[1], 1),
        (more, offsets[0], 2),
        (more, offsets[2], 1),
    ]
    for factor, three, changes in (*runs, (one, offsets[3], 2), (one, offsets[3], 0)):
        before = len(places)
        result = launches.run(*[a if not n else three if n == 3 else factor for n in kinds])
        same_bits(result, A * np.float32(factor[0]) + np.float32(three[1]))
        assert len(places) - before == changes


def test_extents_are_arguments(driver):
    """A text for all sizes is passed those of the list."""
    shifted = gp.operator(dynamic=True)(lambda a: _readTensor(a, _row, _column + 1) * 2)
    for rows in (12, 5):
        launches = Launches(driver, shifted(gp.ScalarField(A[:rows])))
        (each,) = launches.list.launches
        assert each.program.source.extents and not each.program.source.direct
        for n in range(2):
            expected = np.pad(A[:rows] + n, ((0, 0), (0, 1)), mode="edge")[:, 1:] * 2
            same_bits(launches.run(in_guarded(A[:rows] + n)), expected)


def test_outputs_are_filled_in_the_same_stream(driver):
    first = gp.operator(outputs=gp.FieldType(A.shape), default=5.0)(
        lambda a: _writeTensor(_out0, _readTensor(a, 0, _column), 0, _column)
    )
    launches = Launches(driver, first(gp.ScalarField(A[:1])) * 2)
    expected = np.full_like(A, 10)
    expected[0] = A[0] * 2
    for _ in range(2):
        same_bits(launches.run(in_guarded(A[:1]), stream=9), expected)
    assert driver.order == [("fill", 9), ("launch", 9), ("launch", 9)] * 2


def test_a_launch_that_fails(driver):
    launches = Launches(driver, (gp.ScalarField(A) * 2 + 1) * 3)
    launches.run(in_guarded(A))
    driver.fails = len(driver.order) + 1
    with pytest.raises(DeviceError, match="LAUNCH_FAILED"):
        launches.run(in_guarded(A))
    driver.fails = None
    for n in range(2):
        same_bits(launches.run(in_guarded(A * n)), (A * n * 2 + 1) * 3)


def test_threads_have_arguments_of_their_own(driver):
    launches, wrong = Launches(driver, (gp.ScalarField(A) * 2 + 1) * 3), []

    def work(n):
        mine = in_guarded(A + n)
        for _ in range(30):
            wrong.extend([n] * (not np.array_equal(launches.run(mine), ((A + n) * 2 + 1) * 3)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong and 1 <= len(launches.list.idle) <= 4


def test_a_stage_is_copied_there_and_back(driver):
    """Here the device's memory is other memory of the host."""
    launches = Launches(driver, (gp.ScalarField(A) * 2 + 1) * 3)
    (leaf,), steps = launches.program.leaves, launches.prepared.plan.launches
    there, ended = np.zeros(1 << 16, np.uint8), []

    def moved(target, source, nbytes, stream):
        assert stream == QUEUE
        driver.order.append(("copy", nbytes))
        ctypes.memmove(target, source, nbytes)

    def finish(stream):
        if driver.fails:
            raise DeviceError("CUDA: CUDA_ERROR_ILLEGAL_ADDRESS")
        driver.order.append(("wait", stream))

    calls = SimpleNamespace(to_device=moved, to_host=moved, finish=finish)
    memory = SimpleNamespace(
        name="cuda:0", handle=QUEUE, stream=SimpleNamespace(calls=calls), host_memory=lambda n: np.zeros(n, np.uint8),
        allocate=lambda kind: SimpleNamespace(address=there.ctypes.data), active=lambda: Active(lambda: None, ended.clear),
    )  # fmt: skip
    stages = CudaStages(memory)
    begins = {leaf: 0, **{step.outputs[0]: 1024 * (n + 1) for n, step in enumerate(reversed(steps))}}
    for n in range(2):
        stage = stages.taken(1 << 16)
        values = {v: Address(stage.address + begin) for v, begin in begins.items()}
        stage.host[: A.nbytes].view(np.float32)[...] = (A + n).ravel()
        stages.run(stage, launches.list, values, 1024, 1024 + A.nbytes)
        same_bits(stage.host[1024:][: A.nbytes].view(np.float32).reshape(A.shape), ((A + n) * 2 + 1) * 3)
        stages.idle[1 << 16].append(stage)
    launched = [("launch", QUEUE)] * 3
    assert driver.order == [("copy", 1024), *launched, ("copy", A.nbytes), ("wait", QUEUE)] * 2
    assert stages.taken(1 << 16) is stage
    driver.fails = 99
    with pytest.raises(DeviceError, match=r"^cuda:0: CUDA: CUDA_ERROR_ILLEGAL_ADDRESS; CUDA is lost to this process"):
        stages.run(stage, launches.list, values, 1024, 1024 + A.nbytes)
