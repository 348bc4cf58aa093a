"""A plan as it is for a target: what only other targets need of it is left out."""

from __future__ import annotations

from dataclasses import replace

from gpuop.fusion.plan import Plan
from gpuop.fusion.planned_launch import PlannedLaunch
from gpuop.ir.kernel import Kernel
from gpuop.ir.target import Target
from gpuop.passes.resolve import for_target


def plan_for(what: Plan, target: Target) -> Plan:
    """The plan with one branch of each `_codegenIf`, without inputs and kernels that are then in vain.

    Raises:
        SemanticError: a table has no entry for the target.
    """
    steps = [_step(step, target) for step in what.launches]
    if all(new is old for new, old in zip(steps, what.launches, strict=True)):
        return what
    needed, kept = set(what.program.wanted), []
    for step in reversed(steps):
        if not needed.isdisjoint(step.outputs):
            kept.append(step)
            needed.update(step.inputs)
    return replace(what, launches=tuple(reversed(kept)))


def _step(step: PlannedLaunch, target: Target) -> PlannedLaunch:
    kernel = for_target(step.kernel, target) if isinstance(step.kernel, Kernel) else step.kernel
    if kernel is step.kernel:
        return step
    inputs = (v for param, v in zip(step.kernel.inputs, step.inputs, strict=True) if param in kernel.inputs)
    return replace(step, kernel=kernel, inputs=tuple(inputs))
