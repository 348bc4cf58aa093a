"""Launches of a plan, and their rates: what does not change from step to step is computed once."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from gpuop.base.records import dataclass
from gpuop.fusion.cost import saving, work
from gpuop.fusion.groups import Groups
from gpuop.fusion.program import Op, Program
from gpuop.ir.device_model import BALANCE
from gpuop.ir.kernel import Kernel, Launchable


class Rate(IntEnum):
    """The rate of a kernel: it runs once, when a parameter that it depends on is set, or at every step."""

    ONCE = 0
    SET = 1
    EVERY_STEP = 2


class Rates:
    """The rates of a program's values, by number: of its leaves, and of results of kernels."""

    def __init__(self, program: Program) -> None:
        cycle = program.cycle
        self.of: dict[int, Rate] = {}
        if cycle is not None:
            self.of |= dict.fromkeys(cycle.settable, Rate.SET) | dict.fromkeys(cycle.changing, Rate.EVERY_STEP)

    def add(self, kernel: Launchable, inputs: Iterable[int], outputs: Iterable[int]) -> Rate:
        """Add a kernel after its producers; return its rate."""
        rate = Rate.EVERY_STEP if kernel.acts else max((self.of.get(v, Rate.ONCE) for v in inputs), default=Rate.ONCE)
        self.of.update(dict.fromkeys(outputs, rate))
        return rate


class Invariant:
    """The operators whose values are the same at every step; none if a program is evaluated once.

    They join a kernel that runs at every step only if computing them there costs less than reading them.
    """

    def __init__(self, program: Program, groups: Groups) -> None:
        self.groups, self.types = groups, program.types
        self.numbers: set[int] = set()
        self.costs: dict[int, float] = {}
        rates = Rates(program)
        for op in program.ops if program.cycle is not None else ():
            if rates.add(op.kernel, op.inputs, op.outputs) is not Rate.EVERY_STEP:
                self.numbers.add(op.number)
        if len(self.numbers) == len(program.ops):
            self.numbers.clear()

    def differ(self, producer: Op, readers: Iterable[Op]) -> bool:
        """Return whether invariant values of the producer are read at every step."""
        return producer.number in self.numbers and any(op.number not in self.numbers for op in readers)

    def refuse(self, a: int, b: int) -> str | None:
        """The reason why groups a and b, one of them invariant, should not become one kernel; None if they may."""
        if not self.numbers or self._vary(a) == self._vary(b):
            return None
        ops = {op.number: op for group in (a, b) for op in self.groups.members[group]}
        steady = [op for n, op in ops.items() if n in self.numbers]
        values = {v for op in steady for v in op.outputs}
        read = values & {v for n, op in ops.items() if n not in self.numbers for v in op.inputs}
        if not read:
            return "one of them would be computed at every step, though its values are always the same"
        for op in steady:
            if op.number not in self.costs:
                self.costs[op.number] = work(op.fusible) * op.fusible.domain.threads
        operations = sum(self.costs[op.number] for op in steady)
        saved = sum(self.types[v].nbytes for v in read)
        if operations / BALANCE <= saved:
            return None
        return f"computing at every step what is always the same takes {operations:.3g} operations, and {saving(saved)}"

    def _vary(self, group: int) -> bool:
        return any(op.number not in self.numbers for op in self.groups.members[group])


@dataclass(frozen=True, eq=False)
class PlannedLaunch:
    """A kernel launch: the kernel, the values of its parameters, and its operators.

    Attributes:
        rate: when it must run.
        over: next values that it writes over states, with the states. If there are any, it runs when the next step begins.
    """

    kernel: Launchable
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    ops: tuple[Op, ...]
    rate: Rate = Rate.EVERY_STEP
    over: tuple[tuple[int, int], ...] = ()

    @property
    def begun(self) -> dict[int, int]:
        """The outputs that start from inputs, with these."""
        begun = zip(self.outputs, self.kernel.outputs, strict=True)
        return {v: self.inputs[self.kernel.inputs.index(o.initial)] for v, o in begun if o.initial is not None}

    @property
    def replaced(self) -> dict[int, int]:
        """The outputs of `begun` that may share the memory of the inputs."""
        if not isinstance(self.kernel, Kernel):
            return {}
        params = dict(zip(self.kernel.written, self.outputs, strict=True))
        begun = self.begun
        return {params[out]: begun[params[out]] for out in self.kernel.replaced}
