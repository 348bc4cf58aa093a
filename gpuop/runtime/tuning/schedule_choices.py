"""Measured schedules: the schedules that suit a kernel of a plan, and the fastest of them on a device."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gpuop.fusion.iteration import kernels
from gpuop.fusion.plan import Plan
from gpuop.fusion.schedule_choice import scheduled
from gpuop.ir.kernel import Kernel, Pin
from gpuop.ir.target import Target
from gpuop.ir.text import identity
from gpuop.passes.pipeline import unscheduled
from gpuop.passes.resolve_target import for_target
from gpuop.passes.schedules.methods import METHODS, PLAIN
from gpuop.runtime.base.backend import Array, Backend
from gpuop.runtime.tuning.benchmark import REFUSALS, Benchmark, Candidate
from gpuop.runtime.tuning.modes import Mode
from gpuop.runtime.tuning.store import SCHEDULE, TunedChoice

MOST = 6  # candidates of a method
BETTER = 0.97  # the predicted schedule stays unless another takes at most this share of its time
PREDICTED = ""  # stands for the predicted schedule


def key_of(kernel: Kernel) -> str:
    """Return a digest of a kernel of a plan, and of the layout of its fields."""
    places = {param: k for k, param in enumerate((*kernel.inputs, *kernel.written))}
    layouts = [(places[param], layout) for param, layout in kernel.layouts]
    return hashlib.sha256(repr((identity(replace(kernel, pin=None)), layouts)).encode()).hexdigest()


def read_pin(text: str) -> Pin | None:
    """Return the schedule of a choice; None if predictions choose, or there is no such schedule any more."""
    words = text.split()
    method = " ".join(word for word in words if "=" not in word)
    methods = {each.name: each.parameters for each in METHODS} | {PLAIN: ()}
    parameters = [word.partition("=") for word in words if "=" in word]
    if method not in methods or any(name not in methods[method] or not n.isdecimal() for name, _, n in parameters):
        return None
    return Pin(method, tuple((name, int(n)) for name, _, n in parameters))


def measured_schedules(plan: Plan, backend: Backend, mode: Mode) -> Iterator[TunedChoice]:
    """Measure each kernel of a plan, and those that it repeats, with all suitable schedules; give the fastest ones."""
    done = set()
    for kernel in kernels(plan):
        key = key_of(kernel)
        if key in done or kernel.acts or kernel.layouts or kernel.precision == "fast" or plan.limits.pin is not None:
            continue
        done.add(key)
        pins = list(pins_of(kernel, backend.target))
        if pins:
            yield from _measured(replace(kernel, pin=None), pins, key, backend, mode)


def pins_of(kernel: Kernel, target: Target) -> Iterator[Pin]:
    """Give the schedules that suit a kernel, besides the predicted one."""
    ready = unscheduled(for_target(kernel, target), replace(target, least_threads=1))
    suiting = [method for method in METHODS if not method.refuse(ready)] if ready.domain.threads else []
    usual = scheduled(for_target(kernel, target), target)
    predicted = None if usual is None else (usual[0].name, usual[1])
    for method in suiting:
        for pin in method.candidates(ready)[:MOST]:
            if (method.name, pin) != predicted:
                yield Pin(method.name, tuple(sorted(pin.items())))
    if suiting and predicted is not None:
        yield Pin(PLAIN)


def _measured(kernel: Kernel, pins: Sequence[Pin], key: str, backend: Backend, mode: Mode) -> Iterator[TunedChoice]:
    everything = tuple(range(len(kernel.inputs)))
    candidates = [Candidate(PREDICTED, kernel, everything)]
    candidates += [Candidate(str(pin), replace(kernel, pin=pin), everything) for pin in pins]
    benchmark = Benchmark(backend, mode, kernel, _Same())
    try:
        winner = benchmark.fastest(SCHEDULE, candidates)
    except REFUSALS as refused:  # no memory for it alone
        mode.tell(f"{kernel.name}: {refused}")
        return
    predicted = candidates[0]
    if winner is None or winner.seconds > BETTER * predicted.seconds:
        winner = predicted
    yield benchmark.entry(SCHEDULE, key, candidates, winner)


class _Same:
    """A check that schedules give equal bits: one that does not is out."""

    def __init__(self) -> None:
        self.first: list[Array] | None = None

    def __call__(self, candidate: Candidate, results: list[Array]) -> str:
        self.first = self.first or results
        pairs = zip(self.first, results, strict=True)
        same = all(np.array_equal(a.view(np.uint8), b.view(np.uint8)) for a, b in pairs)
        return "" if same else "skipped: other bits than predicted"
