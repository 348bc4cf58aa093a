"""Random graphs as data; building and running them, and what must hold of each."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

import networkx as nx
import numpy as np
from hypothesis import strategies as st

import gpuop as gp
from gpuop.fusion import iteration
from gpuop.fusion.launch import Rate
from gpuop.fusion.plan import Plan
from gpuop.fusion.report.plan_report import parts
from gpuop.ir.values import calls
from tests.harness import same_bits

from . import graph_distant, graph_turns  # noqa: F401 - whose operators join the pool
from .common import reference
from .graph_kinds import KINDS, LARGE, SMALL, Kind, letter

BY_SORT = {s: [k.name for k in KINDS.values() if k.sort == s] for s in dict.fromkeys(k.sort for k in KINDS.values())}
LEAVES = (
    ("f", LARGE), ("f", LARGE), ("i", LARGE), ("u", LARGE), ("b", LARGE), ("v", LARGE), ("t", LARGE), ("f", ()), ("f", ()),
    ("f", SMALL), ("i", SMALL), ("b", SMALL), ("v", SMALL), ("u", SMALL), ("i", (20,)), ("f", (20,)),
)  # fmt: skip
DTYPES = {"f": "f4", "i": "i4", "u": "u1", "b": "?", "v": "f4", "t": "f4"}
OWN = 7
TENSORS = {"v": (3,), "t": (6,)}


@dataclass(frozen=True)
class Graph:
    """A random graph.

    Attributes:
        calls: operators' names, with numbers that choose each input among the fields that suit.
        states: by number of a leaf, the number that chooses its next value; OWN: it is made of the state alone.
        probes: numbers of made fields, or (negative) of leaves.
        parameters: numbers of leaves that are set before a step, with that step's number.
    """

    calls: tuple[tuple[str, tuple[int, int, int]], ...]
    states: tuple[tuple[int, int], ...] = ()
    probes: tuple[int, ...] = (-1,)
    steps: int = 0
    parameters: tuple[tuple[int, int], ...] = ()


_choice = st.integers(0, 7)
_call = st.tuples(
    st.sampled_from(list(KINDS)),
    st.tuples(_choice, _choice, _choice),
)


@st.composite
def graphs(draw, most=14):
    """Graphs of up to so many calls."""
    calls = draw(st.lists(_call, min_size=most // 2, max_size=most))
    states = draw(st.dictionaries(st.integers(0, len(LEAVES) - 1), _choice, max_size=4))
    probes = draw(st.sets(st.integers(0, most + 6) | st.integers(-len(LEAVES), most + 6), min_size=1, max_size=7))
    steps = draw(st.integers(0, 3))
    free = sorted({k for k, (_, grid) in enumerate(LEAVES) if grid == ()} - states.keys())
    parameters = draw(st.dictionaries(st.sampled_from(free), st.integers(0, 3), min_size=1)) if free else {}
    return Graph(tuple(calls), tuple(states.items()), tuple(sorted(probes)), steps, tuple(parameters.items()))


def own(state: gp.Field) -> gp.Field:
    """A next value for which each point's own value is enough."""
    if state.dtype == "bool":
        return ~state
    return state * 0.5 if state.dtype == "float32" else state & 21


# --- building -----------------------------------------------------------------------------------------------------------


def leaves(parameters: Collection[int] = ()) -> list[gp.Field]:
    rng = np.random.default_rng(5)
    results: list[gp.Field] = []
    for number, (kind, grid) in enumerate(LEAVES):
        tensor = TENSORS.get(kind, ())
        x = rng.integers(-40, 41, (*grid, *tensor)) / (4 if DTYPES[kind] == "f4" else 1)
        x = x > 0 if kind == "b" else np.abs(x) if kind == "u" else x
        value = np.asarray(x, DTYPES[kind])
        results.append(gp.Parameter(value) if number in parameters else gp.Field(value, len(tensor)))
    return results


def suiting(kind: Kind, fields: list[gp.Field], choices: tuple[int, ...]) -> list[gp.Field] | None:
    """Inputs for an operator, the later ones more often; None where there are none."""
    results: list[gp.Field] = []
    for wish, choice in zip(kind.takes, choices, strict=False):
        grid = () if wish.isupper() else kind.grid
        if not wish.isupper() and results:
            grid = tuple(results[0].field_shape)
        fit = [f for f in fields if letter(f) == wish.lower() and grid in (None, tuple(f.field_shape))]
        fit = [f for f in fit if kind.rank in (None, len(f.field_shape)) or wish.isupper()]
        if not fit:
            return None
        results.append(fit[-1 - choice % len(fit)])
    return results


def build(spec: Graph, optimize: bool = True) -> tuple[gp.ComputeGraph, list[str], list[gp.Field]]:
    """The graph, the names of the operators whose values it needs, and its leaves."""
    with gp.ComputeGraph(optimize=optimize) as graph:
        values = leaves(dict(spec.parameters))
        fields, array, makers = values[::-1], [], []
        for name, choices in spec.calls:
            inputs = suiting(KINDS[name], fields, choices)
            if inputs is not None:
                results = KINDS[name].make(*inputs)
                array += results if isinstance(results, tuple) else [results]
                fields = values[::-1] + array
                makers.append((name, array[-1].node.call))
        for number, choice in spec.states:
            same = [f for f in fields if f.type == values[number].type]
            values[number].next = same[-1 - choice % len(same)] if choice != OWN else own(values[number])
        graph.probe(fields[-1], "last")
        for p in spec.probes if array else ():
            graph.probe(values[p] if p < 0 else array[p % len(array)], str(p))
    needed = set(calls([f.node for f in (*graph._definition.probes.values(), *graph._definition.states.values())]))
    return graph, [name for name, call in makers if call in needed], values


def run(spec: Graph, optimize: bool = True) -> tuple[gp.ComputeGraph, dict[str, np.ndarray]]:
    """The graph, and its probes at every tick."""
    graph, _, values = build(spec, optimize)
    graph.reset()
    results = {f"{name} at 0": graph.read(name) for name in graph._definition.probes}
    for tick in range(1, spec.steps + 1):
        for number, when in spec.parameters:
            if when == tick:
                values[number].set(np.float32(tick) / 4)
        graph.step()
        results |= {f"{name} at {tick}": graph.read(name) for name in graph._definition.probes}
    return graph, results


# --- what must hold -----------------------------------------------------------------------------------------------------


def check(spec: Graph, unfused_too: bool = True) -> Counter[str]:
    """Fused as unfused as the reference unfused, bit for bit; what was found of operators and fusion."""
    with reference():
        expected = run(spec, optimize=False)[1]
    graph, fused = run(spec)
    plain = build(spec, optimize=False)[0]
    planned(graph, plain)
    results = [("fused", fused)]
    if unfused_too:
        results.append(("unfused", run(spec, optimize=False)[1]))
    for how, result in results:
        assert result.keys() == expected.keys()
        for name, value in result.items():
            same_bits(value, expected[name], f"probe {name}, {how}")
    return found(spec, graph, plain)


def planned(graph: gp.ComputeGraph, plain: gp.ComputeGraph) -> None:
    """Plans are acyclic, and explain themselves, one as text and one as JSON; fusing adds no kernel."""
    facts = json.loads(graph.explain(format="json"))
    assert len(facts["kernels"]) == len(graph.plan.launches)
    text = re.match(r"(?:\d+ kernels? in )?(\d+) (kernel|launch)", plain.explain())
    assert text
    for each, messages in ((graph, facts["kernel_count"]), (plain, int(text[1]))):
        assert messages == each.kernel_count
        assert nx.is_directed_acyclic_graph(each.network)
        ordered(each.plan)
    assert graph.kernel_count <= plain.kernel_count, graph.explain()


def ordered(plan: Plan) -> None:
    """Kernels come after the kernels whose results they need, in the plan and in those of its iterations."""
    results: set[int] = set(plan.program.leaves)
    for step in plan.launches:
        assert set(step.inputs) <= results, "a kernel before what makes its inputs"
        results.update(step.outputs)
        for part in iteration.parts(step.kernel) if isinstance(step.kernel, iteration.Iteration) else ():
            ordered(part.plan(plan.limits))
    assert set(plan.program.results) <= results


def found(spec: Graph, graph: gp.ComputeGraph, plain: gp.ComputeGraph) -> Counter[str]:
    steps, count = graph.plan.launches, Counter[str]()
    names = set(build(spec)[1])
    count.update({f"operator {name}" for name in names} | {KINDS[name].sort for name in names})
    count["graphs"] = 1
    count["kernels"], count["kernels unfused"] = graph.kernel_count, plain.kernel_count
    count["recomputed"] = any(op.recomputed for step in steps for op in step.ops)
    count["joined side by side"] = any(len(set(parts(step).values())) > 1 for step in steps)
    count["split"] = bool(graph.plan.apart)
    count["fused through registers"] = any(len(set(parts(step).values())) < len(step.ops) for step in steps)
    count["coupled states"] = len(spec.states) > 1 and spec.steps > 1
    count["probed intermediate"] = len(graph._definition.probes) > 1
    count["in place"] = spec.steps > 1 and any(step.over for step in steps)
    rates = {step.rate for step in steps}
    count["computed once"] = spec.steps > 1 and len(rates) > 1 and Rate.ONCE in rates
    count["computed when set"] = Rate.SET in rates
    return count
