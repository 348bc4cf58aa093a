"""States that take the values of others: buffers change places, and nothing is copied.

A state moves to the buffer of what it takes, and what is made anew at each step to one that a state has left. So buffers rotate
along delay lines and in rings. Launches are bound once for each way in which values lie in buffers; where there would be too
many of these, some states take a copy, which is made anew.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from math import lcm
from typing import Any, Generic, TypeVar

MOST = 24  # steps after which all values are to be in the same buffers again
Key = TypeVar("Key", bound=Hashable)
Places = dict[int, int]  # values, each with the one whose buffer, at first, it is in


def rotation(nexts: Mapping[int, int], anew: Collection[int]) -> tuple[list[Places], int]:
    """Where values are after 0, 1, 2 … steps, and which of these follows the last one.

    Args:
        nexts: states, each with what it takes.
        anew: which of those values are no states of these, and made anew at each step; others stay where they are.
    """
    pools = {line.start: [v for v in line.depth if v in nexts] for line in _lines(nexts) if line.start in anew}
    place = {v: v for v in (*nexts, *nexts.values())}
    seen: dict[tuple[int, ...], int] = {}
    steps: list[Places] = []
    while (now := tuple(place.values())) not in seen:
        seen[now] = len(steps)
        steps.append(place)
        place = _moved(place, nexts, pools)
    return steps, seen[now]


def _moved(place: Places, nexts: Mapping[int, int], pools: Mapping[int, list[int]]) -> Places:
    """Where values are a step later: of the buffers that states leave, one is for what is made anew, the others rest."""
    moved = place | {state: place[value] for state, value in nexts.items()}
    for value, states in pools.items():
        moved[value] = min({place[state] for state in states} - {moved[state] for state in states})
    return moved


@dataclass
class _Line(Generic[Key]):
    """States that take one another's values.

    Attributes:
        start: the value, of no state, that comes to all of them; in a ring, one of its states.
        ring: how many states take turns; 0: none.
        depth: how many steps later than the first ones, or than a ring's start, each state has a value.
    """

    start: Key
    ring: int
    depth: dict[Key, int]


def _lines(nexts: Mapping[Key, Key]) -> list[_Line[Key]]:
    lines: dict[Key, _Line[Key]] = {}  # by what is in them
    for state in nexts:
        path, at = dict[Key, int](), state
        while at in nexts and at not in lines and at not in path:
            path[at], at = len(path), nexts[at]
        if at not in lines:
            ring = len(path) - path[at] if at in path else 0
            lines[at] = _Line(at, ring, {at: 0 if ring else -1})
        for each in reversed(path):
            lines[each] = lines[at]
            lines[at].depth.setdefault(each, lines[at].depth[nexts[each]] + 1)
    return list({id(line): line for line in lines.values()}.values())


def copying(nexts: Mapping[Any, Any], nbytes: Mapping[Any, int]) -> set[Any]:
    """The states that have to take a copy, so that values are in few buffers in turn; the small rather than the large ones.

    Args:
        nexts: states, each with what it takes.
        nbytes: of the states.
    """
    period, copied, lines = 2, set[Any](), _lines(nexts)
    while lines:
        lines.sort(key=lambda line: sum(nbytes.get(v, 0) for v in line.depth))
        line = lines.pop()
        deepest = max(line.depth.values())
        length = line.ring or deepest + 2  # of a line of states, with the value that comes to it
        if lcm(period, length) <= MOST >= deepest:
            period = lcm(period, length)
            continue
        length = max(n for n in range(2, min(MOST, deepest + 1) + 1) if lcm(period, n) <= MOST)
        members = [v for v in line.depth if v in nexts]
        cut = {v for v in members if line.depth[v] % (length - 1) == 0}
        copied |= {v for v in cut if line.ring or line.depth[v]}
        lines += _lines({v: object() if v in cut else nexts[v] for v in members})
    return copied
