"""The plan for a target, without branches and launches for other targets."""

from __future__ import annotations

from dataclasses import replace

from gpuop.fusion.launch import PlannedLaunch
from gpuop.fusion.plan import Plan
from gpuop.ir.kernel import Kernel
from gpuop.ir.target import Target
from gpuop.passes.resolve_target import for_target


def plan_for(plan: Plan, target: Target) -> Plan:
    """The plan with one branch of each `_codegenIf`, without inputs and kernels that are then unused.

    Raises:
        SemanticError: a table has no entry for the target.
    """
    launches = [_for_target(launch, target) for launch in plan.launches]
    if all(new is old for new, old in zip(launches, plan.launches, strict=True)):
        return plan
    needed, kept = set(plan.program.wanted), []
    for launch in reversed(launches):
        if not needed.isdisjoint(launch.outputs):
            kept.append(launch)
            needed.update(launch.inputs)
    return replace(plan, launches=tuple(reversed(kept)))


def _for_target(launch: PlannedLaunch, target: Target) -> PlannedLaunch:
    kernel = for_target(launch.kernel, target) if isinstance(launch.kernel, Kernel) else launch.kernel
    if kernel is launch.kernel:
        return launch
    inputs = (v for param, v in zip(launch.kernel.inputs, launch.inputs, strict=True) if param in kernel.inputs)
    return replace(launch, kernel=kernel, inputs=tuple(inputs))
