"""Programs that were numbered before: a graph of calls is known by its shape, without being numbered again."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from gpuop.base.lru import BoundedCache
from gpuop.fusion.program import Program
from gpuop.ir.values import Call, Leaf, Node, Result

MOST_KEPT, MOST_CALLS = 1024, 64  # longer ones are mostly new


@dataclass(frozen=True, slots=True)
class Numbered:
    """What running a plan takes of a program: its key, its leaves by their values, and the wanted values."""

    key: Any
    leaves: dict[int, Node]
    wanted: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ProgramShape:
    """Calls with their inputs by numbers.

    Attributes:
        told: equal for graphs that are numbered alike.
        leaves: in the order in which they are met.
    """

    told: tuple[Any, ...]
    leaves: list[Node]

    def numbered(self) -> Numbered | None:
        """The program of this shape, if there was one."""
        found = _known.get(self.told)
        if found is None:
            return None
        key, places, wanted = found
        return Numbered(key, {value: self.leaves[place] for value, place in places}, wanted)

    def keep(self, what: Program) -> None:
        place = {node: n for n, node in enumerate(self.leaves)}
        _known[self.told] = what.key, tuple((v, place[node]) for v, node in what.leaves.items()), what.wanted


_known: BoundedCache[Any, tuple[Any, tuple[tuple[int, int], ...], tuple[int, ...]]] = BoundedCache(MOST_KEPT)


def shape_of(wanted: Sequence[Node], needed: Sequence[Call], given: Container[Node] = ()) -> ProgramShape | None:
    """The shape of a graph; None where more than that decides: dynamic extents, layouts of others' memory.

    Values in `given` count as leaves, also where their call is needed for another output.
    """
    if len(needed) > MOST_CALLS:
        return None
    numbers: dict[Node, int] = {}
    leaves: list[Node] = []
    told: list[Any] = []
    following = count()

    def number(node: Node) -> int:
        found = numbers.get(node)
        if found is None:
            found = numbers[node] = next(following)
            leaves.append(node)
            told.append((found, node.type, isinstance(node, Leaf) and node.by_value))
        return found

    for call in needed:
        kernel = call.kernel
        if kernel.has_dynamic:
            return None
        told.append((call.identity, *map(number, call.inputs)))
        for index in range(len(kernel.outputs)):
            made = next(following)  # also of an output that is given, so that it matters which one is
            if Result(call, index) not in given:
                numbers[Result(call, index)] = made
    told.append(tuple(map(number, wanted)))
    if any(isinstance(node, Leaf) and (node.source.dynamic or node.source.layout is not None) for node in leaves):
        return None
    return ProgramShape(tuple(told), leaves)
