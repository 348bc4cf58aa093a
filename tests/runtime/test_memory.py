"""Fields too large for a device, and a device out of memory: a DeviceError with the sizes, and everything works afterwards."""

from pathlib import Path

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

HUGE = gp.FieldType((2**20, 2**21))  # 8 TiB


@gp.operator(outputs=HUGE)
def spread(field):
    return _readTensor(field, 0)


@gp.operator
def doubled(field):
    return _readTensor(field) * 2


@pytest.fixture(params=[d.name for d in gp.devices()])
def name(request):
    with gp.use_device(request.param):
        yield request.param


def check_usable():
    assert doubled(gp.ScalarField(np.arange(5, dtype="f"))).numpy().tolist() == [0, 2, 4, 6, 8]


def test_too_large(name):
    for _ in range(2):
        with pytest.raises(gp.DeviceError, match=r"a field of 1048576×2097152 float32 \(8796093022208 bytes") as caught:
            spread(gp.ScalarField(np.ones(3, "f"))).numpy()
        assert str(caught.value).startswith(f"{name}: ")
        check_usable()


def test_too_large_in_a_graph(name):
    with gp.ComputeGraph(device=name) as graph:
        graph.probe(spread(gp.ScalarField(np.ones(3, "f"))), "huge")
    with pytest.raises(gp.DeviceError, match="8796093022208 bytes"):
        graph.step()
    with gp.ComputeGraph(device=name) as graph:
        graph.probe(doubled(gp.ScalarField(np.ones(3, "f"))), "small")
    graph.step()
    assert graph.read("small").tolist() == [2, 2, 2]


def test_out_of_memory(name, monkeypatch):
    """Simulated where devices allocate: what was uploaded before stays good."""
    result = doubled(gp.ScalarField(np.arange(5, dtype="f"))) + 1

    def refuse(kind):
        raise gp.DeviceError(f"no memory for a field of {kind}")

    with monkeypatch.context() as patched:
        patched.setattr(gp.device(name), "empty", refuse)
        with pytest.raises(gp.DeviceError, match="no memory for a field of 5 float32"):
            result.numpy()
    assert result.numpy().tolist() == [1, 3, 5, 7, 9]
    check_usable()


@pytest.mark.parametrize("name", [d.name for d in gp.devices() if d.name.startswith("opencl")], indirect=True)
def test_out_of_memory_of_an_opencl_driver(name, monkeypatch):
    """Simulated where the driver allocates; test_cuda.py exhausts a real device."""
    backend = gp.device(name)
    field = gp.ScalarField(np.arange(5, dtype="f"))
    doubled(field).numpy()
    result = doubled(field) + 1

    def refuse(*_):
        raise backend.cl.MemoryError("clCreateBuffer failed: MEM_OBJECT_ALLOCATION_FAILURE")

    with monkeypatch.context() as patched:
        patched.setattr(backend.cl, "Buffer", refuse)
        with pytest.raises(gp.DeviceError) as caught:
            result.numpy()
    total = backend.device.global_mem_size
    assert str(caught.value) == f"{name}: no memory for a field of 5 float32 (20 bytes; the device has {total})"
    assert result.numpy().tolist() == [1, 3, 5, 7, 9]
    check_usable()


PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@pytest.mark.skipif(not PAGES.exists() or "[never]" in PAGES.read_text(), reason="the system has no large pages")
@pytest.mark.parametrize("name", [d.name for d in gp.devices() if d.name.startswith("opencl")], indirect=True)
def test_large_pages(name):
    """Drivers of CPUs are asked for them where NumPy asks too: by what the system says of the memory of a field."""
    with gp.use_device(name) as backend:
        if backend.target.device != "cpu":
            pytest.skip("it is no CPU")
        kind = gp.FieldType((1024, 1536))
        buffer = backend.empty(kind)
        with backend.arrays([(kind, buffer)], []) as (array,):
            assert "hg" in flags_of(array.ctypes.data + kind.nbytes // 2)


def flags_of(address: int) -> list[str]:
    """Of the mapping of this process that has an address."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    for line in lines:
        first, _, rest = line.partition("-")
        end = rest.partition(" ")[0]
        if end and ":" not in first and int(first, 16) <= address < int(end, 16):
            return next(each for each in lines if each.startswith("VmFlags")).split()
    raise AssertionError("no mapping has it")
