"""CUDA alone: contexts, graphs of launches, grids, memory; and messages where it is missing."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
from dataclasses import replace
from enum import IntEnum
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from gpuop.ir.kernel import Pin
from gpuop.runtime.base.backend import CALL, indivisible, keeping
from gpuop.runtime.cuda import device, driver
from gpuop.runtime.execute import Prepared
from gpuop.runtime.reference.device import Reference
from tests.codegen.nvrtc import compile_cuda

rng = np.random.default_rng(17)


@pytest.fixture
def backend():
    if "cuda:0" not in [d.name for d in gp.devices()]:
        pytest.skip("there is no CUDA device")
    with gp.use_device("cuda:0") as opened:
        yield opened


@gp.operator
def shifted(field, by):
    return _readTensor(field, _row, _column + by) * 2


def test_rows_beyond_the_grid_of_cuda():
    """Blocks along y are at most 65,535: taller fields count all of them along x."""
    tall = gp.ScalarField(np.zeros((70_000 * 256, 1), np.uint8))
    kernel = replace(_kernel(shifted(tall, 1)), pin=Pin("plain"))
    source = generate(kernel, target_named("cuda")).text
    compile_cuda(source, "sm_90")
    assert "blockIdx.y" not in source and "blockIdx.x / 1 % " in source


def _kernel(field):
    return plan(program([field.node])).launches[0].kernel


@pytest.mark.parametrize("code", [-19, 0x3C00])
@pytest.mark.parametrize("convert", [_convert_short, _convert_ushort])
def test_constants_become_half_without_a_warning(convert, code):
    """The compiler's log is checked for warnings: a negative number must not become unsigned by a call."""

    @gp.operator
    def half(field):
        return _as_half(convert(code)) + _as_half(_convert_short(_readTensor(field)))

    source = generate(_kernel(half(gp.ScalarField(np.zeros(5, np.int16)))), target_named("cuda")).text
    compile_cuda(source, "sm_90")
    assert "unpack_half(" in source


@pytest.mark.parametrize("shape", [(70_000, 300), (66_000, 2, 65), (3, 70_000, 65)])
def test_tall_fields(backend, shape):
    array = rng.integers(0, 255, shape, dtype=np.uint8)

    @gp.operator
    def next_column(field):
        place = (_layer, _row, _column)[3 - len(shape) :]
        return _readTensor(field, *place[:-1], place[-1] + 1)

    expected = np.concatenate([array[..., 1:], array[..., -1:]], axis=-1)
    np.testing.assert_array_equal(next_column(gp.ScalarField(array)).numpy(), expected)


def test_no_context_is_left_behind(backend):
    """Neither the user's context nor the end of the process suffers."""
    code = """
import pycuda.driver as drv
drv.init()
own = drv.Device(0).make_context()
import numpy as np, gpuop as gp
with gp.use_device("cuda:0"):
    assert (gp.ScalarField(np.ones((4, 4), "f")) * 3).numpy().sum() == 48
assert drv.Context.get_current() == own
drv.mem_alloc(16).free()
own.pop()
print("fine")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


def test_several_threads(backend):
    results, x = [], rng.random((300, 200), np.float32)

    def work(k):
        with gp.ComputeGraph(device="cuda:0") as graph:
            u = gp.ScalarField(x)
            u.next = u + k
            graph.probe(u, "u")
        graph.step(20)
        results.append(np.allclose(graph.read("u"), x + 20 * k))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [True] * 8


def _launches(backend, field):
    prepared = Prepared(backend, plan(program([field.node]), optimize=False))
    types = prepared.plan.program.types
    values = {v: backend.empty(kind) for v, kind in types.items()}
    return prepared, values, [prepared.bind(n, values) for n in range(len(prepared.plan.launches))]


def test_a_graph_of_launches_follows_the_memory_they_share(backend):
    a, b = (gp.ScalarField(rng.random((64, 64), np.float32)) for _ in range(2))
    left, right = a, b
    for _ in range(10):
        left, right = shifted(left, 1) + right * 0.5, shifted(right, -1)
    prepared, values, launches = _launches(backend, left + right)
    for number, node in prepared.plan.program.leaves.items():
        backend.write(values[number], node.source.read()[0].reshape(1, -1))
    (run,) = backend.sequence(launches)
    (output,) = prepared.plan.program.results
    expected = (left + right).numpy()
    for _ in range(5):
        run()
        result = backend.download(prepared.plan.program.types[output], values[output]).reshape(64, 64)
        np.testing.assert_array_equal(result, expected)


def test_parameters_change_in_a_graph_of_launches(backend):
    gain = gp.Parameter(2.0)
    with gp.ComputeGraph(device="cuda:0") as graph:
        u = gp.ScalarField(np.ones((8, 8), np.float32))
        graph.probe(u * gain, "v")
    for value in (2.0, 3.0, 5.0):
        gain.set(value)
        graph.step()
        np.testing.assert_array_equal(graph.read("v"), np.full((8, 8), value, np.float32))


def test_memory_that_is_not_there(backend):
    small = gp.ScalarField(np.ones(4, np.float32))
    too_large = gp.FieldType((1 << 20, 1 << 20), (), "float32")

    @gp.operator(outputs=lambda f: too_large)
    def huge(f):
        _writeTensor(_out0, _readTensor(f, 0))

    sizes = r"\(4398046511104 bytes; \d+ of the device's \d+ are free\)"
    with pytest.raises(gp.DeviceError, match=f"cuda:0: no memory for a field of .* {sizes}"):
        gp.evaluate(huge(small))
    assert (small + 1).numpy().tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "int64"])
def test_fills_of_every_size(backend, dtype):
    @gp.operator(outputs=lambda f: gp.FieldType((7, 9), (), dtype), default=3)
    def corner(f):
        _writeTensor(_out0, _readTensor(f, 0), 2, 4)

    with gp.ComputeGraph(device="cuda:0") as graph:
        f = gp.ScalarField(np.ones(4, dtype))
        f.next = f + f
        graph.probe(corner(f), "c")
    graph.step(2)
    expected = np.full((7, 9), 3, dtype)
    expected[2, 4] = 4
    np.testing.assert_array_equal(graph.read("c"), expected)


def test_transfers_of_more_than_the_staging_buffers(backend):
    array = rng.integers(0, 2**31, (3, 1500, 1001), dtype=np.int32)
    np.testing.assert_array_equal((gp.ScalarField(array) + 1).numpy(), array + 1)


def test_what_is_missing(monkeypatch):
    monkeypatch.setattr(device.importlib.util, "find_spec", lambda name: None)
    assert device.missing().startswith("pycuda is not installed; `pip install '.[cuda]'` in gpuop's checkout")


def test_more_than_2_to_the_31_elements(backend):
    """12 GiB: offsets beyond 31 and 32 bits, read and written at own points and at others."""
    kind = gp.FieldType((3, 65536, 65536), (), "uint8")
    if backend.memory.free_bytes() < 5 * kind.nbytes:
        pytest.skip("the device has too little memory")

    @gp.operator(outputs=lambda: kind)
    def pattern():
        _writeTensor(_out0, _convert_uchar((_layer * 31 + _row * 7 + _column) & 255))

    @gp.operator
    def turned(field):
        return _readTensor(field, _layers - 1 - _layer, _row, _columns - 1 - _column) + _readTensor(field)

    result = gp.evaluate(turned(pattern()))
    layers, rows, columns = [0, 2], [0, 1, 32768, 65535], np.s_[::4099]
    for layer in layers:
        for row in rows:
            column = np.arange(65536)[columns]
            here = (layer * 31 + row * 7 + column) & 255
            there = ((2 - layer) * 31 + row * 7 + 65535 - column) & 255
            actual = result[layer, row, columns].numpy()
            np.testing.assert_array_equal(actual, (here + there).astype(np.uint8))


def test_a_step_after_memory_ran_out(backend):
    with gp.ComputeGraph(device="cuda:0") as graph:
        u = gp.ScalarField(np.zeros((8, 8), np.float32))
        u.next = u + 1
        graph.probe(u, "u")
    graph.step()
    with pytest.raises(gp.DeviceError, match="no memory for a field of"):
        backend.empty(gp.FieldType((1 << 20, 1 << 20), (), "float32"))
    graph.step()
    assert graph.read("u")[0, 0] == 2


def test_a_call_of_c_alone(monkeypatch):
    """The function that launches CUDA graphs: nothing of Python runs in it, and a status is an error. Here it is `abs` of C."""
    monkeypatch.setattr(driver, "DRIVER", None)
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=SimpleNamespace(CUresult=str)))
    monkeypatch.setattr(driver, "_text", lambda status: "")
    absolute = driver.alone("abs", ctypes.c_int)
    part = keeping(owner := SimpleNamespace(), partial(absolute, 0))
    assert indivisible(part) and part() is None
    ran = []
    with pytest.raises(AttributeError):  # there is no name of the status -3 here
        ran.extend(map(CALL, [part, part, partial(absolute, -3), part]))
    assert ran == [None, None] and part.owner is owner


class Status(IntEnum):
    CUDA_ERROR_OUT_OF_MEMORY = 2


def test_memory_that_there_is_not(monkeypatch):
    """Of the host, for arrays whose pages are locked, and of the device, for what is no field."""
    refused = SimpleNamespace(CU_MEMHOSTALLOC_PORTABLE=1, cuMemHostAlloc=lambda *_: (Status(2), None))
    active = driver.Active(lambda: None, lambda: None)
    monkeypatch.setattr(Reference, "host_memory", lambda self, nbytes: driver.page_locked(refused, active, nbytes))
    with gp.use_device("reference"), pytest.raises(gp.DeviceError) as host:
        gp.pinned((3, 100))
    assert str(host.value) == "the host has no memory for an array of 3×100 float32 (1200 bytes)"
    with pytest.raises(gp.DeviceError) as other:
        driver.returned((Status(2), None))
    assert str(other.value) == (
        "CUDA: the driver has no memory left for what it needs beside fields (CUDA_ERROR_OUT_OF_MEMORY); "
        "release fields and graphs, or end other programs on the GPU"
    )
