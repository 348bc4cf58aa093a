"""Every pass alone keeps what kernels compute, bit for bit: random programs, fused ones and graphs.

`benchmarks/fuzz.py --device "passes unrolled" --device "passes vector"` runs as many as are wanted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import gpuop as gp
from gpuop.dsl import *
from gpuop.ir.nodes import Const
from gpuop.ir.types import FLOAT, Type
from gpuop.ir.visit import Copier
from gpuop.passes import pipeline
from gpuop.passes.pipeline import PIPELINE

from . import graph_programs, running
from .common import profile
from .graph_programs import graphs
from .programs import pairs, programs

NEVER = {
    "resolve_target",
    "hide_constant_nans",  # for NVIDIA's compilers
    "flat_points",  # of arrays whose elements alternate, which fields of these programs have not
    "scaled_sums",  # for targets without doubles, or with slow ones
}  # changes a kernel here: a plan on a device has been resolved; before it is, a kernel has no meaning
LANES = {"widen", "vectorize"}
# what is for other targets; and words of bytes, which take the place of fields in memory
OTHERS = {
    "passes unrolled": {"vectorize", "narrow", "pack", "loop_lanes", "double_as_pairs"},
    "passes vector": {"quick_extremes", "load_ahead", "pack", "double_as_pairs"},
}
WATCHING = [name for name in running.DEVICES if name.startswith("passes ")]


@gp.operator
def hinted(f):
    """Statements that random programs have none of: an assertion, an expanded loop, more hints than compilers are given."""
    _assert(_readTensor(f) < 50, "too much")
    total = _var(0.0)
    with _for(3, unroll=True) as i:
        total += _readTensor(f, _row, _column + i) * i
    with _for(40, unroll=40) as i:
        with _for(40, unroll=40) as j:
            total += _readTensor(f, i, j)
    return total


@gp.operator
def ranked(f):
    """The fourth of four around each point, and minima and maxima of these."""
    a, b, c, d = (_readTensor(f, _row + r, _column) for r in (-1, 0, 1, 2))
    for _ in range(3):
        a, b, c, d = _min(a, b), _max(a, b), _min(c, d), _max(c, d)
        b, c = _min(b, c), _max(b, c)
    return d


@gp.operator(outputs=gp.FieldType((3, 77)))
def in_turns(f):
    """Threads that are alone in their work-groups, whose loops go over neighbours."""
    _globalThreads(3)
    _localThreads(1)
    line = _floatArray(77)
    with _for(77) as c:
        line[c] = _readTensor(f, _column, c, border="unchecked")
    with _for(77) as c:
        _writeTensor(_out0, line[c] * 2.0, _column, c)


@gp.operator
def rounded(f):
    """A value that is one of bfloat16."""
    return _convert(_readTensor(f) * 1.7, "bfloat16") * 3.0


def rare() -> tuple[gp.Field, ...]:
    """With two loops that turn alike, one that divides what it loads, many extremes, and bfloat16."""
    f = gp.ScalarField(np.random.default_rng(3).integers(-40, 41, (40, 6)).astype("f"))
    g = gp.ScalarField(np.arange(40, dtype="f").reshape(20, 2))
    return (
        hinted(f),
        gp.ndimage.distance_transform_cdt(f > 0),
        f.min(axis=0),
        f.max(axis=0),
        (1 / f).sum(axis=0),
        ranked(g),
        rounded(f),
    )


@pytest.mark.parametrize("watching", [name for name in WATCHING if name != "passes scalar"])
def test_every_pass_alone_keeps_results(watching):
    changed = running.DEVICES[watching].changed
    changed.clear()
    running.computed(rare(), watching)
    running.computed((in_turns(gp.ScalarField(np.ones((3, 77), "f"))),), watching)

    @profile("reference", 10, 0)
    @given(programs())
    def run_programs(program):
        running.computed(running.recorded(program), watching)

    @profile("reference", 3, 0)
    @given(pairs())
    def run_pairs(pair):
        running.pair_in_a_graph(pair, watching, optimize=True)

    @profile("reference", 5, 0)
    @given(graphs(6))
    def run_graphs(graph):
        with running.using(watching):
            graph_programs.run(graph)

    for run in (run_programs, run_pairs, run_graphs):
        run()
    skipped = NEVER | OTHERS[watching]
    assert set(changed) == {step.__name__ for step, _ in PIPELINE} - skipped
    assert min(changed[name] for name in LANES - skipped) > 5, changed


# --- it is the passes that are tested -----------------------------------------------------------------------------------


class _Tripled(Copier):
    def expr(self, expr):
        return Const(3.0, expr.type) if expr == Const(2.0, Type(FLOAT)) else super().expr(expr)


def spoil(kernel):
    """A pass after which a kernel computes something else."""
    return replace(kernel, body=_Tripled(kernel.body).copy())


@pytest.mark.parametrize("watching", WATCHING)
@pytest.mark.parametrize("after", range(len(PIPELINE)), ids=lambda n: f"{n}-{PIPELINE[n][0].__name__}")
def test_a_pass_that_changes_results_is_named(monkeypatch, watching, after):
    planted = (*PIPELINE[: after + 1], (spoil, PIPELINE[after][1]), *PIPELINE[after + 1 :])
    monkeypatch.setattr(pipeline, "PIPELINE", planted)
    x = np.arange(8, dtype="f").reshape(2, 4)
    shifted = gp.operator(lambda f: _readTensor(f, _row, _column + 1) * 2.0, name="shifted")
    with pytest.raises(AssertionError, match=r"spoil changed out0:\n[^a-z]*is not\n[^a-z]*--- before\nkernel shifted"):
        running.computed((shifted(gp.ScalarField(x)),), watching)
