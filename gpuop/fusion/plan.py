"""The plan of a program: operators grouped into kernels by contracting edges of a graph that stays acyclic."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpuop.fusion.cost import LAUNCH
from gpuop.fusion.graph import Op, Program
from gpuop.fusion.groups import Groups
from gpuop.fusion.limits import LEAST, Limits
from gpuop.fusion.recompute import Recomputing
from gpuop.fusion.rules import MOST_COMPARED, why_not
from gpuop.fusion.split import Splitting
from gpuop.ir.kernel import Kernel


@dataclass(frozen=True, eq=False)
class Step:
    """A kernel launch: the values its parameters stand for, and the operators it was made of."""

    kernel: Kernel
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    ops: tuple[Op, ...]


@dataclass(frozen=True)
class Apart:
    """Two operators left in different kernels although one feeds the other."""

    producer: Op
    consumer: Op
    value: int
    reason: str


@dataclass(frozen=True, eq=False)
class Plan:
    """Launches in order, none of them beyond the limits if it could be less."""

    program: Program
    steps: tuple[Step, ...]
    apart: tuple[Apart, ...]
    limits: Limits


def plan(program: Program, optimize: bool = True, limits: Limits = LEAST) -> Plan:
    """Fuse what the rules allow and the costs advise, split what a device has no room for, and order the kernels."""
    import networkx as nx

    groups = Groups(program, limits)
    refused = _fuse(groups, program) if optimize else []
    order = nx.lexicographical_topological_sort(groups.graph, key=lambda g: groups.span[g][0])
    splitting = Splitting(groups, program.types)
    pieces = [piece for group in order for piece in splitting.pieces(groups.members[group])]
    steps = tuple(Step(piece.kernel, piece.inputs, piece.outputs, piece.ops) for piece in pieces)
    apart = [a for a in refused if groups.are_apart(a.producer, a.consumer)]
    return Plan(program, steps, (*apart, *(Apart(*each) for each in splitting.apart)), limits)


def _fuse(groups: Groups, program: Program) -> list[Apart]:
    """Contract edges in topological order of their consumers, then join kernels that read the same; what was refused, and why."""
    refused: list[Apart] = []
    recomputing = Recomputing(program, groups)
    for original in program.ops:
        op = recomputing.apply(original)
        for value in dict.fromkeys(op.inputs):
            producer = groups.maker.get(value)
            if producer is None or groups.of[producer.number] == groups.of[op.number]:
                continue
            a, b = groups.of[producer.number], groups.of[op.number]
            reason = why_not(producer, op, value) or groups.refuse(a, b)
            if reason is None:
                groups.merge(a, b)
            else:
                refused.append(Apart(producer, op, value, "; ".join(filter(None, (reason, recomputing.reason(value))))))
    groups.drop_dead()
    refused += _join(groups, program)
    _join_small(groups, program)
    return refused


def _join(groups: Groups, program: Program) -> list[Apart]:
    """Make one kernel of those on the same grid that read a value from memory: it is read once then."""
    refused: list[Apart] = []
    for value, kind in program.types.items():
        if kind.field_shape:
            for a, b, reason in _joined(groups, groups.using.get(value, {}).values()):
                refused.append(Apart(a, b, value, f"both read it, but {reason}"))
    return refused


def _join_small(groups: Groups, program: Program) -> None:
    """Make one kernel of those on the same grid that read little, of what one kernel makes: a launch less."""
    done: set[int] = set()
    for op in program.ops:
        group = groups.of[op.number]
        if group in groups.members and group not in done:
            done.add(group)
            small = (v for each in groups.members[group] for v in each.outputs if program.types[v].nbytes <= LAUNCH)
            readers = {n: each for v in small for n, each in groups.using.get(v, {}).items() if groups.of[n] != group}
            _joined(groups, (readers[n] for n in sorted(readers)))


def _joined(groups: Groups, readers: Iterable[Op]) -> list[tuple[Op, Op, str]]:
    """Join the kernels of operators on the same grid; who could not be, and why."""
    refused = []
    kernels: list[Op] = []  # one operator of each
    for op in readers:
        for other in kernels:
            a, b = groups.of[other.number], groups.of[op.number]
            if a == b or other.kernel.domain != op.kernel.domain:
                continue
            reason = groups.refuse(a, b)
            if reason is None:
                groups.merge(a, b)
            else:
                refused.append((other, op, reason))
        if groups.of[op.number] not in {groups.of[k.number] for k in kernels}:
            kernels = [*kernels[-MOST_COMPARED:], op]  # the older ones are full, if not of another kind
    return refused
