"""Dense random graphs: plans can run in their order, whatever is fused, and results are NumPy's."""

from __future__ import annotations

from random import Random

import networkx as nx
import pytest

import gpuop as gp
from gpuop.fusion.groups import Groups
from gpuop.fusion.kernel_limits import LEAST
from gpuop.fusion.legality import refuse
from gpuop.fusion.program import program
from tests.nightly import seeds

from . import dags
from .dags import Dag, applied, check, drawn, planned, start

# A value that is used early and late (4, 8), between which stands what needs it (5), and a leaf that is read before and
# after all of that (by 6 and 9): once the first are one kernel, the last must not become one.
ROUND = Dag(
    (("scaled", (0,)), ("turns", (4,)), ("scaled", (1,)), ("turns", (6,)), ("sum", (4, 7)), ("sum", (1, 5))),
    outputs=(5, 8, 9),
    nexts=(),
)


@pytest.mark.parametrize("apart", ["turns", "host", "mirrored", "most"])
@pytest.mark.parametrize("nexts", [(), ((0, 9),), ((0, 9), (1, 5))])
def test_kernels_that_would_need_one_another(apart, nexts):
    calls = tuple((apart if name == "turns" else name, operands) for name, operands in ROUND.calls)
    if apart == "most":  # a number: what is made of it is another kernel
        calls = tuple(("product" if name == "sum" else name, operands) for name, operands in calls)
        nexts = tuple((leaf, 8) for leaf, _ in nexts[:1])
    with gp.use_device("reference"):
        check(Dag(calls, ROUND.outputs, nexts))


def test_results_are_those_of_numpy():
    with gp.use_device("reference"):
        for seed in seeds(0, 40):
            check(drawn(seed))


def test_results_on_the_best_device():
    for seed in seeds(100, 3):
        check(drawn(seed))


def test_plans_can_run_in_their_order():
    fused = [
        len(plans[0].launches) < len(plans[1].launches)
        for plans in (planned(drawn(seed, 30)) for seed in range(1000, 1050))
    ]
    assert sum(fused) > 37


def test_whatever_is_merged_groups_stay_acyclic():
    """The rules that save memory choose few pairs; here any two kernels that may become one do."""
    apart = 0
    for seed in range(170):
        random, dag = Random(seed), drawn(seed, 16)
        result = applied(dag, [gp.Field(a, 0) for a in start()], fields=True)
        what = program([result[v].node for v in dag.outputs])
        groups, maker = Groups(what, LEAST), {value: op.number for op in what.ops for value in op.outputs}
        edges = {(maker[value], op.number) for op in what.ops for value in op.inputs if value in maker}
        for _ in range(3 * len(what.ops)):
            a, b = (groups.of[random.choice(what.ops).number] for _ in range(2))
            if a == b:
                continue
            reason = refuse(groups, a, b)
            if reason is None:
                groups.merge(a, b)
            else:
                apart += "another kernel stands between them" in reason
            quotient = nx.DiGraph((groups.of[x], groups.of[y]) for x, y in edges if groups.of[x] != groups.of[y])
            assert nx.is_directed_acyclic_graph(quotient), (seed, dag)
    assert apart > 30, "nothing has stood between two kernels"


def test_the_pool_is_drawn_from():
    assert {name for seed in range(200) for name, _ in drawn(seed).calls} == set(dags.KINDS)
