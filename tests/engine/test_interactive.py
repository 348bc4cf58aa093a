"""Interactive use: representations, help, completion, warnings; and partials as functions."""

from __future__ import annotations

import copy
import functools
import pickle
import pydoc
import warnings

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.runtime import devices

IMAGE = np.arange(12, dtype="f").reshape(3, 4)
field = gp.ScalarField(IMAGE)


@gp.operator
def blend(f, g, weight=0.5):
    """Mixes two fields."""
    return _readTensor(f) * weight + _readTensor(g) * (1 - weight)


def test_operators_and_pipelines():
    assert repr(blend) == "<Operator blend(f, g, weight=0.5)>"
    assert repr(gp.pipeline(lambda a: gp.ScalarField(a))) == "<Pipeline <lambda>(a)>"
    text = pydoc.plain(pydoc.render_doc(blend))
    assert "blend(f, g, weight=0.5)" in text and "Mixes two fields." in text and "class Operator" not in text


def test_graphs():
    with gp.ComputeGraph() as graph:
        assert repr(graph) == "<ComputeGraph empty, tick 0>"
        frame = gp.Sensor(gp.FieldType(2), lambda: np.ones(2))
        total, count = gp.ScalarField(np.zeros(2, "f")), gp.ScalarField(np.zeros(2, "f"))
        total.next, count.next = total + frame, count + 1
        graph.probe(total)
        gp.Actuator(count, lambda array: None)
    graph.step(3)
    assert repr(graph) == "<ComputeGraph 2 states, 1 sensor, 1 actuator, 1 probe, tick 3>"


def test_values_of_kernels():
    seen = []

    @gp.operator
    def shown(f):
        x = _readTensor(f)
        pair = _float2(x, 1)
        count = _var(3)
        tile = _local(_int3Var())
        seen.extend(map(repr, (x, pair, count, x + 1, pair.x * 2, _row, _row + 1, _convert_uchar(5), tile)))
        seen.append(f"{count} and {x!s}")
        return x

    shown(field)
    assert seen == [
        "<float x>", "<float2 pair>", "<int count>", "<float>", "<float>", "_row", "<int>", "<uchar 5>", "<int3 tile>",
        "<int count> and <float x>",
    ]  # fmt: skip


def test_completion():
    assert {"ScalarField", "operator", "dsl", "__version__"} <= set(dir(gp))
    assert not {"clock", "passes", "saving", "streams", "running", "session"} & set(dir(gp))


def test_names_of_kinds_of_devices(monkeypatch):
    results = [
        devices.Device("cuda:0", "", "PyCUDA is missing"), devices.Device("opencl:0", "", None, ("opencl:gpu",)),
        devices.Device("opencl:1", "", None, ("opencl:cpu",)), devices.Device("reference", ""),
    ]  # fmt: skip
    monkeypatch.setattr(devices, "_discovered", [(device, None) for device in results])
    assert [devices._specific(name) for name in ("gpu", "cpu", "opencl:1")] == ["opencl:gpu", "opencl:cpu", "opencl:1"]
    listed = "opencl:0, opencl:gpu, opencl:1, opencl:cpu, reference"
    message = f"there is no device 'tpu'; found: {listed}; not cuda:0: PyCUDA is missing"
    with pytest.raises(gp.DeviceError, match=f"^{message}$"):
        gp.device("tpu")
    monkeypatch.setattr(devices, "_discovered", [(devices.Device("cuda:0", ""), None), *devices._discovered[2:]])
    assert devices._specific("gpu") == "cuda:0"
    monkeypatch.setattr(devices, "_discovered", [(results[-1], None)])
    with pytest.raises(gp.DeviceError, match=r"there is no device 'gpu'; found: reference$"):
        gp.device("gpu")


WARNED = {
    "gp.FieldType(480, 640)": r"FieldType\(480, 640\) is a grid of 480 with vectors of 640 elements; "
    r".* write FieldType\(\(480, 640\)\)",
    "gp.VectorField(np.zeros((300, 512), 'u1'))": r"a VectorField of \(300, 512\) is a grid of 300 with vectors of 512 elements; "
    "for a grid of 300×512 use ScalarField",
    "gp.VectorField(np.zeros((3, 64, 80), 'u1'))": r"a VectorField of \(3, 64, 80\) is a grid of 3×64 with vectors of 80 elements; "
    r"for 3 channels of 64×80 put them last, as in `np.moveaxis\(array, 0, -1\)`",
    "gp.ScalarField(np.zeros((30, 51, 3), 'u1'))": r"has 3 columns; for 3 channels use VectorField",
}


@pytest.mark.parametrize("expression", WARNED)
def test_axes_that_look_wrong(expression):
    with pytest.warns(UserWarning, match=WARNED[expression]) as caught:
        eval(expression)
    assert caught[0].filename == "<string>"


@pytest.mark.parametrize(
    "expression",
    [
        "gp.FieldType(480, 64)", "gp.FieldType((480,), (640,))", "gp.Field(np.zeros((2, 2, 300)), 1)",
        "gp.VectorField(np.zeros(300))", "gp.VectorField(np.zeros((60, 300)))", "gp.FieldType(60, 300)",
    ],
)  # fmt: skip
def test_axes_that_are_meant(expression):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        eval(expression)


def test_partials(device):
    """As their functions, with arguments that are given already: fields, constants, by position or by name."""
    other = gp.ScalarField(IMAGE * 3)
    keyword = gp.operator(functools.partial(blend.function, weight=0.25))
    first = gp.operator(functools.partial(functools.partial(blend.function, field), weight=1.0))
    assert keyword.name == "blend" and keyword.__doc__ == "Mixes two fields."
    assert np.array_equal(keyword(field, other).numpy(), IMAGE * 2.5)
    assert np.array_equal(keyword(field, other, weight=0.5).numpy(), IMAGE * 2)
    assert np.array_equal(first(other).numpy(), IMAGE)
    assert keyword(field, other).node.call.kernel is keyword(field, other).node.call.kernel, "recorded once"
    every = gp.operator(outputs=lambda f, n: gp.FieldType(f.field_shape[0] // n))
    rows = every(functools.partial(lambda f, n: _readTensor(f, _column * n, 1), n=3))
    assert rows(field).numpy().tolist() == [1]
    scaled = gp.pipeline(functools.partial(lambda a, k: gp.ScalarField(a) * k, k=3))
    assert np.array_equal(scaled(IMAGE), IMAGE * 3) and np.array_equal(scaled(IMAGE, k=2), IMAGE * 2)
    assert copy.copy(keyword) is keyword


def test_partials_of_other_things():
    with pytest.raises(gp.SemanticError, match="an operator is made of a Python function, not of a partial"):
        gp.operator(functools.partial(np.sqrt))
    with pytest.raises(gp.SemanticError, match="operator `blend`: multiple values for argument 'f'"):
        gp.operator(functools.partial(blend.function, field))(field, f=field)


def plain(f, k):
    return _readTensor(f) * k


tripled = gp.operator(functools.partial(plain, k=3))


def test_pickled_partials():
    assert np.array_equal(pickle.loads(pickle.dumps(tripled))(field).numpy(), IMAGE * 3)
