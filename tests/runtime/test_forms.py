"""Outputs of compilers, as users see them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.engine import dump
from gpuop.runtime.cuda import nvrtc
from gpuop.runtime.opencl.programs import built

OPENCL = [d.name for d in gp.devices() if d.name.startswith("opencl")]
KIND = gp.FieldType(1024)
needs_nvrtc = pytest.mark.skipif("sm_90" not in nvrtc.architectures(), reason="NVRTC is not installed")


@gp.operator
def group_sum(f):
    _localThreads(256)
    shared = _local(_floatArray(512))
    shared[_localColumn] = _readTensor(f)
    shared[_localColumn + 256] = -_readTensor(f)
    _syncThreadsLocal()
    return shared[511 - _localColumn]


@gp.operator
def crowded(f):
    """More values at once than the threads of so large a group have registers."""
    _localThreads(1024)
    values = [_readTensor(f, (_column * k) % 1024) for k in range(120)]
    _syncThreadsLocal()
    total = _var(0.0)
    for value in reversed(values):
        total += _sqrt(value) * value
    return total


@needs_nvrtc
def test_resources_on_cuda() -> None:
    result = group_sum.source(KIND, target="cuda:sm_90", form="resources")
    assert re.fullmatch(
        r"// group_sum on cuda:sm_90\n\d+ registers of a thread, 0 bytes spilled and 0 loaded again, 0 bytes of stack, "
        r"2048 bytes of local memory\n",
        result,
    )
    registers, stored = re.search(
        r"(\d+) registers of a thread, (\d+) bytes spilled", crowded.source(KIND, target="cuda:sm_90", form="resources")
    ).groups()
    assert int(registers) == 64 and int(stored) > 0


@needs_nvrtc
def test_ptx_and_sass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ptx = group_sum.source(KIND, target="cuda:sm_75", form="ptx")
    assert ".target sm_75" in ptx and ".entry gpuop_group_sum" in ptx and "bar.sync" in ptx and "\0" not in ptx
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(gp.DeviceError, match="sass needs nvdisasm, which is not on the PATH"):
        group_sum.source(KIND, target="cuda:sm_75", form="sass")
    tool = tmp_path / "nvdisasm"
    tool.write_text('#!/bin/sh\nread -r first < "$1"\necho "${first%%${first#????}}"\n')
    tool.chmod(0o755)
    assert group_sum.source(KIND, target="cuda:sm_75", form="sass") == "// group_sum on cuda:sm_75\n\x7fELF\n"


@pytest.mark.parametrize("name", OPENCL)
def test_resources_of_a_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a graph, on its own device, whichever is in use."""
    with gp.ComputeGraph(device=name) as graph:
        graph.probe(group_sum(gp.ScalarField(np.ones(1024, np.float32))), "sum")
    with gp.use_device("reference"):
        first, second, *_ = graph.source(form="resources").splitlines()
        names: list[str] = []
        monkeypatch.setattr(dump, "facts_of", lambda backend: names.append(backend.name))
        graph.explain()
    assert names == [name]
    assert first == f"// group_sum on {name}"
    assert re.match(
        r"\d+ bytes of private memory, 2048 bytes of local memory, work-groups of up to \d+ threads, best in multiples of \d+$",
        second,
    )


@pytest.mark.parametrize("name", OPENCL)
def test_drivers_say_nothing_by_themselves(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    import pyopencl as cl

    device = gp.device(name)
    text = "__kernel void same(__global int *x) { if (x[0] != x[0]) x[1] = 2; }"
    built(device.device, cl._cl._Program(device.context, text), device.options)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("target", "form", "message"),
    [
        (None, "binary", "there is no form 'binary'; one of 'text', 'resources', 'ptx', 'sass'"),
        ("opencl:cpu", "ptx", "ptx is a form of CUDA kernels; name a target as cuda:sm_90"),
        (
            "opencl:cpu",
            "resources",
            "the resources of kernels are known for OpenCL devices and CUDA targets, not for opencl:cpu",
        ),
        (
            None,
            "resources",
            "the resources of kernels are known for OpenCL devices and CUDA targets, not for reference",
        ),
    ],
)
def test_forms_that_are_none(target: str | None, form: str, message: str) -> None:
    with gp.use_device("reference"), pytest.raises(gp.SemanticError) as caught:
        group_sum.source(KIND, target=target, form=form)
    assert caught.value.message == message


def test_host_memory_that_there_is_not() -> None:
    for rows, nbytes in ((10**12, "400000000000000"), (10**18, "400000000000000000000")):
        with pytest.raises(gp.DeviceError) as caught:
            gp.pinned((rows, 100))
        assert str(caught.value) == f"the host has no memory for an array of {rows}×100 float32 ({nbytes} bytes)"
