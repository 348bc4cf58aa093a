"""No kernel is longer than compilers take: every kernel of many pipelines is within the budget of statements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.config import config
from gpuop.codegen.generate import target_named
from gpuop.dsl import *
from gpuop.fusion.plan import plan, plan_for
from gpuop.fusion.program import program
from gpuop.ir.analysis.size import MOST_STATEMENTS, NEIGHBOUR, size
from gpuop.ir.kernel import Kernel
from gpuop.passes.pipeline import lower
from tests.composed import PIPELINES, box, image

SHAPE = (1021, 1024)
TARGETS = {
    "opencl": replace(target_named("opencl"), device="cpu", simd_width=16, widening="vector"),
    "cuda": target_named("cuda"),
}


def kernels(fields: list[gp.Field], target: str) -> list[Kernel]:
    """The kernels of fields, lowered."""
    result = plan_for(plan(program([f.node for f in fields])), TARGETS[target])
    return [lower(step.kernel, TARGETS[target]) for step in result.launches if isinstance(step.kernel, Kernel)]


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines(monkeypatch, name):
    monkeypatch.setattr(config, "verify", False)
    target = [*TARGETS][([*PIPELINES].index(name) + 1) % 2]  # each for one of them
    for kernel in kernels(PIPELINES[name](*SHAPE), target):
        assert size(kernel.body, hinted=True) <= MOST_STATEMENTS, (target, kernel.name)


def test_what_is_fused_reads_no_more_than_compilers_take():
    """Eighty 5×5 stencils, added up: more than one kernel may have."""
    f = image(*SHAPE)
    total = f
    for k in range(80):
        total = total + box(f * float(k), 5)
    result = kernels([total], "cuda")
    assert len(result) > 1 and max(size(kernel.body) for kernel in result) <= MOST_STATEMENTS


def test_reads_of_neighbours_count():
    """A read of another point is as large as so many statements, wherever it is; hints are copies."""

    @gp.operator
    def shifted(f):
        return _readTensor(f, _column + 1)

    @gp.operator
    def turned(f):
        total = _var(0.0)
        with _for(6, unroll=3) as k:
            total += _readTensor(f, _column + k)
        return total

    f = gp.ScalarField(np.ones(9, "f"))
    own, other, loop = ((f + 0).node.call.kernel, shifted(f).node.call.kernel, turned(f).node.call.kernel)
    assert size(own.body) == len(own.body) and size(other.body) == len(other.body) + NEIGHBOUR
    inside = size(loop.body[-2].body) if hasattr(loop.body[-2], "body") else 0
    assert inside > NEIGHBOUR and size(loop.body, hinted=True) - size(loop.body) == 2 * inside
