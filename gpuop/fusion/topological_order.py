"""A graph that stays acyclic while its nodes are merged: it knows a topological order, in which a path leads only forwards.

Merging changes the order only between the two nodes, as in D. J. Pearce and P. H. J. Kelly, A dynamic topological sort
algorithm for directed acyclic graphs, ACM Journal of Experimental Algorithmics 11 (2007).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from heapq import heapify, heappop, heappush
from typing import Any

Near = dict[int, set[int]]


class Order:
    """A directed acyclic graph of numbers.

    Args:
        before: the nodes, each with those that it needs, which come before it here too.
    """

    def __init__(self, before: Near) -> None:
        self.before = before
        self.after: Near = {node: set() for node in before}
        for node, needed in before.items():
            for each in needed:
                self.after[each].add(node)
        self.place = {node: at for at, node in enumerate(before)}  # a node's place is before those of all that need it

    def detour(self, a: int, b: int) -> bool:
        """Whether a path between the two, in whichever direction there may be one, passes another node."""
        a, b = sorted((a, b), key=self.place.__getitem__)
        forward = len(self.after[a]) <= len(self.before[b])  # search from the end with fewer neighbours
        start, goal, near = (a, b, self.after) if forward else (b, a, self.before)
        return any(goal in near[node] for node in self._reached(start, near, a, b))

    def leads(self, a: int, b: int) -> bool:
        """Whether there is a path from a to b."""
        return self.place[a] < self.place[b] and (b in self.after[a] or self.detour(a, b))

    def _reached(self, start: int, near: Near, a: int, b: int) -> Iterator[int]:
        """The nodes between a and b that there are paths to."""
        low, high = self.place[a], self.place[b]
        stack, seen = [start], {start}
        while stack:
            node = stack.pop()
            if node != start:
                yield node
            for following in near[node]:
                if following not in seen and low < self.place[following] < high:
                    seen.add(following)
                    stack.append(following)

    def merge(self, kept: int, other: int) -> None:
        """Make two nodes one, which has the number of the first. There must be no detour between them."""
        place = self.place
        a, b = sorted((kept, other), key=place.__getitem__)
        needed, needing = self._reached(b, self.before, a, b), self._reached(a, self.after, a, b)
        order = [*sorted(needed, key=place.__getitem__), kept, *sorted(needing, key=place.__getitem__)]
        free = sorted([place.pop(a), place.pop(b), *(place[node] for node in order if node != kept)])
        place.update(zip(order, free, strict=False))
        for near, far in ((self.before, self.after), (self.after, self.before)):
            for node in near.pop(other):
                far[node].discard(other)
                if node != kept:
                    far[node].add(kept)
                    near[kept].add(node)

    def need(self, node: int, needed: Set[int]) -> None:
        """Let a node need others than before, all of which what it needed before needs."""
        assert all(self.place[each] < self.place[node] for each in needed)
        for each in self.before[node] - needed:
            self.after[each].discard(node)
        for each in needed - self.before[node]:
            self.after[each].add(node)
        self.before[node] = set(needed)

    def remove(self, node: int) -> None:
        """Leave a node out, with its edges."""
        for near, far in ((self.before, self.after), (self.after, self.before)):
            for each in near.pop(node):
                far[each].discard(node)
        del self.place[node]

    def sorted(self, key: Callable[[int], Any]) -> Iterator[int]:
        """The nodes in a topological order; of those that may come next the one with the least key."""
        missing = {node: len(needed) for node, needed in self.before.items()}
        ready = [(key(node), node) for node, count in missing.items() if not count]
        heapify(ready)
        while ready:
            _, node = heappop(ready)
            yield node
            for following in self.after[node]:
                missing[following] -= 1
                if not missing[following]:
                    heappush(ready, (key(following), following))
