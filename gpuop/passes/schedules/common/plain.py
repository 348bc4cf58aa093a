"""The plain schedule: one thread per point, and every intermediate is recomputed where it is read."""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.analysis.stages import stage, stages
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import FieldParam
from gpuop.passes.inline import inline


def without_intermediates(kernel: Kernel) -> Kernel:
    """The kernel with every stage computed where it is read."""
    by_param: dict[FieldParam, Kernel] = {}
    for param in kernel.intermediates:
        by_param[param] = _inlined(stage(kernel, [param]), by_param)
    return replace(_inlined(stages(kernel)[-1], by_param), inputs=kernel.inputs)


def _inlined(kernel: Kernel, by_param: dict[FieldParam, Kernel]) -> Kernel:
    for param in kernel.inputs:
        if param in by_param:
            kernel = inline(kernel, param, by_param[param])
    return kernel
