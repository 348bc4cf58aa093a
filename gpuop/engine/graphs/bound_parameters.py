"""The parameters of a running graph: the launches that take them, and those that run again when one is set."""

from __future__ import annotations

from collections.abc import Collection

from gpuop.dsl.fields.sources import Adjustable
from gpuop.fusion.launch_frequency import Rate
from gpuop.fusion.plan import Plan
from gpuop.fusion.program import Program
from gpuop.ir.values import Leaf


class BoundParameters(dict[int, Adjustable]):
    """The parameters, by the numbers of their values. Launches are numbered as in the plan.

    Attributes:
        by_value: parameters that are arguments of launches; the others have buffers.
        versions: the version of each parameter that the launches have; -1: none yet.
        positions: the launches that take each parameter, with its position among their arguments.
        recompute: for each parameter the launches that compute next values of states from it; they run again before the
            next step when it is set. None for one that no state depends on.
        occasional: for each parameter the launches that depend on it and do not run at every step.
    """

    def __init__(self, program: Program, plan: Plan, next_values: Collection[int]) -> None:
        leaves = {v: node for v, node in program.leaves.items() if isinstance(node, Leaf)}
        super().__init__({v: n.source for v, n in leaves.items() if isinstance(n.source, Adjustable)})
        self.by_value = {v for v in self if leaves[v].by_value}
        self.versions = dict.fromkeys(self, -1)
        self.positions = {v: _positions(plan, v) for v in self}
        self.recompute = {v: _recompute(program, plan, next_values, v) for v in self}
        self.occasional = {v: _occasional(plan, v) for v in self}

    def changed(self) -> list[int]:
        """The parameters that were set after the launches took them."""
        return [v for v, source in self.items() if source.state[0] != self.versions[v]]


def _positions(plan: Plan, parameter: int) -> list[tuple[int, int]]:
    launches = enumerate(plan.launches)
    return [(n, position) for n, launch in launches for position, v in enumerate(launch.inputs) if v == parameter]


def _occasional(plan: Plan, parameter: int) -> list[int]:
    reached, found = {parameter}, []
    for number, launch in enumerate(plan.launches):
        if launch.rate is not Rate.EVERY_STEP and reached.intersection(launch.inputs):
            reached.update(launch.outputs)
            found.append(number)
    return found


def _recompute(program: Program, plan: Plan, next_values: Collection[int], parameter: int) -> list[int]:
    reached = {parameter}
    for op in program.ops:
        if reached.intersection(op.inputs):
            reached.update(op.outputs)
    needed, found = reached.intersection(next_values), []
    for number, launch in reversed(list(enumerate(plan.launches))):
        if launch.rate is Rate.EVERY_STEP and needed.intersection(launch.outputs):
            needed.update(launch.inputs)
            if not launch.over:  # one that writes over states runs then in any case
                found.append(number)
    return found
