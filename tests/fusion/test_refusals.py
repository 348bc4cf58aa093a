"""A rule added to `refusals` as one function keeps operators apart however they would be fused, and `explain` says it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.fusion import legality
from gpuop.fusion.cross_thread import needs_other_threads
from gpuop.fusion.groups import Groups
from gpuop.fusion.plan import Plan, plan
from gpuop.fusion.program import program
from gpuop.fusion.report.explain import explain
from gpuop.fusion.tail_threads import unfit

SENTENCE = "`solo` wants to be alone"
field = gp.ScalarField(np.arange(1 << 16, dtype=np.float32))


@gp.operator
def first(f):
    return _readTensor(f) * 2


@gp.operator
def solo(f):
    return _readTensor(f) + 1


@gp.operator
def last(f):
    return _readTensor(f) * 3


@gp.operator
def slope(f):
    return _readTensor(f, _column + 1) - _readTensor(f, _column - 1)


@gp.operator
def solo_slope(f):
    return _readTensor(f, _column + 1) - _readTensor(f)


def is_alone(groups: Groups, a: int, b: int) -> str | None:
    names = {op.kernel.name for group in (a, b) for op in groups.members[group]}
    return SENTENCE if names & {"solo", "solo_slope"} else None


GRAPHS = {  # the kernels without the rule, and with it
    "producer and consumer": (lambda: [last(solo(first(field)))], 1, 3),
    "siblings": (lambda: [solo(field), last(field)], 1, 2),
    "recomputed elsewhere": (lambda: [slope(solo(field))], 1, 2),
    "recomputing others": (lambda: [solo_slope(first(field))], 1, 2),
    "part of what is recomputed": (lambda: [slope(last(solo(first(field))))], 1, 3),
}


def planned(fields: Sequence[gp.Field]) -> Plan:
    return plan(program([f.node for f in fields]))


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("place", ["first", "last"])
def test_a_new_rule_refuses_whichever_way_operators_are_fused(
    graph: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, fused, count = GRAPHS[graph]
    assert len(planned(build()).launches) == fused
    assert SENTENCE not in explain(planned(build()))
    rules = (is_alone, *legality.refusals) if place == "first" else (*legality.refusals, is_alone)
    monkeypatch.setattr(legality, "refusals", rules)
    plan = planned(build())
    assert len(plan.launches) == count, explain(plan)
    assert explain(plan).count(SENTENCE) == count - 1
    assert [op.kernel.name for launch in plan.launches for op in launch.ops if op.recomputed] == (
        ["slope"] if graph.startswith("part") else []
    )


def test_every_refusal_is_listed() -> None:
    """In the order of the file, which is the order in which they are asked."""
    functions = [
        name for name, f in vars(legality).items() if getattr(f, "__module__", "") == legality.__name__ and callable(f)
    ]
    assert [rule.__name__ for rule in legality.refusals] == [name for name in functions if name != "refuse"]


CALLS = {  # operators of the library's that read or write elsewhere
    "recorded by itself": "np.roll(first(f), 2)",
    "decorated": "gp.cog.bilateralFilter(first(f), np.ones(3), 0.1)",
    "written at computed places": "np.cumsum(np.cumsum(f).reshape(132))",
    "in tail threads": "grouped(f) + np.histogram(f, 132, (0, 1))[0]",
}


@gp.operator
def grouped(f):
    _localThreads(32, whole_groups=True)
    return _readTensor(f) * 2


def reasons(call: str, line: int) -> list[str]:
    """The reasons that keep the operators of a call in a line of a file from one another."""
    f = gp.ScalarField(np.ones(132, np.float32))
    result = eval(compile("\n" * (line - 1) + call, "calls.py", "eval"), globals(), {"f": f})
    ops = program([result.node]).ops
    values = [(a, b, value) for b in ops for value in b.inputs for a in ops if value in a.outputs]
    apart = [needs_other_threads(a, b, value) for a, b, value in values] + [unfit((a, b)) for a in ops for b in ops]
    return [reason for reason in apart if reason is not None]


@pytest.mark.parametrize("name", CALLS)
def test_reasons_name_the_call_that_is_explained(name: str) -> None:
    """The library's operators are recorded once: what they do is told of each call, not at the line of the first."""
    before, after = (reasons(CALLS[name], line) for line in (3, 8))
    assert any("(calls.py:3)" in reason for reason in before)
    assert after == [reason.replace("calls.py:3", "calls.py:8") for reason in before]


def test_reasons_name_lines_of_operators_of_ones_own() -> None:
    line = slope.function.__code__.co_firstlineno + 2
    for call in (3, 8):
        (reason,) = reasons("slope(first(f))", call)
        assert f"test_refusals.py:{line})" in reason
