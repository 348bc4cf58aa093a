"""Buffer rotation: states take the values of others by exchanging buffers, without copies.

A state moves to the buffer of its next value, and a value that is computed at each step to a buffer that a state has left. So
buffers rotate along delay lines and in rings. Launches are bound once for each assignment of values to buffers; if there are
too many, some states take a copy, which is computed at each step.

    a.next = b, b.next = x    step 0: a in 0, b in 1, x in 2    step 1: a in 1, b in 2, x in 0
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from math import lcm
from typing import Any, Generic, TypeVar

from gpuop.base.records import dataclass

MOST = 24  # the longest period, in steps
Key = TypeVar("Key", bound=Hashable)
Places = dict[int, int]  # for each value the one whose initial buffer it is in


def rotation(nexts: Mapping[int, int], anew: Collection[int]) -> tuple[list[Places], int]:
    """The places of values after 0, 1, 2 … steps, and the number of the step that follows the last one.

    Args:
        nexts: states, each with its next value.
        anew: next values that are no states and are computed at each step; the others keep their buffers.
    """
    pools = {line.start: [v for v in line.depth if v in nexts] for line in _lines(nexts) if line.start in anew}
    place = {v: v for v in (*nexts, *nexts.values())}
    visited: dict[tuple[int, ...], int] = {}
    steps: list[Places] = []
    while (now := tuple(place.values())) not in visited:
        visited[now] = len(steps)
        steps.append(place)
        place = _moved(place, nexts, pools)
    return steps, visited[now]


def _moved(place: Places, nexts: Mapping[int, int], pools: Mapping[int, list[int]]) -> Places:
    """The places of values a step later: a computed value takes one of the buffers that states leave."""
    moved = place | {state: place[value] for state, value in nexts.items()}
    for value, states in pools.items():
        moved[value] = min({place[state] for state in states} - {moved[state] for state in states})
    return moved


@dataclass
class _Line(Generic[Key]):
    """A chain or ring of states that take one another's values.

    Attributes:
        start: the value, of no state, at the start of a chain; in a ring, one of its states.
        ring: the number of states in a ring; 0 for a chain.
        depth: for each state the number of steps until a value from the start reaches it.
    """

    start: Key
    ring: int
    depth: dict[Key, int]


def _lines(nexts: Mapping[Key, Key]) -> list[_Line[Key]]:
    lines: dict[Key, _Line[Key]] = {}  # by member
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
    """The states that must take a copy, so that the period stays short; small ones rather than large ones.

    Args:
        nexts: states, each with its next value.
        nbytes: the sizes of the states.
    """
    period, copied, lines = 2, set[Any](), _lines(nexts)
    while lines:
        lines.sort(key=lambda line: sum(nbytes.get(v, 0) for v in line.depth))
        line = lines.pop()
        deepest = max(line.depth.values())
        length = line.ring or deepest + 2  # a chain has the start besides its states
        if lcm(period, length) <= MOST >= deepest:
            period = lcm(period, length)
            continue
        length = max(n for n in range(2, min(MOST, deepest + 1) + 1) if lcm(period, n) <= MOST)
        members = [v for v in line.depth if v in nexts]
        cut = {v for v in members if line.depth[v] % (length - 1) == 0}
        copied |= {v for v in cut if line.ring or line.depth[v]}
        lines += _lines({v: object() if v in cut else nexts[v] for v in members})
    return copied
