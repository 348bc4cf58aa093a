"""Cache of numbered programs, by the shape of a graph of calls."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from gpuop.base.lru import BoundedCache
from gpuop.base.records import dataclass
from gpuop.fusion.program import Program
from gpuop.ir.values import Call, Leaf, Node, Result

MOST_KEPT, MOST_CALLS = 1024, 64  # longer ones are mostly new


@dataclass(frozen=True, slots=True)
class Numbered:
    """The parts of a program that a run of its plan needs: its key, its leaves by value, and the results."""

    key: Any
    leaves: dict[int, Node]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ProgramShape:
    """The shape of a graph: calls with their inputs by number.

    Attributes:
        key: equal for graphs with equal numbering.
        leaves: the leaves in the order of the walk.
    """

    key: tuple[Any, ...]
    leaves: list[Node]

    def numbered(self) -> Numbered | None:
        """The program of this shape, if it is cached."""
        entry = _cache.get(self.key)
        if entry is None:
            return None
        key, places, own, results = entry
        return Numbered(key, {**{value: self.leaves[place] for value, place in places}, **own}, results)

    def keep(self, what: Program) -> None:
        """Cache the program; leaves besides those of the graph are numbers of its kernels, which the shape tells."""
        place = {node: n for n, node in enumerate(self.leaves)}
        places = tuple((v, place[node]) for v, node in what.leaves.items() if node in place)
        own = {v: node for v, node in what.leaves.items() if node not in place}
        _cache[self.key] = what.key, places, own, what.results


_Entry = tuple[Any, tuple[tuple[int, int], ...], dict[int, Node], tuple[int, ...]]
_cache: BoundedCache[Any, _Entry] = BoundedCache(MOST_KEPT)


def shape_of(results: Sequence[Node], needed: Sequence[Call], arguments: Collection[Node] = ()) -> ProgramShape | None:
    """The shape of a graph; None if more than the shape matters: dynamic extents, layouts of borrowed memory.

    Values in `arguments` count as leaves, even if their call is needed for another output.
    """
    if len(needed) > MOST_CALLS:
        return None
    numbers: dict[Any, int] = {}  # by leaf, or by call and index, whose hash is computed without Python code
    leaves: list[Node] = []
    key: list[Any] = []
    following = 0

    def number(node: Node) -> int:
        nonlocal following
        place = node if type(node) is Leaf else (node.call, node.index)  # type: ignore[union-attr]
        if place in numbers:
            return numbers[place]
        numbers[place] = following
        leaves.append(node)
        key.append((following, node.type, type(node) is Leaf and node.by_value))
        following += 1
        return following - 1

    for call in needed:
        kernel = call.kernel
        if kernel.has_dynamic:
            return None
        key.append((call.identity, *map(number, call.inputs)))
        for index, _ in enumerate(kernel.outputs):
            if not arguments or Result(call, index) not in arguments:
                numbers[call, index] = following
            following += 1  # also of outputs in `arguments`: the shape tells which ones they are
    key.append(tuple(map(number, results)))
    for node in leaves:
        if type(node) is Leaf and (node.source.dynamic or node.source.layout is not None):
            return None
    return ProgramShape(tuple(key), leaves)
