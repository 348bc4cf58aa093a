"""Predicted times: of moving a kernel's bytes, and of what its threads do, by how long the device takes for each.

The model is the roofline of Williams, Waterman and Patterson (CACM 2009), rounded where its two sides meet, as neither hides the
other wholly. What threads do is counted in the kernel that will run, so a method needs no model of its own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from gpuop.config import config
from gpuop.fusion.iteration import Iteration, launches
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.plan import Plan, plan
from gpuop.fusion.report.workload import ACCESS, ATOMIC, BARRIER, FAR, NEIGHBOUR, OPERATION, Workload, workload
from gpuop.fusion.scheduling import scheduled
from gpuop.ir.kernel import Kernel, Launchable
from gpuop.ir.pin import Pin
from gpuop.ir.stages import stages
from gpuop.ir.target import Target
from gpuop.ir.throughput import DeviceFacts
from gpuop.passes import unscheduled
from gpuop.passes.resolve import resolve_target
from gpuop.passes.schedules import METHODS, NOTHING, PLAIN, choice, unpinned
from gpuop.passes.schedules.method import Parameters

SHARP = {"cpu": 4.0, "gpu": 1.5}  # the greater, the more the shorter of the two hides behind the longer
LINE = {"cpu": 64, "gpu": 32}  # bytes that memory gives at once
LOADS = {"cpu": 1.0, "gpu": 3.0}  # operations that an access to near memory takes as long as
CROWDED = {"cpu": 1.35, "gpu": 1.0}  # times as long as measured alone, operations take among others
ALONE = (NEIGHBOUR, ATOMIC)  # what is measured as it occurs
SCALAR = 0.5  # of an operation on a vector's lanes, what one takes that is common to them
WAITS = 32.0  # and a barrier
DEPTH = 8  # of a CPU's operations that wait for one another
MOST_UNFUSED = 32  # operators of a plan that is compared with one of as many kernels
Prediction = dict[str, Any]


def predictions(kernel: Kernel, target: Target, facts: DeviceFacts) -> list[Prediction]:
    """For each schedule that suits a kernel {method, its parameters, ms}; the chosen one first.

    A kernel with stages has for "plain" the kernels that it would be without.
    """
    return [
        {"method": name, **given, "ms": 1e3 * duration(pinned, target, facts)}
        for name, given, pinned in _alternatives(kernel, target, config.generating)
    ]


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
    pins = [replace(ready, pin=Pin(method.name)) for method in METHODS]  # who pins one may do so where grids are small
    suits = {found[0].name: found[1] for pin in pins if not unpinned(pin) and (found := choice(pin))}
    name, given = (PLAIN, NOTHING) if chosen is None else (chosen[0].name, chosen[1])
    others = {each: best for each, best in suits.items() if each != name} | ({PLAIN: NOTHING} if chosen else {})
    pinned = ((each, best, replace(kernel, pin=Pin(each, tuple(best.items())))) for each, best in others.items())
    return (name, given, kernel), *pinned


def expected(kernel: Launchable, limits: Limits, target: Target, facts: DeviceFacts) -> float:
    """The seconds that what a plan launches should take, of an iteration all its turns; 0 where that is not known."""
    if isinstance(kernel, Kernel):
        return duration(resolve_target(kernel), target, facts)
    if not isinstance(kernel, Iteration) or kernel.until is not None or kernel.times is None:
        return 0.0
    part, together = kernel.together(limits)
    turn = [expected(launch.kernel, limits, target, facts) for launch in part.plan(limits).launches]
    return sum(turn) * kernel.times / together if all(turn) else 0.0


def totals(made: Plan, target: Target, facts: DeviceFacts) -> Prediction | None:
    """What all launches of a plan should take, and its operators as kernels of their own: {ms, unfused_ms, unfused_kernel_count}.

    None where that is not known, where nothing was fused, and where so many kernels would be lowered for it that it takes long.
    """
    if not len(made.launches) < len(made.program.ops) <= MOST_UNFUSED:
        return None
    unfused = plan(made.program, False, made.limits)
    together, alone = (
        [expected(launch.kernel, made.limits, target, facts) for launch in each.launches] for each in (made, unfused)
    )
    if not (all(together) and all(alone)):
        return None
    return {"ms": 1e3 * sum(together), "unfused_ms": 1e3 * sum(alone), "unfused_kernel_count": launches(unfused)}


def duration(kernel: Kernel, target: Target, facts: DeviceFacts) -> float:
    """The seconds that a kernel is expected to take."""
    plain = kernel.intermediates and kernel.pin is not None and kernel.pin.method == PLAIN
    parts = stages(kernel) if plain else (kernel,)
    return sum(_duration(part, target, facts) for part in parts)


def _duration(kernel: Kernel, target: Target, facts: DeviceFacts) -> float:
    work, sharp = workload(kernel, target), SHARP[target.device]
    lines = (work.lanes[FAR] + work.scalars[FAR]) * work.threads * LINE[target.device]
    moving, computing = facts.moving(moved(kernel) + lines), _computing(work, target, facts)
    return float(facts.launch + (moving**sharp + computing**sharp) ** (1 / sharp))


def _computing(work: Workload, target: Target, facts: DeviceFacts) -> float:
    """Seconds of what threads do; fewer than a device has lanes take as long as those."""
    known = {FAR: 0.0, ACCESS: LOADS[target.device], BARRIER: WAITS}

    def seconds(kind: str, count: float) -> float:
        if kind in ALONE:
            return count * facts.seconds(kind)
        one = known[kind] * facts.seconds(OPERATION) if kind in known else facts.seconds(kind)
        return count * CROWDED[target.device] * one

    lanes = sum(seconds(kind, count) for kind, count in work.lanes.items())
    if target.device == "gpu":
        once, least = 1.0, target.least_threads
    elif work.vectors:
        once, least = SCALAR * target.vector_length, 1
    else:
        once, least = SCALAR, DEPTH * target.simd_width  # a compiler makes vectors of threads
    scalars = sum(seconds(kind, count) * (once if kind != NEIGHBOUR else 1) for kind, count in work.scalars.items())
    return (lanes + scalars) * max(work.threads, least)


def moved(kernel: Kernel) -> int:
    """The bytes of a kernel's inputs and outputs."""
    return sum(param.type.nbytes for param in (*kernel.inputs, *kernel.written))
