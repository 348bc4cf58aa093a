"""The plan of a program: operators grouped into kernels by contracting edges of a graph that stays acyclic."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpuop.fusion.graph import Op, Program
from gpuop.fusion.rules import MAX_ARGUMENTS, conflict, why_not
from gpuop.fusion.splice import splice
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
        self.readers = {op.number: {value: [op] for value in op.inputs} for op in program.ops}  # of values, by group
        self.users = Counter(value for op in program.ops for value in set(op.inputs))
        self.wanted = frozenset(program.wanted)
        self.inputs = {op.number: frozenset(op.inputs) for op in program.ops}
        self.exports = {
            op.number: frozenset(v for v in op.outputs if v in self.wanted or self.users[v]) for op in program.ops
        }
        self.shaped = {op.number: [op] if op.kernel.group else [] for op in program.ops}  # that care about work-groups
        self.span = {op.number: (op.number, op.number) for op in program.ops}

    def refuse(self, a: int, b: int) -> str | None:
        """Why groups a and b cannot become one kernel."""
        inputs, exports = self._interface(a, b)
        if len(inputs) + len(exports) > MAX_ARGUMENTS:
            return f"together they would have {len(inputs) + len(exports)} arguments, more than {MAX_ARGUMENTS}"
        reason = conflict([op.kernel for group in (a, b) for op in self.shaped[group]])
        if reason is not None:
            return reason
        for producer, consumer, value in self._edges(a, b):
            reason = why_not(producer, consumer, value)
            if reason is not None:
                return reason
        if self._detour(a, b) or self._detour(b, a):
            return "another kernel stands between them: it needs the one and feeds the other"
        return None

    def _interface(self, a: int, b: int) -> tuple[frozenset[int], frozenset[int]]:
        """The values that the fused kernel reads from memory, and those it writes."""

        def outside(value: int) -> bool:
            return sum(len(self.readers[group].get(value, ())) for group in (a, b)) < self.users[value]

        exports = self.exports[a] | self.exports[b]
        inputs = (self.inputs[a] | self.inputs[b]) - exports
        return inputs, frozenset(v for v in exports if v in self.wanted or outside(v))

    def _edges(self, a: int, b: int) -> Iterator[tuple[Op, Op, int]]:
        """Every edge between two groups, in either direction."""
        for inner, outer in ((a, b), (b, a)):
            for value in self.exports[inner] & self.inputs[outer]:
                for user in self.readers[outer][value]:
                    yield self.maker[value], user, value

    def _detour(self, a: int, b: int) -> bool:
        """Whether a path from a to b passes another group. Groups that end before a or start after b cannot be on it."""
        first, last = self.span[a][0], self.span[b][1]
        forward = len(self.graph.succ[a]) <= len(self.graph.pred[b])  # from the end that has fewer neighbours
        start, goal, near = (a, b, self.graph.succ) if forward else (b, a, self.graph.pred)
        stack = [g for g in near[start] if g != goal]
        seen = set(stack)
        while stack:
            for following in near[stack.pop()]:
                if following == goal:
                    return True
                if following not in seen and self.span[following][0] < last and self.span[following][1] > first:
                    seen.add(following)
                    stack.append(following)
        return False

    def merge(self, a: int, b: int) -> None:
        """Make two groups one, under the number of the one with more operators."""
        a, b = sorted((a, b), key=lambda group: -len(self.members[group]))
        self.inputs[a], self.exports[a] = self._interface(a, b)
        del self.inputs[b], self.exports[b]
        for op in self.members[b]:
            self.of[op.number] = a
        self.members[a] += self.members.pop(b)
        self.shaped[a] += self.shaped.pop(b)
        for value, readers in self.readers.pop(b).items():
            self.readers[a].setdefault(value, []).extend(readers)
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
