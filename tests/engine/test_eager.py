"""`numpy()` and `evaluate` outside graphs: what is kept, what is computed again, and that no kernel is ever stale."""

from __future__ import annotations

import gc
import math
import types
import warnings
import weakref

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.engine import evaluate
from gpuop.runtime.execute import Prepared
from tests.harness import blur, half_and_double, image, same_bits

X = image(11, 19)


@pytest.fixture
def runs(monkeypatch):
    """The kernels launched by each evaluation, as they happen."""
    calls: list[int] = []
    run = Prepared.run
    monkeypatch.setattr(Prepared, "run", lambda self, values: (calls.append(len(self.programs)), run(self, values))[1])
    return calls


@pytest.fixture
def plans(monkeypatch):
    """The plans made."""
    calls: list[object] = []
    plan = evaluate.plan
    monkeypatch.setattr(evaluate, "plan", lambda what, *more: (calls.append(what), plan(what, *more))[1])
    return calls


# --- keeping values -----------------------------------------------------------------------------------------------------


def test_values_are_kept(device, runs):
    middle = blur(gp.ScalarField(X)) * 2
    first = middle.numpy()
    second = middle.numpy()
    same_bits(first, second)
    assert sum(runs) == 1  # the second found it
    assert first is not second
    first += 1
    same_bits(middle.numpy(), second)  # what was returned is the caller's
    same_bits((middle + 1).numpy(), second + 1)
    assert sum(runs) == 2  # only the sum
    same_bits(np.asarray(middle), second)
    low, high = half_and_double(middle)
    same_bits(low.numpy(), second / 2)
    same_bits(high.numpy(), second * 2)
    assert sum(runs) == 4


def test_parameters_beneath_invalidate(device, runs):
    gain, offset = gp.Parameter(2.0), gp.Parameter(np.float32([[1, 2], [3, 4]]))
    scaled = gp.ScalarField(X) * gain
    apart = gp.ScalarField(X) + 1
    both = scaled + apart
    same_bits(both.numpy(), X * 2 + (X + 1))
    apart.numpy()
    before = len(runs)
    gain.set(3)
    same_bits(both.numpy(), X * 3 + (X + 1))
    same_bits(scaled.numpy(), X * 3)
    apart.numpy()
    assert runs[before:] == [1, 1, 0]
    matrices = gp.MatrixField(np.ones((5, 2, 2), "f")) * offset
    same_bits(matrices.numpy()[0], np.float32([[1, 2], [3, 4]]))
    offset.set([[0, 0], [0, 1]])
    same_bits(matrices.numpy()[4], np.float32([[0, 0], [0, 1]]))
    with pytest.raises(gp.SemanticError, match=r"shape \(2, 2\), the new value \(3,\)"):
        offset.set([1, 2, 3])
    assert float(gain) == 3 and bool(gain > 2) and int(gain + 0.5) == 3


def test_host_arrays_are_copied(device):
    source = X.copy()
    field, vectors = gp.ScalarField(source), gp.VectorField(source)
    value = np.array([1.0, 2.0])
    parameter = gp.Parameter(value)
    source[:] = -1
    value[:] = -1
    same_bits(field.numpy(), X)
    same_bits((vectors + 0).numpy(), X)
    parameter.set(value)
    value[:] = 5
    assert parameter.numpy().tolist() == [-1, -1]
    field.numpy()[:] = 0
    same_bits(field.numpy(), X)


def test_evaluate_iterates_without_growing(device, plans):
    @gp.operator
    def sweep(f):
        return 0.25 * (_readTensor(f, _row - 1, _column) + _readTensor(f, _row + 1, _column)) + 0.5 * _readTensor(f)

    u, want = gp.ScalarField(X), X.copy()
    alive = []
    for turn in range(200):
        v = sweep(u)
        alive.append((weakref.ref(v.node.call), weakref.ref(v)))
        u = gp.evaluate(v)
        if turn < 5:
            padded = np.pad(want, ((1, 1), (0, 0)), "edge")
            want = np.float32(0.25) * (padded[:-2] + padded[2:]) + np.float32(0.5) * want
    del v
    gc.collect()
    assert len(plans) == 1
    assert sum(ref() is not None for pair in alive for ref in pair) == 0
    steps = gp.ScalarField(X)
    for _ in range(5):
        steps = gp.evaluate(sweep(steps))
    same_bits(steps.numpy(), want)
    assert u.type == steps.type


def test_evaluate_together(device, runs):
    x = gp.ScalarField(X)
    a = x + 1
    first, second, leaf = gp.evaluate(a, a * 2, x)
    assert runs == [1]
    same_bits(second.numpy(), (X + 1) * 2)
    same_bits(first.numpy(), X + 1)
    same_bits(leaf.numpy(), X)
    same_bits(gp.evaluate(gp.Parameter([1.0, 2.0])).numpy(), np.float32([1, 2]))
    with pytest.raises(gp.SemanticError, match=r"evaluate wants Fields, not an ndarray"):
        gp.evaluate(X)


def test_devices_change_in_between(device):
    other = next((d.name for d in gp.devices() if d.name != device), "reference")
    field = blur(gp.ScalarField(X)) + 1
    here = field.numpy()
    u = gp.evaluate(field * 2)
    with gp.use_device(other):
        there = field.numpy()
        np.testing.assert_allclose(there, here, rtol=1e-6)
        np.testing.assert_allclose((u + 1).numpy(), here * 2 + 1, rtol=1e-6)
        with gp.use_device(device), gp.use_device(other):
            pass
        assert evaluate.current().name == gp.device(other).name
    same_bits(field.numpy(), here)
    same_bits((u + 1).numpy(), here * 2 + 1)


def test_use_device_nests():
    with gp.use_device("reference"):
        for d in gp.devices():
            with gp.use_device(d.name):
                with gp.use_device("reference"):
                    assert evaluate.current().name == "reference"
                assert evaluate.current().name == d.name


# --- no stale kernels -----------------------------------------------------------------------------------------------------

GAIN, LIST, PAIR = 2, [2], (1, 2)
settings = types.SimpleNamespace(gain=2)
module = types.ModuleType("module")
module.gain = 2
ONE = gp.ScalarField(np.ones((3, 4), "f"))


def helper(v):
    return v * GAIN


def annotated(v):
    return v * annotated.gain


annotated.gain = 2


def value(operator, *args):
    return float(operator(*args).numpy().flat[0])


def check(operator, change, *args):
    """The operator's value is twice its input before the change, thrice after it, and twice when undone."""
    try:
        for gain in (2, 2, 3, 3, 2):
            change(gain)
            assert value(operator, ONE, *args) == gain
    finally:
        change(2)


def set_global(gain):
    global GAIN
    GAIN = gain


def test_globals_helpers_and_what_they_hold():
    check(gp.operator(lambda f: _readTensor(f) * GAIN), set_global)
    check(gp.operator(lambda f: helper(_readTensor(f))), set_global)
    check(gp.operator(lambda f: sum(helper(_readTensor(f)) for _ in range(1))), set_global)
    check(gp.operator(lambda f: annotated(_readTensor(f))), lambda gain: setattr(annotated, "gain", gain))
    check(gp.operator(lambda f: _readTensor(f) * LIST[0]), lambda gain: LIST.__setitem__(0, gain))
    check(gp.operator(lambda f: _readTensor(f) * settings.gain), lambda gain: setattr(settings, "gain", gain))
    check(gp.operator(lambda f: _readTensor(f) * module.gain), lambda gain: setattr(module, "gain", gain))


def test_closures_and_defaults():
    gain = 2

    def body(f):
        return _readTensor(f) * gain

    def change(value):
        nonlocal gain
        gain = value

    check(gp.operator(body), change)

    def scaled(v, gain=2, *, more=1):
        return v * (gain * more)

    operator = gp.operator(lambda f: scaled(_readTensor(f)))
    check(operator, lambda gain: setattr(scaled, "__defaults__", (gain,)))
    check(operator, lambda gain: setattr(scaled, "__kwdefaults__", {"more": gain / 2}))


def test_imports_in_the_body(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "some_settings", module)

    def body(f):
        import some_settings

        return _readTensor(f) * some_settings.gain

    check(gp.operator(body), lambda gain: setattr(module, "gain", gain))


def test_constants_count_by_type_and_value():
    @gp.operator
    def quotient(f, k):
        return _readTensor(f) * 0 + _convert_float(_var(k[0]) / k[1] if isinstance(k, tuple) else _var(k) / 2)

    assert [value(quotient, ONE, k) for k in ((1, 2), (1.0, 2.0), (1, 2), 1, 1.0, True)] == [0, 0.5, 0, 0, 0.5, 0]
    zero = gp.operator(lambda f, k: _copysign(_readTensor(f), k))
    assert [value(zero, ONE, k) for k in (0.0, -0.0, np.float32(-0.0), 0.0)] == [1, -1, -1, 1]
    pair = gp.operator(lambda f, k: _copysign(_readTensor(f), k[0]))
    assert [value(pair, ONE, k) for k in ((0.0,), (-0.0,), (0.0,))] == [1, -1, 1]
    check(gp.operator(lambda f, s: _readTensor(f) * s.gain), lambda gain: setattr(Setting, "gain", gain), Setting)
    check(gp.operator(lambda f, g: g(_readTensor(f))), set_global, helper)


class Setting:
    gain = 2


def test_declared_outputs_and_values_seen_in_the_body():
    declared = gp.operator(outputs=lambda f: gp.FieldType(f.field_shape, (GAIN,)))
    for gain in (2, 3, 2):
        set_global(gain)
        assert declared(lambda f: _readTensor(f))(ONE).tensor_shape == (gain,)
    spread = declared(lambda f: _readTensor(f))
    for gain in (2, 3, 2):
        set_global(gain)
        assert spread(ONE).tensor_shape == (gain,)
    times = gp.Parameter(2)
    check(gp.operator(lambda f, n: sum(_readTensor(f) for _ in range(int(n)))), times.set, times)
    captured = [gp.ScalarField(np.full((3, 4), 2.0))]
    check(
        gp.operator(lambda f: _readTensor(f) * _readTensor(captured[0])),
        lambda gain: captured.__setitem__(0, gp.ScalarField(np.full((3, 4), float(gain)))),
    )


def test_pure_bodies_are_recorded_once():
    calls = []
    spy = calls.append  # called while recording: makes the body unknown

    def body(f, k, pair=(1, 2)):
        return math.sqrt(k) * _readTensor(f) * pair[1] * PAIR[0] + sum(range(3)) * np.float32(1) + helper(_row)

    operator = gp.operator(body)
    traced = gp.operator(lambda f: (spy(1), _readTensor(f))[1])
    record, operator_record = [], operator._record
    operator._record = lambda *args: (record.append(1), operator_record(*args))[1]
    for _ in range(5):
        operator(ONE, 4.0)
        traced(ONE)
    assert len(record) == 1 and len(calls) == 5
    operator(gp.ScalarField(np.ones((3, 5))), 4.0)
    operator(ONE, 9.0)
    assert len(record) == 3
    assert {operator(ONE, 4.0).node.call.identity for _ in range(2)} == {operator(ONE, 4).node.call.identity}


def test_many_constants_warn_once():
    @gp.operator
    def scaled(f, k, mode="a"):
        return _readTensor(f) * k

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(8):
            scaled(ONE, k)
            scaled(ONE, k)
    with pytest.warns(
        UserWarning, match=r"`scaled` is compiled anew for every value of `k`; pass a gp\.Parameter"
    ) as caught:
        scaled(ONE, 8)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(20):
            scaled(ONE, k)
            scaled(ONE, gp.Parameter(k))


def test_formats_of_numbers():
    field = gp.ScalarField(np.float32([1.25, 2.5]))
    assert (
        f"{field.sum():.3f} {field.max():>6} {field!r:.5} {field.astype('uint8').max():03d}" == "3.750    2.5 <Scal 002"
    )
    assert complex(gp.ComplexField(1 + 2j)) == 1 + 2j
    assert f"{field}" == repr(field)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float16", "float64", "complex64", "complex128", "unorm8"])
def test_astype(dtype):
    array = np.float32([-1.5, 0, 0.5, 0.75, 300, np.nan])
    order = 0 if dtype[0] == "c" else 1  # a big tensor
    actual = gp.Field(np.stack([array] * 6, -1), order).astype(dtype)
    assert str(actual.dtype) == dtype and len(actual.tensor_shape) == order
    want = {
        "bool": array != 0, "uint8": [0, 0, 0, 0, 255, 0], "int16": [-1, 0, 0, 0, 300, 0], "unorm8": [0, 0, 128, 191, 255, 0],
    }.get(dtype, array)  # fmt: skip
    want = np.asarray(want).astype("uint8" if dtype == "unorm8" else dtype)
    assert np.array_equal(actual.numpy(), np.stack([want] * 6, -1), equal_nan=want.dtype.kind in "fc")


# --- graphs of a shape that is known ------------------------------------------------------------------------------


def shapes(x, y, k):
    """Graphs, some of which differ only in what they take where, with what NumPy computes."""
    u, v, p = gp.ScalarField(x), gp.ScalarField(y), gp.Parameter(np.float32(k))
    both = u * 3
    yield [u - v, v - u, u - u], [x - y, y - x, x - x]
    yield [u * 2 - u * 2, u * 2 - v * 2], [x * 2 - x * 2, x * 2 - y * 2]
    yield [v * 2 - u * 2], [y * 2 - x * 2]
    yield [both, v * 3], [x * 3, y * 3]
    yield [v * 3, both, v * 3, u], [y * 3, x * 3, y * 3, x]
    yield [both - v], [x * 3 - y]  # where `both` is computed already
    yield [u - p, p - u], [x - np.float32(k), np.float32(k) - x]
    yield [u - u.max(), u - u[0, 0]], [x - x.max(), x - x[0, 0]]
    yield [(u + p) * (u + p) - v], [(x + np.float32(k)) * (x + np.float32(k)) - y]


def test_graphs_of_one_shape(device):
    for k in (1, 2, 3):
        x, y = image(6, 7), image(6, 7)
        for fields, arrays in shapes(x, y, k):
            result = gp.evaluate(*fields)
            for field, array in zip(result if len(fields) > 1 else [result], arrays, strict=True):
                same_bits(field.numpy(), array)
            same_bits(fields[-1].numpy(), arrays[-1])


def test_graphs_of_one_shape_are_numbered_once(monkeypatch):
    numbered = []
    monkeypatch.setattr(evaluate, "program", lambda *args, make=evaluate.program: numbered.append(1) or make(*args))
    u, p = gp.ScalarField(image(23, 29)), gp.Parameter(2.0)
    for k in range(3):
        p.set(float(k))
        x = image(23, 29)
        same_bits((gp.ScalarField(x) * u - p).numpy(), x * u.numpy() - np.float32(k))
    assert len(numbered) == 2  # `u` is one too
    with gp.schedule("plain"):
        (gp.ScalarField(x) * u - p).numpy()
    assert len(numbered) == 3


def test_plans_keep_no_fields(device):
    """Neither arrays nor computed values live because a graph of theirs was the first of its shape."""
    f, number = gp.ScalarField(X), 7.3125
    before = f * number
    before.numpy()
    alive = [weakref.ref(f.node), weakref.ref(before.node.call)]
    (before - f / (number + 0.5)).numpy()
    del f, before
    gc.collect()
    assert [each() for each in alive] == [None, None]
