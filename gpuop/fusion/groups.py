"""Operators grouped into kernels: a partition whose quotient graph stays acyclic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from types import MappingProxyType
from typing import Any

from gpuop.fusion.cross_thread import needs_other_threads
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.program import Network, Op, Program, connect
from gpuop.ir.analysis.size import size
from gpuop.ir.kernel import Kernel, Launchable
from gpuop.ir.values import Leaf


class Order:
    """A graph that stays acyclic while its nodes are merged: it knows a topological order, in which a path leads only forwards.

    Merging changes the order only between the two nodes, as in D. J. Pearce and P. H. J. Kelly, A dynamic topological sort
    algorithm for directed acyclic graphs, ACM Journal of Experimental Algorithmics 11 (2007). A search between two nodes then
    looks at no node that is not between them, which keeps planning linear.

    Args:
        network: what it is at first, with nodes in a topological order; it is copied.

    Attributes:
        graph: a networkx.DiGraph of the nodes as they are now.
        place: the place of each node, which is before those of all that need it.
    """

    def __init__(self, network: Network) -> None:
        import networkx as nx

        self.graph = nx.DiGraph()
        self.graph.add_nodes_from(network)
        self.graph.add_edges_from((node, each) for node, following in network.adjacency() for each in following)
        self.place = {node: at for at, node in enumerate(network)}

    def detour(self, a: int, b: int) -> bool:
        """Return whether a path between the two, in either direction, passes another node."""
        a, b = sorted((a, b), key=self.place.__getitem__)
        graph = self.graph
        if graph.out_degree(a) <= graph.in_degree(b):  # search from the end with fewer neighbours
            return any(graph.has_edge(node, b) for node in self._reached(a, graph.successors, a, b))
        return any(graph.has_edge(a, node) for node in self._reached(b, graph.predecessors, a, b))

    def leads(self, a: int, b: int) -> bool:
        """Return whether there is a path from a to b."""
        return self.place[a] < self.place[b] and (self.graph.has_edge(a, b) or self.detour(a, b))

    def _reached(self, start: int, near: Callable[[int], Iterator[int]], a: int, b: int) -> Iterator[int]:
        """The nodes between a and b that there are paths to."""
        import networkx as nx

        place, low, high = self.place, self.place[a], self.place[b]
        if not any(low < place[n] < high for n in near(start)):  # the usual case
            return iter(())
        edges = nx.generic_bfs_edges(self.graph, start, lambda node: (n for n in near(node) if low < place[n] < high))
        return (node for _, node in edges)

    def merge(self, node_left: int, other: int) -> None:
        """Make two nodes one, which has the number of the first. There must be no detour between them."""
        graph, place = self.graph, self.place
        a, b = sorted((node_left, other), key=place.__getitem__)
        needed, needing = self._reached(b, graph.predecessors, a, b), self._reached(a, graph.successors, a, b)
        order = [*sorted(needed, key=place.__getitem__), node_left, *sorted(needing, key=place.__getitem__)]
        free = sorted([place.pop(a), place.pop(b), *(place[node] for node in order if node != node_left)])
        place.update(zip(order, free, strict=False))
        for node in graph.predecessors(other):
            if node != node_left:
                graph.add_edge(node, node_left)
        for node in graph.successors(other):
            if node != node_left:
                graph.add_edge(node_left, node)
        graph.remove_node(other)

    def need(self, node: int, needed: Set[int]) -> None:
        """Let a node need others than before, all of which what it needed before needs."""
        assert all(self.place[each] < self.place[node] for each in needed)
        self.graph.remove_edges_from([(each, node) for each in self.graph.predecessors(node) if each not in needed])
        self.graph.add_edges_from((each, node) for each in needed)

    def remove(self, node: int) -> None:
        """Leave a node out, with its edges."""
        self.graph.remove_node(node)
        del self.place[node]

    def sorted(self, key: Callable[[int], Any]) -> Iterator[int]:
        """The nodes in a topological order; of those that may come next the one with the least key."""
        import networkx as nx

        result: Iterator[int] = nx.lexicographical_topological_sort(self.graph, key)
        return result


MOST_COMPARED = 8  # kernels that read one value and are tried with each other


class Groups:
    """A partition of the operators whose quotient graph is acyclic.

    A group has the number of one of its operators. What is known of groups is kept up to date by `merge`, `replace` and
    `drop_dead`; why two may not become one is asked in `legality.py`.

    Args:
        limits: of each group's kernel.
        unstaged: values that are no intermediates.
        severed: why two operators are not to be in one kernel, by their numbers.

    Attributes:
        size, members, inputs, exports, readers, shaped, first: by group: the statements of its kernel, its operators, the
            values that it reads from memory and those that it writes there, its operators that read a value (by value),
            those with work-groups of their own, and the number of the operator that was recorded first.
        again: the numbers of operators that compute values again.
        staged: the groups in which operators read values of others at other points.
        owed: by group: how many wanted values it makes, which go to memory whatever is fused.
        network: the operators as they are now, as of `Program.network`.
        order: the groups, which are its condensation.
        of: the group of an operator, by its number.
        maker, using, users: by value: the operator that makes it, those that read it (by number), and how many these are.
        words: by value passed by value: how many argument slots of 8 bytes it takes.
    """

    def __init__(
        self,
        program: Program,
        limits: Limits,
        unstaged: Collection[int] = (),
        severed: Mapping[tuple[int, int], str] = MappingProxyType({}),
    ) -> None:
        self.limits, self.unstaged = limits, frozenset(unstaged)
        self.severed: dict[int, dict[int, str]] = {}
        for (a, b), reason in severed.items():
            self.severed.setdefault(a, {})[b] = self.severed.setdefault(b, {})[a] = reason
        kernels = {id(op.kernel): op.kernel for op in program.ops}
        sizes = {key: size(kernel.body) if isinstance(kernel, Kernel) else 0 for key, kernel in kernels.items()}
        self.size = {op.number: sizes[id(op.kernel)] for op in program.ops}
        self.again = {op.number for op in program.ops if op.is_again}
        by_value = ((v, leaf) for v, leaf in program.leaves.items() if isinstance(leaf, Leaf) and leaf.by_value)
        self.words = {value: leaf.type.planes for value, leaf in by_value}

        self.staged: set[int] = set()
        self.members = {op.number: [op] for op in program.ops}
        self.of = {op.number: op.number for op in program.ops}
        self.maker = {value: op for op in program.ops for value in op.outputs}
        self.network = program.network  # until an operator is replaced
        self.order = Order(self.network)
        self.readers = {op.number: {value: [op] for value in op.inputs} for op in program.ops}
        self.users = Counter(value for op in program.ops for value in set(op.inputs))
        self.results = frozenset(program.results)
        self.owed = {op.number: len(self.results.intersection(op.outputs)) for op in program.ops}
        self.inputs = {op.number: frozenset(op.inputs) for op in program.ops}
        self.exports = {
            op.number: frozenset(v for v in op.outputs if v in self.results or self.users[v]) for op in program.ops
        }
        self.shaped = {op.number: [op] if _is_shaped(op.kernel) else [] for op in program.ops}
        self.first = {op.number: op.number for op in program.ops}
        self.using: dict[int, dict[int, Op]] = {}
        for op in program.ops:
            for value in op.inputs:
                self.using.setdefault(value, {})[op.number] = op

    def interface(self, a: int, b: int) -> tuple[frozenset[int], frozenset[int]]:
        """The values that the fused kernel reads from memory, and those it writes."""

        def outside(value: int) -> bool:
            return sum(len(self.readers[group].get(value, ())) for group in (a, b)) < self.users[value]

        exports = self.exports[a] | self.exports[b]
        inputs = (self.inputs[a] | self.inputs[b]) - exports
        return inputs, frozenset(v for v in exports if v in self.results or outside(v))

    def arguments(self, values: Collection[int]) -> int:
        """The arguments of a kernel that reads and writes these values, in units of `Limits.arguments`."""
        return len(values) + sum(self.words[v] - 1 for v in self.words.keys() & values)

    def edges(self, a: int, b: int) -> Iterator[tuple[Op, Op, int]]:
        """Every edge between two groups, in either direction."""
        for inner, outer in ((a, b), (b, a)):
            for value in self.exports[inner] & self.inputs[outer]:
                for user in self.readers[outer][value]:
                    yield self.maker[value], user, value

    def replace(self, old: Op, new: Op) -> None:
        """Put an operator with other inputs in the place of one that is still a group of its own."""
        group = old.number
        for value in set(old.inputs):
            self.users[value] -= 1
            del self.using[value][old.number]
            if not self.users[value] and value in self.maker and value not in self.results:
                maker = self.of[self.maker[value].number]
                self.exports[maker] = self.exports[maker] - {value}
        for value in set(new.inputs):
            self.users[value] += 1
            self.using.setdefault(value, {})[new.number] = new
            if value in self.maker:
                maker = self.of[self.maker[value].number]
                self.exports[maker] = self.exports[maker] | {value}
        self.maker.update(dict.fromkeys(new.outputs, new))
        self.members[group] = [new]
        self.size[group] = size(new.fusible.body)
        self.readers[group] = {value: [new] for value in new.inputs}
        self.inputs[group] = frozenset(new.inputs)
        self._change()
        self.network.remove_edges_from([(maker, group) for maker in self.network.predecessors(group)])
        connect(self.network, new, self.maker)
        self.network.nodes[group]["operator"] = new
        self.order.need(group, {self.of[maker] for maker in self.network.predecessors(group)})

    def _change(self) -> None:
        """Let the operators' graph be one that is not the program's."""
        import networkx as nx

        if nx.is_frozen(self.network):
            self.network = self.network.copy()

    def drop_dead(self) -> None:
        """Leave out groups whose values nobody reads from memory."""
        for group in sorted(self.members, key=self.order.place.__getitem__, reverse=True):
            if not self.needed(self.members[group]):
                for op in self.members.pop(group):
                    self._change()
                    self.network.remove_node(op.number)
                    for value in set(op.inputs):
                        del self.using[value][op.number]
                self.order.remove(group)

    def needed(self, ops: Iterable[Op]) -> set[int]:
        """The values of operators that are wanted, or that others read."""
        makers = {value: op for op in ops for value in op.outputs}
        inside = {op.number for op in makers.values()}
        return {v for v in makers if v in self.results or not self.using.get(v, {}).keys() <= inside}

    def are_apart(self, a: Op, b: Op) -> bool:
        """Return whether two operators are in different groups, both alive."""
        first, second = self.of[a.number], self.of[b.number]
        return first != second and first in self.members and second in self.members

    def has_stages(self, a: int, b: int) -> bool:
        """Return whether operators of the fused kernel would read values of others at other points."""
        return bool(self.staged & {a, b}) or any(needs_other_threads(*e) is not None for e in self.edges(a, b))

    def merge(self, a: int, b: int) -> None:
        """Make two groups one, under the number of the one with more operators."""
        if self.limits.has_stages and self.has_stages(a, b):
            self.staged.update((a, b))
        a, b = sorted((a, b), key=lambda group: -len(self.members[group]))
        self.inputs[a], self.exports[a] = self.interface(a, b)
        del self.inputs[b], self.exports[b]
        self.owed[a] += self.owed.pop(b)
        self.size[a] += self.size.pop(b)
        for op in self.members[b]:
            self.of[op.number] = a
        self.members[a] += self.members.pop(b)
        self.shaped[a] += self.shaped.pop(b)
        for value, readers in self.readers.pop(b).items():
            self.readers[a].setdefault(value, []).extend(readers)
        self.first[a] = min(self.first[a], self.first.pop(b))
        self.order.merge(a, b)


def _is_shaped(kernel: Launchable) -> bool:
    """Return whether a kernel has work-groups of a fixed shape."""
    return isinstance(kernel, Kernel) and kernel.group is not None
