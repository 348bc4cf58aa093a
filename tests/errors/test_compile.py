"""Kernels that a driver refuses, and types and memory that a device lacks."""

from dataclasses import replace

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.config import config
from gpuop.base.errors import Loc
from gpuop.codegen.generate import generate, target_named
from gpuop.codegen.opencl.dialect import OPENCL
from gpuop.dsl import *

from .wrong import SCALAR, check_usable, marked

pytestmark = pytest.mark.skipif(
    not any(d.name.startswith("opencl") for d in gp.devices()), reason="no OpenCL driver that works"
)


@pytest.fixture(params=[d.name for d in gp.devices() if d.name.startswith("opencl")])
def name(request, monkeypatch):
    monkeypatch.setattr(
        "gpuop.codegen.generate.lowering", object
    )  # no text is found again, as these tests change texts
    with gp.use_device(request.param):
        yield request.param


@gp.operator
def wave(field):
    x = _readTensor(field)
    y = x * 2
    return _sin(y) + 1  # here


def test_refused_kernel(name, monkeypatch):
    monkeypatch.setitem(OPENCL.calls, "sin", "no_such_name * {0}")
    result = wave(SCALAR)
    with pytest.raises(gp.CompileError) as caught:
        result.numpy()
    error = caught.value
    line = next(line for line in error.source.splitlines() if "no_such_name" in line)
    assert int(line.split()[0]) == error.source.splitlines().index(line) + 1  # numbered from 1
    message = str(error)
    assert message.startswith(f"{name} refused the kernel gpuop_wave:\n")
    assert "error" in message.split("your lines")[0] and "no_such_name" in message.split("your lines")[0]
    assert message.endswith(error.source)
    loc = Loc(__file__, marked(wave.function))
    assert f"\n  your lines behind it:\n    {loc}\n      return _sin(y) + 1  # here\n" in message
    monkeypatch.undo()
    assert np.allclose(result.numpy(), np.sin(2 * SCALAR.numpy()) + 1, atol=1e-5)
    check_usable(name)


def test_broken_helper(name, monkeypatch):
    """The driver's line is not one of the user's; the source is there all the same."""
    broken = OPENCL.helpers["remquo_bits"].replace("int quotient;", "int quotient")
    monkeypatch.setitem(OPENCL.helpers, "remquo_bits", broken)
    monkeypatch.setattr(config, "widen", False)  # vectors have another
    result = gp.operator(lambda f: _remquo(_readTensor(f), 3.0)[1])(SCALAR)
    with pytest.raises(gp.CompileError) as caught:
        result.numpy()
    assert "int quotient\n" in caught.value.source
    check_usable(name)


def test_refused_graph(name, monkeypatch):
    other = gp.ScalarField(np.arange(6, dtype="f"))  # of a shape that nothing was compiled for
    monkeypatch.setitem(OPENCL.calls, "sin", "no_such_name * {0}")
    with gp.ComputeGraph(device=name) as graph:
        graph.probe(wave(other), "wave")
    with pytest.raises(gp.CompileError, match="refused the kernel gpuop_wave"):
        graph.step()
    monkeypatch.undo()
    graph.step()
    assert np.allclose(graph.read("wave"), np.sin(2 * other.numpy()) + 1, atol=1e-5)


@gp.operator
def rooted(field):
    with _codegenIf(_target.has_fp64):
        x = _sqrt(_convert_double(_readTensor(field)))
        _writeTensor(_out0, _convert_float(x))
    with _codegenElse():
        _writeTensor(_out0, _sqrt(_readTensor(field)))


@gp.operator
def always_grown(field):
    x = _convert_double(_readTensor(field))
    return _convert_float(_exp(x) + 1)


def test_a_target_without_doubles():
    """Pairs of floats compute it; a function that they lack is refused when text is generated, at the user's line."""
    target = replace(target_named("opencl"), has_fp64=False)
    single = gp.ScalarField(np.ones((4, 5), "f"))
    assert "double" not in generate(rooted(single).node.call.kernel, target).text
    with pytest.raises(gp.DeviceError) as caught:
        generate(always_grown(single).node.call.kernel, target)
    message, *where = str(caught.value).splitlines()
    assert message == (
        "operator `always_grown` computes `_exp` of double, which opencl lacks and pairs of floats do not have; use float32, or "
        "let another branch of `_codegenIf(_target.has_fp64)` do without"
    )
    assert where[-1].strip() == "return _convert_float(_exp(x) + 1)"
    kept = gp.operator(lambda field: _readTensor(field), name="kept")(gp.ScalarField(np.ones(3)))
    assert "double" not in generate(kept.node.call.kernel, target).text


def test_a_type_that_the_device_lacks(name, monkeypatch):
    backend = gp.device(name)
    monkeypatch.setattr(backend, "features", backend.features - {"double"})
    precise = gp.ScalarField(np.ones((4, 5)))

    @gp.operator
    def sharpened(field):
        return _readTensor(field) * 2

    with pytest.raises(gp.DeviceError) as caught:
        sharpened(precise).numpy()
    assert str(caught.value) == (
        f"operator `sharpened` computes with double, which {name} ({backend.description}) lacks; "
        "use types of 32 bits, or another device"
    )
    check_usable(name)
