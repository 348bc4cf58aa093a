"""The compute graph as networkx sees it: operators before fusion, kernels after."""

from __future__ import annotations

import gc
import json
import weakref

import networkx as nx
import pytest
from hypothesis import given

import gpuop as gp
from gpuop.dsl import *
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from tests.fuzz import dags, graph_programs
from tests.fuzz.common import profile
from tests.harness import blur, gamma, graph_of, half_and_double, image, shift
from tests.process import python

SHAPE = (21, 34)
LIMITS = Limits(registers=6)
POINT, WHOLE = {"kind": "point"}, {"kind": "whole"}
a, b = gp.ScalarField(image(*SHAPE)), gp.ScalarField(image(*SHAPE))


@pytest.fixture(autouse=True)
def on_the_reference():
    with gp.use_device("reference"):
        yield


@gp.operator(outputs=lambda f: f.type)
def flipped(f):
    _writeTensor(_out0, _readTensor(f, _rows - 1 - _row, _column))


@gp.operator
def before_and_after(f, g):
    return _readTensor(f, _row - 2, _column) + _readTensor(g, _row, _column + 3) + _readTensor(g)


def nodes(network, *attributes):
    return {n: tuple(data[each] for each in attributes) for n, data in network.nodes(data=True)}


def reads(graph):
    return {(maker, reader): data["reads"] for maker, reader, data in graph.operators.edges(data=True)}


# --- by hand ------------------------------------------------------------------------------------------------------------


def test_a_stencil_behind_a_chain():
    """Values: 0 a, 1 gamma, 2 add, 3 blur, 4 b, 5 multiply."""
    graph = graph_of(lambda: {"out": blur(gamma(a) + 1) * b})
    kind = (*SHAPE,), "float32", "reference"
    assert nodes(
        graph.operators, "name", "shape", "dtype", "device", "inputs", "outputs", "kernel", "recomputed_in"
    ) == {
        0: ("gamma", *kind, (0,), (1,), 0, ()),
        1: ("add", *kind, (1,), (2,), 0, ()),
        2: ("blur", *kind, (2,), (3,), 1, ()),
        3: ("multiply", *kind, (3, 4), (5,), 1, ()),
    }
    assert reads(graph) == {
        (0, 1): {1: POINT},
        (1, 2): {2: {"kind": "stencil", "low": (-1, -1), "high": (1, 1)}},
        (2, 3): {3: POINT},
    }
    assert nodes(graph.network, "name", "operators", "members", "threads", "device") == {
        0: ("gamma_add", ["gamma", "add"], (0, 1), "21×34", "reference"),
        1: ("blur_multiply", ["blur", "multiply"], (2, 3), "21×34", "reference"),
    }
    assert list(graph.network.edges(data="values")) == [(0, 1, (2,))]
    assert graph.network.graph["mapping"] == {0: 0, 1: 0, 2: 1, 3: 1}


def test_what_is_computed_where_it_is_read():
    """Values: 0 a, 1 multiply, which the shift computes itself; 2 shift, 3 sum, 4 add."""
    graph = graph_of(lambda: {"out": shift(a * 2) + a.sum()})
    assert nodes(graph.operators, "name", "shape", "kernel", "recomputed_in") == {
        0: ("multiply", SHAPE, None, (1,)),
        1: ("shift", SHAPE, 1, ()),
        2: ("sum", (), 0, ()),
        3: ("add", SHAPE, 1, ()),
    }
    assert reads(graph) == {
        (0, 1): {1: {"kind": "stencil", "low": (0, 1), "high": (0, 1)}},
        (1, 3): {2: POINT},
        (2, 3): {3: WHOLE},
    }
    assert nodes(graph.network, "operators", "members") == {0: (["sum"], (2,)), 1: (["shift", "add"], (1, 3))}
    assert list(graph.network.edges(data="values")) == [(0, 1, (3,))]


def test_several_values_and_the_host():
    """Values: 0 a, 1 and 2 half and double, 3 before_and_after, 4 flipped, 5 of the host."""

    def build():
        half, double = half_and_double(a)
        mixed = flipped(before_and_after(double, half))
        return {"out": gp.HostOperator(lambda x: x[::-1].copy(), mixed, outputs=mixed.type)}

    graph = graph_of(build, optimize=False)
    assert nodes(graph.operators, "outputs", "device", "kernel") == {
        0: ((1, 2), "reference", 0),
        1: ((3,), "reference", 1),
        2: ((4,), "reference", 2),
        3: ((5,), "host", 3),
    }
    assert reads(graph) == {
        (0, 1): {
            2: {"kind": "stencil", "low": (-2, 0), "high": (-2, 0)},
            1: {"kind": "stencil", "low": (0, 0), "high": (0, 3)},
        },
        (1, 2): {3: WHOLE},
        (2, 3): {4: WHOLE},
    }
    assert graph.operators.edges[0, 1]["values"] == (2, 1)
    assert list(graph.network.edges(data="values")) == [(0, 1, (1, 2)), (1, 2, (3,)), (2, 3, (4,))]
    assert nodes(graph.network, "members", "device")[3] == ((3,), "host")


# --- what holds of all --------------------------------------------------------------------------------------------------


def check(graph):
    """Kernels are a partition of the operators, and acyclic; what one makes and another one reads is an edge."""
    before, after, launches = graph.operators, graph.network, graph.plan.launches
    assert nx.is_directed_acyclic_graph(before) and nx.is_directed_acyclic_graph(after)
    assert list(after) == list(range(len(launches))) and all(a < b for a, b in after.edges)
    assert list(before) == sorted(before) and all(a < b for a, b in before.edges)
    home = {op: n for n, members in after.nodes(data="members") for op in members}
    assert home == after.graph["mapping"] == {n: k for n, k in before.nodes(data="kernel") if k is not None}
    assert sum(len(members) for _, members in after.nodes(data="members")) == len(home)
    for n, data in before.nodes(data=True):
        assert data["kernel"] is not None or data["recomputed_in"], "an operator that nobody computes"
        for k in data["recomputed_in"]:
            assert set(after.nodes[k]["members"]) & nx.descendants(before, n), "computed for nobody"
    maker = {value: n for n, data in before.nodes(data=True) for value in data["outputs"]}
    edges = {(maker[v], n, v) for n, data in before.nodes(data=True) for v in data["inputs"] if v in maker}
    assert edges == {(x, y, v) for x, y, values in before.edges(data="values") for v in values}
    assert all(tuple(data["reads"]) == data["values"] for _, _, data in before.edges(data=True))
    writer = {value: n for n, launch in enumerate(launches) for value in launch.outputs}
    through = {(writer[v], n, v) for n, launch in enumerate(launches) for v in launch.inputs if v in writer}
    assert through == {(x, y, v) for x, y, values in after.edges(data="values") for v in values}
    for network in (before, after):
        json.dumps(nx.node_link_data(network))
    return before, after


def dag(seed, optimize):
    drawn = dags.drawn(seed, 20)
    with gp.ComputeGraph(optimize=optimize) as graph:
        result = dags.applied(drawn, [gp.Field(x, 0) for x in dags.start()], fields=True)
        for v in drawn.outputs:
            graph.probe(result[v], str(v))
    return graph


def test_kernels_are_a_condensation_of_operators():
    fused = 0
    for seed in range(30):
        for optimize in (True, False):
            before, after = check(dag(seed, optimize))
            fused += len(after) < len(before)
            if not optimize:
                alone = {(before.nodes[x]["kernel"], before.nodes[y]["kernel"]) for x, y in before.edges}
                assert len(after) == len(before) and alone == set(after.edges)
    assert fused > 15


def test_of_graphs_with_states():
    copies = []

    @profile("reference", 40, 4)
    @given(graph_programs.graphs(8))
    def run(spec):
        before, _ = check(graph_programs.build(spec)[0])
        copies.append(any(k is None for _, k in before.nodes(data="kernel")))

    run()
    assert any(copies), "nothing was computed where it is read"


def test_nobody_changes_a_plan_by_them():
    graph = graph_of(lambda: {"out": blur(gamma(a) + 1) * b})
    text = graph.explain()
    for network in (graph.operators, graph.network):
        network.clear()
    assert len(graph.operators) == 4 and len(graph.network) == 2 and graph.explain() == text
    what = program([(gamma(a) + 1).node])
    plan(what)
    with pytest.raises(nx.NetworkXError, match="Frozen"):
        what.network.remove_node(0)


def test_planning_leaves_no_cycle_of_references():
    """Else operators, and what their functions refer to, would live on until Python looks for cycles."""
    gc.disable()
    try:
        what = program([(shift(a * 2) * blur(gamma(a))).node])
        results = [plan(what, optimize, LIMITS) for optimize in (True, False)]
        assert len(results[0].launches) < len(results[1].launches)
        network = weakref.ref(what.network)
        del what, results
        assert network() is None
    finally:
        gc.enable()


def test_an_empty_graph():
    graph = graph_of(lambda: {"out": a})
    assert not graph.operators and not graph.network and graph.network.graph["mapping"] == {}


def test_networkx_is_imported_with_the_first_plan():
    text = (
        "import sys, numpy as np, gpuop as gp; assert 'networkx' not in sys.modules; "
        "(gp.ScalarField(np.ones(3)) + 1).numpy(); assert 'networkx' in sys.modules"
    )
    python("-c", text, GPUOP_DEVICE="reference")
