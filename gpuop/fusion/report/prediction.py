"""Predicted times of plans: of each schedule that suits a kernel, of all launches, and of a kernel for each operator."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from gpuop.base.config import config
from gpuop.fusion.iteration import Iteration, Repeating, Reversal, launches
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.plan import Plan, plan
from gpuop.fusion.report.kernel_time import duration, of_library
from gpuop.fusion.schedule_choice import scheduled
from gpuop.ir.device_model import DeviceFacts
from gpuop.ir.kernel import DeviceFunction, Kernel, Launchable, Pin
from gpuop.ir.target import Target
from gpuop.passes.pipeline import unscheduled
from gpuop.passes.resolve_target import resolve_target
from gpuop.passes.schedules.common.method import Parameters
from gpuop.passes.schedules.methods import METHODS, NOTHING, PLAIN, choice, unpinned

MOST_UNFUSED = 32  # operators of a plan that is compared with its unfused form
Prediction = dict[str, Any]


def predictions(kernel: Kernel, target: Target, facts: DeviceFacts) -> list[Prediction]:
    """For each schedule that suits a kernel {method, its parameters, ms}; the chosen one first.

    A kernel with stages has for "plain" the kernels that it would be without.
    """
    return [
        {"method": name, **parameters, "ms": 1e3 * duration(pinned, target, facts)}
        for name, parameters, pinned in _alternatives(kernel, target, config.generating)
    ]


def launch_predictions(kernel: Launchable, target: Target, facts: DeviceFacts) -> list[Prediction] | None:
    """The predictions of a launch, a single one for a library; None if there is none."""
    if isinstance(kernel, DeviceFunction) and kernel.cost is not None:
        return [{"method": "library", "ms": 1e3 * of_library(kernel, target, facts)}]
    return predictions(resolve_target(kernel), target, facts) if isinstance(kernel, Kernel) else None


@lru_cache(maxsize=128)
def _alternatives(
    kernel: Kernel, target: Target, settings: tuple[object, ...]
) -> tuple[tuple[str, Parameters, Kernel], ...]:
    """The schedules that suit a kernel, if pinned, each with the kernel that it is pinned of; the chosen one first.

    Where GPUOP_SCHEDULE is plain, there are no others.
    """
    if config.schedule == PLAIN:
        return ((PLAIN, NOTHING, kernel),)
    chosen = scheduled(kernel, target)
    ready = unscheduled(kernel, target)
    pins = [replace(ready, pin=Pin(method.name)) for method in METHODS]  # users may pin a schedule even for small grids
    suits = {match[0].name: match[1] for pin in pins if not unpinned(pin) and (match := choice(pin))}
    name, parameters = (PLAIN, NOTHING) if chosen is None else (chosen[0].name, chosen[1])
    others = {each: best for each, best in suits.items() if each != name} | ({PLAIN: NOTHING} if chosen else {})
    pinned = ((each, best, replace(kernel, pin=Pin(each, tuple(best.items())))) for each, best in others.items())
    return (name, parameters, kernel), *pinned


def expected(kernel: Launchable, limits: Limits, target: Target, facts: DeviceFacts) -> float:
    """The predicted seconds of a launch, of all iterations if it is an iteration; 0 if unknown."""
    if isinstance(kernel, Kernel):
        return duration(resolve_target(kernel), target, facts)
    if isinstance(kernel, DeviceFunction):
        return of_library(kernel, target, facts)
    forward = kernel.forward if isinstance(kernel, Reversal) else kernel
    if not isinstance(kernel, Repeating) or not isinstance(forward, Iteration):
        return 0.0
    if forward.until is not None or forward.times is None:
        return 0.0
    total = 0.0
    for part, runs in kernel.runs(limits):
        if runs:
            each = [expected(launch.kernel, limits, target, facts) for launch in part.plan(limits).launches]
            if not all(each):
                return 0.0
            total += runs * sum(each)
    return total


def totals(fused: Plan, target: Target, facts: DeviceFacts) -> Prediction | None:
    """The predicted times of all launches, and of a kernel for each operator: {ms, unfused_ms, unfused_kernel_count}.

    None where that is not known, where nothing was fused, and where so many kernels would be lowered for it that it takes long.
    """
    if not len(fused.launches) < len(fused.program.ops) <= MOST_UNFUSED:
        return None
    unfused = plan(fused.program, False, fused.limits)
    together, alone = (
        [expected(launch.kernel, fused.limits, target, facts) for launch in each.launches] for each in (fused, unfused)
    )
    if not (all(together) and all(alone)):
        return None
    return {"ms": 1e3 * sum(together), "unfused_ms": 1e3 * sum(alone), "unfused_kernel_count": launches(unfused)}
