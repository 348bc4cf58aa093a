"""The plan of a program: operators grouped into kernels by contracting edges of a graph that stays acyclic."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpuop.fusion.graph import Op, Program
from gpuop.fusion.groups import Groups
from gpuop.fusion.inplace import in_place
from gpuop.fusion.rates import Rates, Steady
from gpuop.fusion.recompute import Recomputing
from gpuop.fusion.rules import why_not
from gpuop.fusion.splice import splice
from gpuop.fusion.step import Step

MOST_COMPARED = 8  # kernels that read one value and are tried with each other


@dataclass(frozen=True)
class Apart:
    """Two operators left in different kernels although one feeds the other."""

    producer: Op
    consumer: Op
    value: int
    reason: str


@dataclass(frozen=True, eq=False)
class Plan:
    """Launches in order: what does not run at every step comes first, what waits for the next one last."""

    program: Program
    steps: tuple[Step, ...]
    apart: tuple[Apart, ...]


def plan(program: Program, optimize: bool = True) -> Plan:
    """Fuse what the rules allow and the costs advise, and order the kernels."""
    import networkx as nx

    groups = Groups(program)
    steady = Steady(program, groups)
    refused = _fuse(groups, program, steady) if optimize else []
    order = nx.lexicographical_topological_sort(groups.graph, key=lambda g: groups.span[g][0])
    steps = []
    for group in order:
        ops = sorted(groups.members[group], key=lambda op: op.number)
        steps.append(Step(*splice(ops, groups.needed(group)), tuple(ops)))
    apart = tuple(a for a in refused if groups.are_apart(a.producer, a.consumer))
    return Plan(program, tuple(_timed(steps, program) if optimize else steps), apart)


def _timed(steps: list[Step], program: Program) -> list[Step]:
    """The launches of a graph, with what is known of when they run."""
    if program.cycle is None:
        return steps
    rates = Rates(program)
    timed = [replace(step, rate=rates.add(step.kernel, step.inputs, step.outputs)) for step in steps]
    return in_place(sorted(timed, key=lambda step: step.rate), program)


def _fuse(groups: Groups, program: Program, steady: Steady) -> list[Apart]:
    """Contract edges in topological order of their consumers, then join kernels that read the same; what was refused, and why."""
    refused: list[Apart] = []
    recomputing = Recomputing(program, groups, steady)
    for original in program.ops:
        op = recomputing.apply(original)
        for value in dict.fromkeys(op.inputs):
            producer = groups.maker.get(value)
            if producer is None or groups.of[producer.number] == groups.of[op.number]:
                continue
            a, b = groups.of[producer.number], groups.of[op.number]
            reason = why_not(producer, op, value) or groups.refuse(a, b) or steady.refuse(a, b)
            if reason is None:
                groups.merge(a, b)
            else:
                refused.append(Apart(producer, op, value, "; ".join(filter(None, (reason, recomputing.reason(value))))))
    groups.drop_dead()
    return refused + _join(groups, program, steady)


def _join(groups: Groups, program: Program, steady: Steady) -> list[Apart]:
    """Make one kernel of those on the same grid that read a value from memory: it is read once then."""
    refused: list[Apart] = []
    for value, kind in program.types.items():
        kernels: list[Op] = []  # one operator of each kernel that reads it
        for op in groups.using.get(value, {}).values() if kind.field_shape else ():
            for other in kernels:
                a, b = groups.of[other.number], groups.of[op.number]
                if a == b or other.kernel.domain != op.kernel.domain:
                    continue
                reason = groups.refuse(a, b) or steady.refuse(a, b)
                if reason is None:
                    groups.merge(a, b)
                else:
                    refused.append(Apart(other, op, value, f"both read it, but {reason}"))
            if groups.of[op.number] not in {groups.of[k.number] for k in kernels}:
                kernels = [*kernels[-MOST_COMPARED:], op]  # the older ones are full, if not of another kind
    return refused
