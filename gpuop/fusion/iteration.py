"""Iteration: a repeated program in the place of a kernel. The results of one iteration are the states of the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar

from gpuop.base.records import dataclass
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.plan import Plan, plan
from gpuop.fusion.program import Program
from gpuop.ir.device_model import CACHED_STATES
from gpuop.ir.kernel import Kernel, Launchable


@dataclass(frozen=True, eq=False)
class Part:
    """A program, and the position among the inputs of the iteration for each of its leaves."""

    program: Program
    positions: dict[int, int]

    def plan(self, limits: Limits) -> Plan:
        return _plan_of(self.program, limits)

    def twice(self, states: int) -> Part:
        """Two iterations as one; the first `states` inputs are the states."""
        return _twice(self, states)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Iteration(Launchable):
    """A repeated program. Its inputs are the states, as many as it has outputs, then other inputs of the program.

    Attributes:
        turn: the program of one iteration, whose results are the next values of the states.
        until: a program of one value, which ends the iteration when it is true; it runs after every `every` iterations.
        times: the most iterations; None: no limit.
    """

    unfusible: ClassVar[str] = "repeats kernels of its own"
    turn: Part
    until: Part | None
    times: int | None
    every: int

    @property
    def acts(self) -> bool:
        return any(op.kernel.acts for part in parts(self) for op in part.program.ops)

    def together(self, limits: Limits) -> tuple[Part, int]:
        """The part to launch, and its number of iterations: two if they take no more kernels than one.

        The states between the turns are intermediates then, which a schedule keeps near.
        """
        one = self.turn, 1
        if not limits.has_stages or self.times == 1 or self.acts or (self.until is not None and self.every % 2):
            return one
        if limits.pin is None and limits.target is not None and limits.target.device == "cpu":
            small = sum(p.type.nbytes for p in self.written) < CACHED_STATES
            if small or all(p.type.storage.bits <= 8 for p in self.written):
                return one  # CPUs compute for longer than they move states that fit into caches, or are bytes
        single = self.turn.plan(limits)
        if not all(isinstance(launch.kernel, Kernel) for launch in single.launches):
            return one
        both = self.turn.twice(len(self.outputs))
        return (both, 2) if len(both.plan(limits).launches) <= len(single.launches) else one


@lru_cache(maxsize=256)
def _plan_of(program: Program, limits: Limits) -> Plan:
    return plan(program, limits=limits)


@lru_cache(maxsize=256)
def _twice(part: Part, states: int) -> Part:
    once = part.program
    count, first = len(once.ops), max(once.types) + 1
    values = {v: once.results[position] for v, position in part.positions.items() if position < states}
    values |= {v: v for v, position in part.positions.items() if position >= states}
    later = {v: values.get(v, v + first) for v in once.types}
    ops = [
        replace(op, number=op.number + count, inputs=_moved(op.inputs, later), outputs=_moved(op.outputs, later))
        for op in once.ops
    ]
    types = once.types | {later[v]: kind for v, kind in once.types.items()}
    both = replace(
        once, ops=(*once.ops, *ops), results=_moved(once.results, later), types=types, key=(*once.key, "twice")
    )
    return Part(both, part.positions)


def _moved(values: tuple[int, ...], later: dict[int, int]) -> tuple[int, ...]:
    return tuple(later[v] for v in values)


def parts(kernel: Iteration) -> tuple[Part, ...]:
    return (kernel.turn,) if kernel.until is None else (kernel.turn, kernel.until)


def kernels(plan: Plan) -> Iterator[Kernel]:
    """The kernels of a plan that run on the device, each once, those that are repeated too."""
    for launch in plan.launches:
        if isinstance(launch.kernel, Iteration):
            for part in dict.fromkeys((*parts(launch.kernel), launch.kernel.together(plan.limits)[0])):
                yield from kernels(part.plan(plan.limits))
        elif isinstance(launch.kernel, Kernel):
            yield launch.kernel


def launches(plan: Plan, where: str = "") -> int:
    """The most kernels that a plan launches, or functions that it calls; without `times` an iteration counts once.

    Args:
        where: as of Launchable.
    """
    total = 0
    for launch in plan.launches:
        if isinstance(launch.kernel, Iteration):
            turns = launch.kernel.times or 1
            part, count = launch.kernel.together(plan.limits)
            total += turns // count * launches(part.plan(plan.limits), where)
            total += turns % count * launches(launch.kernel.turn.plan(plan.limits), where)
            if launch.kernel.until is not None:
                total += max(turns // launch.kernel.every, 1) * launches(launch.kernel.until.plan(plan.limits), where)
        else:
            total += launch.kernel.where == where
    return total
