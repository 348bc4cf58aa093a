"""The names of fields come from the variables they are assigned to, and change nothing but what is shown."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.engine import dump, evaluate
from gpuop.fusion.program import program
from tests.harness import blur, gamma, half_and_double

START = np.zeros((4, 5), "f")
whole = gp.ScalarField(START)


def gradient(field):
    inner = gamma(field)
    return blur(inner)


class Model:
    def __init__(self, field):
        self.flow = gamma(field)
        self.low, self.high = half_and_double(field)


def test_variables():
    photo = gp.ScalarField(START)
    edges = gradient(photo)
    low, high = half_and_double(photo)
    first = second = photo + 1
    typed: gp.Field = photo * 2
    rate = gp.Parameter(0.5)
    model = Model(photo)
    updated = photo
    updated += 1
    named = [whole, photo, edges, low, high, first, typed, rate, model.flow, model.low, model.high, updated]
    assert " ".join(f.name for f in named) == "whole photo edges low high first typed rate flow low high updated"
    assert second.name == "first", "the first one"


STATEMENTS = {  # what a statement makes: places, and after a colon the names of the fields there, if they have others
    "a, b = new(), new()": "a b",
    "a, b, c = new(), new() * 2, new() - 1": "a b c",
    "a, b, c, d = new(), np.sqrt(new()), gamma(new()), new()": "a b c d",
    "[a, b, c] = [new(), new(), new()]": "a b c",
    "(a, b), c = half_and_double(new()), new()": "a b c",
    "a, (b, c) = new(), half_and_double(new())": "a b c",
    "m.a, b = new(), new()": "m.a:a b",
    "m.a, m.b = half_and_double(new())": "m.a:a m.b:b",
    "m.next, b = new(), new()": "m.next:- b",
    "m.table[0], b = new(), new()": "m.table[0]:- b",
    "a = b = new()": "a b:a",
    "a, b = c, d = new(), new()": "a b c:a d:b",
    "a = [new(), new()]": "a[0]:- a[1]:-",
    "a = (new(),)": "a[0]:-",
    "a = gamma(*[new()], **{})": "a",
    "a = np.clip(new(), 0, a_max=1)": "a",
    "a = new() + new()": "a",
    "a, b = new() if m else whole, new()": "b",
    "a: gp.Field = new()": "a",
    "(a := new())": "a",
}


@pytest.mark.parametrize("scope", ["module", "function"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_one_statement(statement, scope):
    """Every field gets the name that it is stored to, in the module's code and in a function's."""
    names = {**globals(), "new": lambda: gp.ScalarField(START), "m": type("Model", (), {"table": {}})()}
    if scope == "function":
        exec(f"def made():\n    {statement}\n    return locals()\nnames = made()", names)
        names |= names["names"]
    else:
        exec(statement, names)
    for word in STATEMENTS[statement].split():
        place, _, name = word.partition(":")
        assert eval(place, names).name == (name or place).strip("-")


def test_locals_and_arrays_of_kernels():
    @gp.operator
    def tiled(f):
        _localThreads(4)
        ta, tb = _local(_floatArray(4)), _local(_float2Array(4))
        low, high = _readTensor(f) - 1, _var(2.0)
        high += low
        ta[_localColumn], tb[_localColumn] = low, high
        _syncThreadsLocal()
        return ta[3 - _localColumn] + tb[3 - _localColumn].x

    text = tiled.source(gp.FieldType((4, 8)), target="opencl")
    for declared in ("__local float ta[4]", "__local float tb[4][2]", "const float low = ", "float high = 2.0f"):
        assert declared in text, text


def test_functions_of_numpy_and_of_gpuop():
    photo = gp.ScalarField(START)
    root = np.sqrt(photo)
    clipped = np.clip(photo, 0, 1)
    same = gp.fromfunction(lambda r, c: r + c, gp.FieldType((3, 4)))
    assert (root.name, clipped.name, same.name) == ("root", "clipped", "same")


def test_without_a_variable():
    photo = gp.ScalarField(START)
    listed = [photo + k for k in range(2)]
    assert [f.name for f in (photo + 1, *listed, (lambda: photo + 1)())] == [""] * 4


def test_cogs_form():
    def half(field):
        with gp.GPUOperator(field.type) as op:
            _writeTensor(_out0, _readTensor(field) / 2)
        return op.output

    def both(field):
        with gp.GPUOperator(field.type, field.type) as op:
            _writeTensor(_out0, _readTensor(field) / 2)
            _writeTensor(_out1, _readTensor(field) * 2)
        return op.outputs

    halved = half(whole)
    less, more = both(whole)
    assert (halved.name, less.name, more.name) == ("halved", "less", "more")


def test_set_and_shown():
    photo = gp.ScalarField(START)
    photo.name = "picture"
    assert photo.name == "picture" and repr(photo) == "<ScalarField picture 4×5 float32>"
    a, b = half_and_double(photo)
    b.name = "twice"
    assert (a.name, b.name) == ("a", "twice")


def test_evaluated(device):
    photo = gp.ScalarField(START)
    for _ in range(2):
        photo = gp.evaluate(gamma(photo))
    left, right = gp.evaluate(photo, photo + 1)
    pair = gp.evaluate(photo, right)
    assert (photo.name, left.name, right.name) == ("photo", "left", "right")
    assert [f.name for f in pair] == ["photo", "right"], "they keep their names where they get no new ones"


def test_probes_and_explain():
    with gp.ComputeGraph() as graph:
        heat = gp.ScalarField(START)
        heat.next = heat * 0.5 + 1
        motion = abs(heat - 1)
        graph.probe(motion)
        graph.probe(motion, "again")
        for _ in range(2):
            step = blur(motion)
            graph.probe(step)
        graph.probe(step * 2)
    assert list(graph._definition.probes) == ["motion", "again", "step", "step2", "probe4"]
    assert np.array_equal(graph.read("motion"), graph.read(motion))
    assert "  heat → " in graph.explain() and "heat.next" in graph.explain()


def test_probes_without_a_name_take_their_arguments():
    with gp.ComputeGraph() as graph:
        now, before = gp.ScalarField(START), gp.ScalarField(START)
        now.next, before.next = now + 1, now
        listed = [now * k for k in range(2)]
        model = Model(now)
        model.__dict__["shown"] = listed[0] - 1
        for one in listed:
            graph.probe(one)
        graph.probe(field=one)
        graph.probe(model.shown)
        graph.probe(before)
        graph.probe(listed[0] * 3)
    graph.step(2)
    assert list(graph._definition.probes) == ["one", "one2", "one3", "shown", "before", "probe5"]
    assert graph.read("before")[0, 0] == 1


def test_a_given_name_is_one_probes():
    with gp.ComputeGraph() as graph:
        graph.probe(whole + 1, "motion")
        with pytest.raises(gp.SemanticError, match="there is a probe 'motion' already; give another name"):
            graph.probe(whole + 2, "motion")


def test_what_is_on_the_way_has_no_name():
    clipped = np.clip(whole, 0, 1)  # two operators
    assert sorted(program([clipped.node]).names.values()) == ["clipped", "whole"]
    x = whole
    for _ in range(3):
        x = blur(x)
    assert sorted(program([x.node]).names.values()) == ["whole", "x"]


def test_names_change_nothing(device):
    """Equal calls merge, plans and compiled kernels are shared, whatever fields are called."""
    one = gp.ScalarField(START + 1)

    def shifted(field, captured):
        return gp.operator(lambda f: _readTensor(f) + _readTensor(captured, _row, _column + 1))(field)

    def result(name):
        captured = gp.ScalarField(START)
        captured.name = name
        out = shifted(one, captured) * 2
        out.name = name
        return out

    first, second = result("first"), result("second")
    first.numpy()
    plans = len(evaluate._plans)
    second.numpy()
    assert len(evaluate._plans) == plans
    assert source_of(first) == source_of(second)
    a = one * 3
    b = one * 3
    merged = program([a.node, b.node])
    assert len(merged.ops) == 1 and merged.names[merged.results[0]] == "a"


def source_of(field):
    return dump.source([field], "opencl")
