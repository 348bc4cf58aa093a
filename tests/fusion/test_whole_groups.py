"""Operators whose tail threads run, beside others: what fuses, what stays apart and why; checked execution of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.harness import fused, graph_of, same_bits
from tests.runtime.planted import checked

A = np.arange(37, dtype="f") - 11


@gp.operator
def after(f):
    """The next point's value, and its group's first at its end."""
    _localThreads(16, whole_groups=True)
    tile = _local(_floatArray(16))
    tile[_localColumn] = _readTensor(f)
    _syncThreadsLocal()
    return tile[(_localColumn + 1) % 16]


def expected(a: Any) -> Any:
    return np.roll(np.pad(a, (0, 11), "edge").reshape(3, 16), -1, 1).ravel()[:37]


def reason(build: Any) -> str:
    """The reason that the kernels of a graph are several; their results are those of each alone."""
    graph, _ = fused(build)
    (apart,) = json.loads(graph.explain("json"))["apart"]
    assert f"{apart['reason']}; costs" in graph.explain()
    return str(apart["reason"])


def test_what_fuses_with_whole_groups(device: str) -> None:
    """Before: what is cheap enough to be computed at each read. Behind, and beside: what any thread may do."""

    def build():
        a = gp.ScalarField(A)
        moved = after(a * 2 + a)
        return {"out": np.where(moved > 0, np.sqrt(abs(moved)), moved // 3), "beside": a + 1, "twice": after(a)}

    _, results = fused(build, 1)
    moved = expected(A * 3)
    same_bits(results["out"], np.where(moved > 0, np.sqrt(abs(moved)), moved // 3).astype("f"))
    same_bits(results["twice"], expected(A))
    same_bits(results["beside"], A + 1)


@gp.operator(outputs=lambda f: f.type)
def scattered(f):
    _writeTensor(_out0, _readTensor(f), _column / 2)  # writes


@gp.operator
def tiled(f):
    _localThreads(16)
    tile = _local(_floatArray(16))
    tile[_localColumn] = _readTensor(f)
    return tile[_localColumn]


@gp.operator
def looping(f):
    x = _var(_readTensor(f))
    with _while(x < _column):
        x += 1
    return x


@gp.operator
def told(f):
    table = _floatArray(40)
    table[_column] = 2.0
    return _readTensor(f) * table[_column]


@gp.operator
def promised(f):
    return (
        _readTensor(f)
        + _readTensor(A_FIELD, _column, border="unchecked")
        + _readTensor(A_FIELD, 36 - _column, border="unchecked")
    )


A_FIELD = gp.ScalarField(A)


@pytest.mark.parametrize(
    ("op", "what"),
    [(scattered, "writes at computed places"), (tiled, "has local memory"), (looping, "loops until a condition holds"),
     (told, "writes arrays at computed places"), (promised, 'reads under border="unchecked"')],
    ids=lambda x: getattr(x, "name", ""),
)  # fmt: skip
def test_what_tail_threads_must_not_do(op: Any, what: str) -> None:
    with gp.use_device("reference"):
        message = reason(lambda: {"out": op(after(gp.ScalarField(A)))})
    assert message.startswith(
        f"`after` runs whole work-groups, and `{op.name}` {what} (tests/fusion/test_whole_groups.py:"
    )
    assert message.endswith("), which tail threads must not")


@pytest.mark.parametrize("first", [True, False])
def test_what_tail_threads_must_not_do_beside_them(first: bool) -> None:
    """Operators that read the same are one kernel, whichever comes first, unless tail threads must not run the other one."""

    def beside(op: Any) -> gp.ComputeGraph:
        f = gp.ScalarField(A)
        calls = {"whole": lambda: after(f), "other": lambda: op(f)}
        return graph_of(lambda: {name: calls[name]() for name in sorted(calls, reverse=first)})

    with gp.use_device("reference"):
        assert beside(lambda f: f * 2).kernel_count == 1
        for op in (scattered, looping, told, tiled):
            assert beside(op).kernel_count == 2, op.name


def test_what_is_wanted_is_read_by_tail_threads_from_memory() -> None:
    def build():
        made = np.sqrt(gp.ScalarField(abs(A)))
        return {"made": made, "out": after(made)}

    with gp.use_device("reference"):
        assert reason(build).startswith("`after` reads `f` in tail threads too (tests/fusion/test_whole_groups.py:")


def test_checked_execution_runs_tail_threads() -> None:
    """They are threads as others: in races, in assertions, and by their places."""

    @gp.operator(outputs=gp.FieldType((), (), "int32"))
    def racing():
        _globalThreads(37)
        _localThreads(16, whole_groups=True)
        with _if(_column >= 46):
            _writeTensor(_out0, _column)

    @gp.operator(outputs=gp.FieldType(37))
    def asserting():
        _localThreads(16, whole_groups=True)
        _assert(_column < 47, "too far")
        _writeTensor(_out0, 1)

    with checked():
        same_bits(after(A_FIELD).numpy(), expected(A))
        with pytest.raises(
            gp.SemanticError, match=r"thread \(column 46\) writes the output, and thread \(column 47\) writes it"
        ):
            racing().numpy()
        with pytest.raises(gp.SemanticError, match="too far; the first thread seen is column 47"):
            asserting().numpy()


def test_states_in_place(device: str) -> None:
    """A state's next value behind a tile: tail threads read what others write, and nothing comes of it."""
    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(A)
        state.next = state * 2 + after(gp.ScalarField(A))
        graph.probe(state, "state")
    graph.step(3)
    want = A
    for _ in range(3):
        want = want * 2 + expected(A)
    same_bits(graph.read("state"), want)
    assert graph_of(lambda: {"s": after(gp.ScalarField(A))}).kernel_count == 1
