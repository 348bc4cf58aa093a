"""Predicted times: the longer of moving a kernel's bytes and of doing its operations, by what the device does in a second.

The model is the roofline of Williams, Waterman and Patterson (CACM 2009), with a second roof for threads that have one point.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpuop.fusion.cost import arithmetic, work
from gpuop.fusion.measure import before, points_of_thread
from gpuop.fusion.scheduling import scheduled
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Atomic
from gpuop.ir.pin import Pin
from gpuop.ir.stages import stages
from gpuop.ir.target import Target
from gpuop.ir.throughput import DeviceFacts
from gpuop.ir.visit import walk
from gpuop.passes.schedules import METHODS, PLAIN, schedule

CONTENDED = 64.0  # operations of one thread that an atomic operation takes as long as, where many wait for one place
Prediction = dict[str, Any]


def predictions(kernel: Kernel, target: Target, facts: DeviceFacts) -> list[Prediction]:
    """For each schedule that suits a kernel {method, its parameters, ms}; the chosen one first.

    A kernel with stages has for "plain" the kernels that it would be without.
    """
    chosen = scheduled(kernel, target)
    ready = before(replace(kernel, target=target), schedule)
    suits = {m.name: dict(m.candidates(ready)[0]) for m in METHODS if kernel.domain.threads and not m.refuse(ready)}
    first = {PLAIN: {}} if chosen is None else {chosen[0].name: dict(chosen[1])}
    entries = (
        first | {name: given for name, given in suits.items() if name not in first} | ({PLAIN: {}} if chosen else {})
    )
    return [_entry(kernel, name, given, target, facts) for name, given in entries.items()]


def _entry(kernel: Kernel, method: str, given: dict[str, int], target: Target, facts: DeviceFacts) -> Prediction:
    seconds = _plain(kernel, target, facts) if method == PLAIN else _scheduled(kernel, facts)
    return {"method": method, **given, "ms": 1e3 * seconds}


def _scheduled(kernel: Kernel, facts: DeviceFacts) -> float:
    operations = sum(map(arithmetic, stages(kernel))) * kernel.domain.threads
    return facts.launch + max(moved(kernel) / facts.bandwidth, operations / facts.operations)


def _plain(kernel: Kernel, target: Target, facts: DeviceFacts) -> float:
    """Each stage is a kernel, which reads and writes memory."""
    total = 0.0
    for part in stages(kernel):
        single = points_of_thread(replace(part, pin=Pin(PLAIN)), target).count == 1
        rate = facts.single_operations if single else facts.operations
        waits = CONTENDED * sum(isinstance(stmt, Atomic) for stmt in walk(part.body))
        operations = work(part) / rate + waits / facts.single_operations
        total += facts.launch + max(moved(part) / facts.bandwidth, operations * part.domain.threads)
    return total


def moved(kernel: Kernel) -> int:
    """The bytes of a kernel's inputs and outputs."""
    return sum(param.type.nbytes for param in (*kernel.inputs, *kernel.written))
