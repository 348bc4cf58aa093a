"""Host operators: Python functions of arrays among the kernels, eagerly, in pipelines and in graphs."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.harness import blur, half_and_double, image, same_bits


def reverse(a):
    return a[::-1]


def sorted_and_count(a):
    return np.sort(a, axis=None).reshape(a.shape), int((a > 0.5).sum())


def test_between_kernels(device):
    x = image(7, 9)
    graph_of = {}
    for optimize in (True, False):
        with gp.ComputeGraph(optimize=optimize) as graph:
            before = gp.ScalarField(x) * 2
            graph.probe(gp.HostOperator(reverse, before, outputs=before.type) + 1, "y")
        same_bits(graph.read("y"), (x * 2)[::-1] + 1)
        graph_of[optimize] = graph
    assert graph_of[True].kernel_count == 2
    text = graph_of[True].explain()
    assert "multiply → reverse: `reverse` runs on the host" in text
    assert "reverse → add: `reverse` runs on the host" in text
    assert "void gpuop_multiply" in graph_of[True].source("opencl") and "reverse" not in graph_of[True].source("opencl")
    assert "reverse" in [data["name"] for _, data in graph_of[True].network.nodes(data=True)]


def test_eager_and_in_pipelines(device):
    x = image(5, 6)
    f = gp.ScalarField(x)
    kinds = (f.type, gp.FieldType((), dtype="int32"))
    ordered, count = gp.HostOperator(sorted_and_count, f * 1, outputs=kinds)
    want, n = sorted_and_count(x)
    same_bits(ordered.numpy(), want)
    assert int(count) == n and float((ordered * count).numpy().sum()) == pytest.approx(want.sum() * n, rel=1e-5)

    @gp.pipeline
    def flipped(a):
        field = gp.ScalarField(a)
        return gp.HostOperator(reverse, field + 1, outputs=field.type) * 2

    for k in range(3):
        same_bits(flipped(x + np.float32(k)), (x + np.float32(k) + 1)[::-1] * 2)


def test_all_alone(device):
    result = gp.HostOperator(lambda: np.arange(4), outputs=gp.FieldType(4, dtype="int32"))
    same_bits(result.numpy(), np.arange(4, dtype="int32"))
    with gp.ComputeGraph() as graph:
        graph.probe(gp.HostOperator(reverse, gp.ScalarField(np.arange(3)), outputs=gp.FieldType(3, dtype="int64")), "r")
    same_bits(graph.read("r"), np.arange(3)[::-1])
    assert graph.kernel_count == 0 and graph.source("opencl") == ""


def test_states_parameters_and_sensors_feed_it(device):
    gain, calls = gp.Parameter(2.0), []

    def mix(state, gain, offset, seen):
        calls.append(1)
        assert [a.dtype.name for a in (state, gain, offset, seen)] == ["float32", "float32", "float32", "uint8"]
        for a in (state, offset, seen):
            a += 1  # its own
        return (state - 1) * gain + (seen - 1) + (offset[0] - 1)

    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(np.ones((2, 3), "f"))
        seen = gp.Sensor(gp.FieldType((2, 3), dtype="uint8"), (np.full((2, 3), k) for k in range(9)))
        offset = gp.Parameter(np.arange(7, dtype="f"))
        state.next = gp.HostOperator(mix, state, gain, offset, seen, outputs=state.type)
        graph.probe(state, "state")
        graph.probe(seen, "seen")
    graph.reset()
    want = np.ones((2, 3), "f")
    for tick in range(5):
        same_bits(graph.read("state"), want)
        same_bits(graph.read("seen"), np.full((2, 3), tick, "uint8"))
        want = want * 2 + np.float32(tick)
        graph.step()
    assert len(calls) == 6  # once at every evaluation
    gain.set(0.5)  # set before the step: what the state takes depends on it
    graph.step()
    same_bits(graph.read("state"), want * np.float32(0.5) + 5)


def test_one_field_twice_and_equal_calls(device):
    calls = []

    def both(a, b):
        calls.append(1)
        return a - 2 * b

    x = gp.ScalarField(image(3, 4))
    y = x + 1
    first, second = (gp.HostOperator(both, y, x + 1, outputs=x.type) for _ in range(2))
    same_bits((first + second).numpy(), -2 * (x.numpy() + 1))
    assert len(calls) == 1


def test_nothing_is_fused_across(device):
    x = image(8, 8)
    with gp.ComputeGraph() as graph:
        f = gp.ScalarField(x)
        half, double = half_and_double(f)
        one = gp.HostOperator(reverse, half, outputs=f.type)
        other = gp.HostOperator(np.transpose, half, outputs=f.type)
        graph.probe(blur(one * 1) + other + double, "y")
    h = x / 2
    y = np.pad(h[::-1], 1, mode="reflect")
    want = (y[1:-1, 1:-1] + y[:-2, 1:-1] + y[2:, 1:-1] + y[1:-1, :-2] + y[1:-1, 2:]) / np.float32(5)
    np.testing.assert_allclose(graph.read("y"), want + h.T + x * 2, rtol=1e-6)
    graph.step(3)
    np.testing.assert_allclose(graph.read("y"), want + h.T + x * 2, rtol=1e-6)


KINDS = [
    (gp.FieldType((2, 2), dtype="bool"), np.eye(2, dtype=bool)),
    (gp.FieldType((2, 2), 4, "unorm8"), np.full((2, 2, 4), 9, "uint8")),
    (gp.FieldType(3, dtype="complex64"), np.array([1, 2j, 3], "complex64")),
    (gp.FieldType(3, (5, 2), "int16"), np.arange(30, dtype="int16").reshape(3, 5, 2)),
    (gp.FieldType((1, 2, 3), dtype="float16"), np.arange(6, dtype="float16").reshape(1, 2, 3)),
    (gp.FieldType((0, 4)), np.zeros((0, 4), "f")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "array"), KINDS, ids=lambda v: str(v) if isinstance(v, gp.FieldType) else "")
def test_every_kind_of_array(device, kind, array):
    field = gp.Field(array, len(kind.tensor_shape), kind.dtype)
    same_bits(gp.HostOperator(lambda a: a[::-1], field, outputs=kind).numpy(), np.ascontiguousarray(array[::-1]))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: a[:, :1], r"host operator `lambda` returns an array of shape \(3, 1\); its output is a 3×4 float32 field"),
        (lambda a: a + 1j, r'returns complex64, and its output is a 3×4 float32 field; convert it, with `\.astype\("float32"\)`'),
        (lambda a: None, r"host operator `lambda` returns None; it must return an array"),
        (lambda a: "text", r"host operator `lambda`: fields are made of numbers, not of text"),
    ],
)  # fmt: skip
def test_wrong_results(device, function, message):
    f = gp.ScalarField(image(3, 4))
    result = gp.HostOperator(function, f + 0, outputs=f.type)  # here
    with pytest.raises(gp.SemanticError, match=message) as caught:
        result.numpy()
    assert str(caught.value).endswith("# here")
    assert (gp.HostOperator(reverse, f + 0, outputs=f.type).numpy() == f.numpy()[::-1]).all()


def test_wrong_numbers_of_results(device):
    f = gp.ScalarField(image(3, 4))
    for function, actual in ((lambda a: (a,), "1 values"), (lambda a: a, "an ndarray")):
        pair = gp.HostOperator(function, f, outputs=(f.type, f.type))
        with pytest.raises(
            gp.SemanticError, match=f"returns {actual}, and it was declared to return a tuple of 2 arrays"
        ):
            pair[0].numpy()


def test_a_function_that_raises_in_a_step(device):
    bad = [False]

    def sometimes(a):
        if bad[0]:
            raise ZeroDivisionError("now")
        return a + 1

    with gp.ComputeGraph() as graph:
        count = gp.ScalarField(np.zeros(3, "int32"))
        count.next = gp.HostOperator(sometimes, count, outputs=count.type)
        graph.probe(count * 10, "tenfold")
    graph.step(2)
    bad[0] = True
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="now"):
            graph.step()
        assert graph.tick == 3  # the states have changed, what follows from them is missing
    with pytest.raises(ZeroDivisionError, match="now"):
        graph.read("tenfold")
    bad[0] = False
    assert (graph.read("tenfold") == 30).all()
    graph.step(2)
    assert graph.tick == 5 and (graph.read("tenfold") == 50).all()
    graph.reset()
    assert (graph.read("tenfold") == 0).all()


def test_called_once_for_all_outputs_and_readers(device):
    x, calls = image(3, 4), []

    def both(a):
        calls.append(1)
        return a + len(calls), a * len(calls)

    def of(size):
        calls.clear()
        field = gp.ScalarField(x[:size])
        return gp.HostOperator(both, field, outputs=(field.type, field.type))

    low, high = of(3)  # one after the other
    same_bits(low.numpy(), x + 1)
    same_bits(high.numpy(), x)
    same_bits((low + high).numpy(), (x + 1) + x)
    low, high = of(2)  # behind kernels
    same_bits((low * 2).numpy(), (x[:2] + 1) * 2)
    same_bits((high - 1).numpy(), x[:2] - 1)
    assert len(calls) == 1
    gain = gp.Parameter(1.0)
    low, high = gp.HostOperator(both, gp.ScalarField(x) * gain, outputs=(gp.FieldType((3, 4)),) * 2)
    for turn in range(2, 4):  # again where a parameter has changed
        same_bits(low.numpy(), x + turn)
        same_bits(high.numpy(), x * turn)
        gain.set(1.0)
    assert len(calls) == 3


def test_a_pipeline_and_a_graph_call_it_once_an_evaluation(device):
    x, calls = image(3, 4), []

    def both(a):
        calls.append(1)
        return a + 1, a * 2

    def made(field):
        low, high = gp.HostOperator(both, field, outputs=(field.type, field.type))
        return low - 1, high * 2, low + high

    traced = gp.pipeline(lambda a: made(gp.ScalarField(a)))
    for turn in range(1, 4):
        for actual, want in zip(traced(x), ((x + 1) - 1, x * 2 * 2, (x + 1) + x * 2), strict=True):
            same_bits(actual, want)
        assert len(calls) == turn
    with gp.ComputeGraph() as graph:
        for n, field in enumerate(made(gp.ScalarField(x))):
            graph.probe(field, f"p{n}")
    graph.step()
    calls.clear()
    graph.step()
    same_bits(graph.read("p2"), (x + 1) + x * 2)
    assert len(calls) == 1
