"""Iterations: a repeated program in the place of a kernel. The results of one iteration are the states of the next.

A reversal goes from the last iteration back to the first, as the gradient of an iteration does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar

from gpuop.base.records import dataclass
from gpuop.fusion.binomial_checkpoints import recomputed
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.launch import PlannedLaunch
from gpuop.fusion.plan import Plan, plan
from gpuop.fusion.program import Program
from gpuop.ir.device_model import CACHED_STATES
from gpuop.ir.kernel import Kernel, Launchable


@dataclass(frozen=True, eq=False)
class Part:
    """A program, and the position among the inputs of the iteration for each of its leaves."""

    program: Program
    positions: dict[int, int]

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for parts that do the same with equal inputs."""
        return self.program.key, tuple(sorted(self.positions.items()))

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

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for iterations that do the same with equal inputs."""
        return (*(part.key for part in parts(self)), self.times, self.every)

    def runs(self, limits: Limits) -> list[tuple[Part, int]]:
        """The parts, each with how often it runs at most; without `times` as for one iteration."""
        times = self.times or 1
        until = [] if self.until is None else [(self.until, max(times // self.every, 1))]
        return self.advances(times, limits) + until

    def advances(self, times: int, limits: Limits) -> list[tuple[Part, int]]:
        """The parts that run so many iterations."""
        part, count = self.together(limits)
        return [(self.turn, times % count), (part, times // count)]

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


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Reversal(Launchable):
    """An iteration, and what goes back from its last state to its first.

    Its inputs are those of the iteration, then other inputs of the way back, then what goes back, as much as it has outputs.

    Attributes:
        forward: the iteration, whose states are computed again, from those that are kept.
        back: the program that goes back by one iteration: from the states before it and what goes back to those after it.
        checkpoints: the most states in memory at a time; None: as many as suit the device's memory.
    """

    unfusible: ClassVar[str] = "repeats kernels of its own"
    forward: Iteration
    back: Part
    checkpoints: int | None

    @property
    def acts(self) -> bool:
        return self.forward.acts or any(op.kernel.acts for op in self.back.program.ops)

    def again(self, begun: bool) -> int:
        """The number of iterations that are computed again; without `times`, or `checkpoints`, with all states kept.

        Args:
            begun: whether the iteration itself keeps the first states.
        """
        times = self.forward.times or 1
        return recomputed(times, self.checkpoints or times) - (times - 1) * begun

    def runs(self, limits: Limits, begun: bool = False) -> list[tuple[Part, int]]:
        """As of an iteration."""
        times = self.forward.times or 1
        counting = self.forward.runs(limits) if self.forward.until is not None else []
        return [*counting, *self.forward.advances(self.again(begun), limits), (self.back, times)]


Repeating = (Iteration, Reversal)


def parts(kernel: Iteration) -> tuple[Part, ...]:
    return (kernel.turn,) if kernel.until is None else (kernel.turn, kernel.until)


def swept(plan: Plan) -> dict[int, int]:
    """The iterations of a known number of turns that are gone back through, on the same values, each with that launch."""
    result: dict[int, int] = {}
    for number, step in enumerate(plan.launches):
        forward = step.kernel.forward if isinstance(step.kernel, Reversal) else None
        if forward is None or forward.until is not None:
            continue
        for before, other in enumerate(plan.launches[:number]):
            same = isinstance(other.kernel, Iteration) and other.kernel.key == forward.key
            if same and before not in result and other.inputs == step.inputs[: len(other.inputs)]:
                result[before] = number
                break
    return result


def repetitions(plan: Plan, launch: PlannedLaunch) -> list[tuple[Part, int]]:
    """The parts that a launch repeats, each with how often it runs at most."""
    if isinstance(launch.kernel, Reversal):
        return launch.kernel.runs(plan.limits, is_begun(plan, launch))
    return launch.kernel.runs(plan.limits) if isinstance(launch.kernel, Iteration) else []


def is_begun(plan: Plan, launch: PlannedLaunch) -> bool:
    """Return whether the iteration that a launch goes back through keeps the first states."""
    return any(plan.launches[number] is launch for number in swept(plan).values())


def kernels(plan: Plan) -> Iterator[Kernel]:
    """The kernels of a plan that run on the device, each once, those that are repeated too."""
    for launch in plan.launches:
        if isinstance(launch.kernel, Repeating):
            for part in dict.fromkeys(part for part, _ in launch.kernel.runs(plan.limits)):
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
        if isinstance(launch.kernel, Repeating):
            for part, runs in repetitions(plan, launch):
                total += runs * launches(part.plan(plan.limits), where) if runs else 0
        else:
            total += launch.kernel.where == where
    return total
