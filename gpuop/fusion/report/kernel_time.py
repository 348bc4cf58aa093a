"""The predicted time of a kernel, from its bytes, the work of its threads and the speed of the device.

The model is the roofline of Williams, Waterman and Patterson (CACM 2009), rounded where its two sides meet, as neither hides the
other wholly. What threads do is counted in the kernel that will run, so a method needs no model of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuop.fusion.report.workload import (
    ACCESS,
    ATOMIC,
    BARRIER,
    FAR,
    NEIGHBOUR,
    OPERATION,
    VECTOR,
    Counts,
    Workload,
    recorded_work,
    workload,
)
from gpuop.ir.analysis.size import size
from gpuop.ir.analysis.stages import stages
from gpuop.ir.device_model import BARRIER_WAIT, DEPENDENT_CHAIN, MODELS, SHARED_BY_LANES, DeviceFacts
from gpuop.ir.kernel import DeviceFunction, Kernel
from gpuop.ir.target import Target
from gpuop.passes.schedules.methods import PLAIN

ALONE = (NEIGHBOUR, ATOMIC)  # kinds whose measured times need no correction for other operations


def duration(kernel: Kernel, target: Target, facts: DeviceFacts) -> float:
    """The seconds that a kernel is expected to take."""
    plain = kernel.intermediates and kernel.pin is not None and kernel.pin.method == PLAIN
    parts = stages(kernel) if plain else (kernel,)
    return sum(_duration(part, target, facts) for part in parts)


def of_library(kernel: DeviceFunction, target: Target, facts: DeviceFacts) -> float:
    """The seconds that a library is expected to take; 0 where that is not known."""
    if kernel.cost is None:
        return 0.0
    model = MODELS[target.device]
    kinds = [param.type for param in (*kernel.inputs, *kernel.written)]
    double = 2 if any(kind.dtype == "float64" for kind in kinds) else 1
    computing = model.library * double * kernel.cost.operations * facts.seconds(OPERATION)
    moving = facts.moving(sum(kind.nbytes for kind in kinds) * kernel.cost.passes)
    return _rounded(facts, moving, computing, model.sharpness)


def _rounded(facts: DeviceFacts, moving: float, computing: float, sharp: float) -> float:
    return float(facts.launch + (moving**sharp + computing**sharp) ** (1 / sharp))


def least_recorded(kernel: Kernel, target: Target, facts: DeviceFacts) -> float:
    """A lower bound of the seconds of one kernel, or several, that compute what a recorded kernel does."""
    return _rounded(facts, facts.moving(moved(kernel)), _once(kernel, target, facts), MODELS[target.device].sharpness)


def least_apart(
    clusters: Sequence[Sequence[Kernel]], nbytes: int, enough: float, target: Target, facts: DeviceFacts
) -> float:
    """A lower bound of the seconds of several kernels that move so many bytes in all; one that is `enough` ends the search.

    Moving and computing are two sides of a triangle, so their sums for all kernels bound the sum of the third sides.

    Args:
        clusters: a kernel, and those in whose place it might be: these are lowered, and what they compute alike counts once.
    """
    seconds = [_once(together, target, facts) for together, *_ in clusters]
    for number, cluster in sorted(enumerate(clusters), key=lambda at: size(at[1][0].body)):
        if (bound := _moving_too(nbytes, sum(seconds), target, facts)) >= enough:
            return bound
        seconds[number] = max(seconds[number], _computing_alike(*cluster, target=target, facts=facts))
    return _moving_too(nbytes, sum(seconds), target, facts)


def _moving_too(nbytes: int, computing: float, target: Target, facts: DeviceFacts) -> float:
    """The seconds of two launches that move and compute so much in all."""
    return facts.launch + _rounded(facts, facts.moving(nbytes), computing, MODELS[target.device].sharpness)


def _computing_alike(together: Kernel, *parts: Kernel, target: Target, facts: DeviceFacts) -> float:
    """The least seconds of what kernels compute that might be one, without lowering that one."""
    shared = {
        part: replace(workload(part, target), scalars=Counts(float)) for part in parts
    }  # threads of one share them
    seconds = sum(computing(work, target, facts) for work in shared.values())
    if len(parts) == 1:
        return seconds
    return seconds - max(0.0, sum(_once(part, target, facts) for part in parts) - _once(together, target, facts))


def _once(kernel: Kernel, target: Target, facts: DeviceFacts) -> float:
    """The seconds of what the points of a recorded kernel need, computed once."""
    return computing(recorded_work(kernel, target), target, facts)


def _duration(kernel: Kernel, target: Target, facts: DeviceFacts) -> float:
    work, model = workload(kernel, target), MODELS[target.device]
    lines = (work.lanes[FAR] + work.scalars[FAR]) * work.threads * model.line
    moving = facts.moving(moved(kernel) + lines)
    return _rounded(facts, moving, computing(work, target, facts), model.sharpness)


def computing(work: Workload, target: Target, facts: DeviceFacts) -> float:
    """Seconds of what threads do; fewer than a device has lanes take as long as those."""
    model = MODELS[target.device]
    operation = facts.seconds(VECTOR if work.vectors and target.device == "cpu" else OPERATION)
    costs = {OPERATION: 1.0, FAR: 0.0, ACCESS: model.access, BARRIER: BARRIER_WAIT}

    def seconds(kind: str, count: float) -> float:
        if kind in ALONE:
            return count * facts.seconds(kind)
        one = costs[kind] * operation if kind in costs else facts.seconds(kind)
        return count * model.crowding * one

    least = near = target.least_threads
    if target.device == "gpu":
        once = 1.0
    elif work.vectors:
        once, least, near = SHARED_BY_LANES * target.vector_length, 1, 1
    else:  # a compiler makes vectors of threads, which take as long for each of computed places
        once, least, near = SHARED_BY_LANES, DEPENDENT_CHAIN * target.simd_width, DEPENDENT_CHAIN

    def duration_of(counts: Counts, share: float) -> float:
        times = {kind: near if kind in ALONE else least for kind in counts}
        shares = {kind: 1.0 if kind == NEIGHBOUR else share for kind in counts}
        return sum(seconds(kind, n) * shares[kind] * max(work.threads, times[kind]) for kind, n in counts.items())

    return duration_of(work.lanes, 1.0) + duration_of(work.scalars, once)


def moved(kernel: Kernel) -> int:
    """The bytes of a kernel's inputs and outputs."""
    return sum(param.type.nbytes for param in (*kernel.inputs, *kernel.written))
