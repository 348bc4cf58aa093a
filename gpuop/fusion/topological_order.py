"""A graph that stays acyclic while its nodes are merged: it knows a topological order, in which a path leads only forwards.

Merging changes the order only between the two nodes, as in D. J. Pearce and P. H. J. Kelly, A dynamic topological sort
algorithm for directed acyclic graphs, ACM Journal of Experimental Algorithmics 11 (2007). A search between two nodes then
looks at no node that is not between them, which keeps planning linear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import Any

from gpuop.fusion.program import Network


class Order:
    """A directed acyclic graph of numbers.

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

    def merge(self, kept: int, other: int) -> None:
        """Make two nodes one, which has the number of the first. There must be no detour between them."""
        graph, place = self.graph, self.place
        a, b = sorted((kept, other), key=place.__getitem__)
        needed, needing = self._reached(b, graph.predecessors, a, b), self._reached(a, graph.successors, a, b)
        order = [*sorted(needed, key=place.__getitem__), kept, *sorted(needing, key=place.__getitem__)]
        free = sorted([place.pop(a), place.pop(b), *(place[node] for node in order if node != kept)])
        place.update(zip(order, free, strict=False))
        for node in graph.predecessors(other):
            if node != kept:
                graph.add_edge(node, kept)
        for node in graph.successors(other):
            if node != kept:
                graph.add_edge(kept, node)
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

        found: Iterator[int] = nx.lexicographical_topological_sort(self.graph, key)
        return found
