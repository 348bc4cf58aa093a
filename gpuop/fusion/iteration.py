"""A program that is repeated, in the place of a kernel: what one turn makes of the states is what the next one gets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.plan import Plan, plan
from gpuop.fusion.program import Program
from gpuop.ir.kernel import HostFunction, Kernel, Launchable


@dataclass(frozen=True, eq=False)
class Part:
    """A program, and which input of the iteration each of its leaves is."""

    program: Program
    given: dict[int, int]

    def plan(self, limits: Limits) -> Plan:
        return _plan_of(self.program, limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration(Launchable):
    """Turns of a program. Its inputs are the states, as many as it has outputs, then what the program takes besides.

    Attributes:
        turn: wants the next value of each state.
        until: wants one value, which ends the iteration when it is true; looked at after every `every` turns.
        times: the most turns; None: no limit.
    """

    apart: ClassVar[str] = "repeats kernels of its own"
    turn: Part
    until: Part | None
    times: int | None
    every: int

    @property
    def acts(self) -> bool:
        return any(op.kernel.acts for part in parts(self) for op in part.program.ops)


@lru_cache(maxsize=256)
def _plan_of(program: Program, limits: Limits) -> Plan:
    return plan(program, limits=limits)


def parts(kernel: Iteration) -> tuple[Part, ...]:
    return (kernel.turn,) if kernel.until is None else (kernel.turn, kernel.until)


def kernels(plan: Plan) -> Iterator[Kernel]:
    """The kernels of a plan that run on the device, each once, those that are repeated too."""
    for launch in plan.launches:
        if isinstance(launch.kernel, Iteration):
            for part in parts(launch.kernel):
                yield from kernels(part.plan(plan.limits))
        elif isinstance(launch.kernel, Kernel):
            yield launch.kernel


def launches(plan: Plan) -> int:
    """How many kernels a plan launches, at most; of iterations that only a condition ends, a turn counts."""
    total = 0
    for launch in plan.launches:
        if isinstance(launch.kernel, Iteration):
            turns = launch.kernel.times or 1
            total += turns * launches(launch.kernel.turn.plan(plan.limits))
            if launch.kernel.until is not None:
                total += max(turns // launch.kernel.every, 1) * launches(launch.kernel.until.plan(plan.limits))
        else:
            total += not isinstance(launch.kernel, HostFunction)
    return total
