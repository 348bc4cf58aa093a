"""Random graphs of every kind of operator: fused, unfused and on the reference they compute the same bits."""

from __future__ import annotations

from collections import Counter

from hypothesis import given

from . import graph_programs
from .common import INTERPRETED, profile
from .graph_kinds import KINDS
from .graph_programs import BY_SORT, graphs

FUSION = (
    "recomputed", "joined side by side", "split", "fused through registers", "coupled states", "probed intermediate", "in place",
    "computed once", "computed when set",
)  # fmt: skip


def test_fused_unfused_and_reference_agree(device):
    counts: Counter[str] = Counter()

    @profile(device, 36, 4)
    @given(graphs(6 if device in INTERPRETED else 4))
    def run(spec):
        counts.update(graph_programs.check(spec, unfused_too=device != "reference"))

    run()
    # it is fusion that was tested
    assert counts["kernels"] < (0.85 if device in INTERPRETED else 0.95) * counts["kernels unfused"], counts
    if device == "reference":
        assert min(counts[what] for what in FUSION) >= 2, {what: counts[what] for what in FUSION}


def test_every_kind_of_operator_occurs():
    counts: Counter[str] = Counter()

    @profile("reference", 180, 0)
    @given(graphs(12))
    def run(spec):
        counts.update(set(graph_programs.build(spec)[1]))

    run()
    assert [sort for sort, names in BY_SORT.items() if not any(counts[n] for n in names)] == []
    assert len(counts) > 0.8 * len(KINDS), sorted(KINDS.keys() - counts.keys())
