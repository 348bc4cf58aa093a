"""A thread for each point, which computes all it needs itself: intermediates are computed anew wherever they are read."""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.analysis.stages import stage, stages
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import FieldParam
from gpuop.passes.inline import inline


def without_intermediates(kernel: Kernel) -> Kernel:
    """The kernel with every stage computed where it is read."""
    made: dict[FieldParam, Kernel] = {}
    for param in kernel.intermediates:
        made[param] = _inlined(stage(kernel, [param]), made)
    return replace(_inlined(stages(kernel)[-1], made), inputs=kernel.inputs)


def _inlined(kernel: Kernel, made: dict[FieldParam, Kernel]) -> Kernel:
    for param in kernel.inputs:
        if param in made:
            kernel = inline(kernel, param, made[param])
    return kernel
