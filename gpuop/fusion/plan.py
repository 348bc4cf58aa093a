"""The plan of a program: operators grouped into kernels by contracting edges of a graph that stays acyclic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpuop.fusion.graph import Op, Program
from gpuop.fusion.rules import MAX_ARGUMENTS, why_not
from gpuop.fusion.splice import splice
from gpuop.ir.nodes import Kernel


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
    """Launches in order; `wanted` are the values asked for."""

    program: Program
    steps: tuple[Step, ...]
    apart: tuple[Apart, ...]


class Groups:
    """A partition of the operators whose quotient graph is acyclic."""

    def __init__(self, program: Program) -> None:
        import networkx as nx

        self.graph: Any = nx.DiGraph()  # of group numbers; an operator's group starts with its own number
        self.members = {op.number: [op] for op in program.ops}
        self.of = {op.number: op.number for op in program.ops}
        self.maker = {value: op for op in program.ops for value in op.outputs}
        self.graph.add_nodes_from(self.members)
        for op in program.ops:
            self.graph.add_edges_from((self.maker[v].number, op.number) for v in op.inputs if v in self.maker)
        self.users: dict[int, list[Op]] = defaultdict(list)
        for op in program.ops:
            for value in dict.fromkeys(op.inputs):
                self.users[value].append(op)
        self.wanted = frozenset(program.wanted)
        self.inputs = {op.number: frozenset(op.inputs) for op in program.ops}
        self.exports = {
            op.number: frozenset(v for v in op.outputs if v in self.wanted or self.users[v]) for op in program.ops
        }
        self.span = {op.number: (op.number, op.number) for op in program.ops}

    def refuse(self, a: int, b: int) -> str | None:
        """Why groups a and b cannot become one kernel."""
        inputs, exports = self._interface(a, b)
        if len(inputs) + len(exports) > MAX_ARGUMENTS:
            return f"together they would have {len(inputs) + len(exports)} arguments, more than {MAX_ARGUMENTS}"
        for producer, consumer, value in self._edges(a, b):
            reason = why_not(producer, consumer, value)
            if reason is not None:
                return reason
        if self._detour(a, b) or self._detour(b, a):
            return "another kernel stands between them: it needs the one and feeds the other"
        return None

    def _interface(self, a: int, b: int) -> tuple[frozenset[int], frozenset[int]]:
        """The values that the fused kernel reads from memory, and those it writes."""

        def within(op: Op) -> bool:
            return self.of[op.number] in (a, b)

        inputs = frozenset(
            v for v in self.inputs[a] | self.inputs[b] if v not in self.maker or not within(self.maker[v])
        )
        exports = self.exports[a] | self.exports[b]
        return inputs, frozenset(v for v in exports if v in self.wanted or not all(map(within, self.users[v])))

    def _edges(self, a: int, b: int) -> Iterator[tuple[Op, Op, int]]:
        """Every edge between two groups, in either direction."""
        for inner, outer in ((a, b), (b, a)):
            for value in self.exports[inner] & self.inputs[outer]:
                for user in self.users[value]:
                    if self.of[user.number] == outer:
                        yield self.maker[value], user, value

    def _detour(self, a: int, b: int) -> bool:
        """Whether a path from a to b passes another group. Groups that start after b ends cannot be on it."""
        last = self.span[b][1]
        stack = [g for g in self.graph.successors(a) if g != b]
        seen = set(stack)
        while stack:
            group = stack.pop()
            for following in self.graph.successors(group):
                if following == b:
                    return True
                if following not in seen and self.span[following][0] < last:
                    seen.add(following)
                    stack.append(following)
        return False

    def merge(self, a: int, b: int) -> None:
        """Contract b into a."""
        self.inputs[a], self.exports[a] = self._interface(a, b)
        del self.inputs[b], self.exports[b]
        for op in self.members[b]:
            self.of[op.number] = a
        self.members[a] += self.members.pop(b)
        low, high = self.span.pop(b)
        self.span[a] = (min(self.span[a][0], low), max(self.span[a][1], high))
        self.graph.add_edges_from((g, a) for g in list(self.graph.predecessors(b)) if g != a)
        self.graph.add_edges_from((a, g) for g in list(self.graph.successors(b)) if g != a)
        self.graph.remove_node(b)


def plan(program: Program, optimize: bool = True) -> Plan:
    """Fuse what the rules allow, and order the kernels."""
    import networkx as nx

    groups = Groups(program)
    refused = _contract(groups, program) if optimize else []
    consumers: dict[int, set[int]] = defaultdict(set)
    for op in program.ops:
        for value in op.inputs:
            consumers[value].add(groups.of[op.number])
    order = nx.lexicographical_topological_sort(groups.graph, key=lambda g: groups.span[g][0])
    steps = []
    for group in order:
        ops = sorted(groups.members[group], key=lambda op: op.number)
        needed = {v for op in ops for v in op.outputs if v in program.wanted or consumers[v] - {group}}
        steps.append(Step(*splice(ops, needed), tuple(ops)))
    apart = tuple(a for a in refused if groups.of[a.producer.number] != groups.of[a.consumer.number])
    return Plan(program, tuple(steps), apart)


def _contract(groups: Groups, program: Program) -> list[Apart]:
    """Contract edges in topological order of their consumers; return those refused, with the reason."""
    refused: list[Apart] = []
    for op in program.ops:
        for value in dict.fromkeys(op.inputs):
            producer = groups.maker.get(value)
            if producer is None or groups.of[producer.number] == groups.of[op.number]:
                continue
            a, b = groups.of[producer.number], groups.of[op.number]
            reason = why_not(producer, op, value) or groups.refuse(a, b)
            if reason is None:
                groups.merge(a, b)
            else:
                refused.append(Apart(producer, op, value, reason))
    return refused
