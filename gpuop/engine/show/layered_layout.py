"""Layered layout (after Sugiyama): boxes in rows, edges downwards, few crossings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import field

from gpuop.base.records import dataclass

SWEEPS = 12  # sweeps that order rows, and sweeps that move boxes below their inputs
STRAIGHT = 4.0  # weight of a straight long edge, relative to that of a centred box


@dataclass(frozen=True)
class Edge:
    """An edge between boxes, by number; `leaves` and `enters` are the x of its ends from the left sides of the boxes."""

    source: int
    target: int
    leaves: float
    enters: float


@dataclass
class Node:
    """A box, or the point at which an edge passes a row."""

    width: float
    height: float
    row: int
    x: float = 0.0  # the left side
    y: float = 0.0
    below: list[tuple[Node, float, float]] = field(default_factory=list)  # with the places where edges leave and enter
    above: list[tuple[Node, float, float]] = field(default_factory=list)
    rank: float = 0.0

    def __hash__(self) -> int:
        return id(self)


@dataclass(frozen=True)
class LayeredLayout:
    """The boxes, and the route of each edge: its start, the upper and lower end of each row that it passes, its end."""

    boxes: list[Node]
    routes: list[list[tuple[float, float]]]
    width: float
    height: float
    bands: list[tuple[float, float]]  # the upper and lower end of each row


def layered(
    sizes: Sequence[tuple[float, float]],
    edges: Sequence[Edge],
    gap: tuple[float, float],
    first: Collection[int] = (),
    last: Collection[int] = (),
) -> LayeredLayout:
    """Lay out an acyclic graph.

    Args:
        sizes: width and height of each box.
        gap: between boxes of a row, and between rows.
        first, last: boxes that are in the first and the last row.
    """
    rows_of = _rows(len(sizes), edges, first, last)
    boxes = [Node(w, h, row) for (w, h), row in zip(sizes, rows_of, strict=True)]
    chains = _chains(boxes, edges)
    rows = [[n for n in _all(boxes, chains) if n.row == row] for row in range(max(rows_of, default=-1) + 1)]
    _order(rows)
    for sweep in range(2 * SWEEPS):
        _place(rows if sweep % 2 == 0 else rows[::-1], gap[0], sweep % 2 == 0)
    left = min((n.x for row in rows for n in row), default=0.0)
    bands, y = [], 0.0
    for row in rows:
        height = max(n.height for n in row)
        for n in row:
            n.x -= left
            n.y = y + (height - n.height if not n.above else 0)  # sources are near to their readers
        bands.append((y, y + height))
        y += height + gap[1]
    routes = [_route(edge, boxes, chains, bands) for edge in edges]
    width = max((n.x + n.width for row in rows for n in row), default=0.0)
    return LayeredLayout(boxes, routes, width, y - gap[1] if rows else 0.0, bands)


def _rows(count: int, edges: Sequence[Edge], first: Collection[int], last: Collection[int]) -> list[int]:
    """The row of each box: below all of its inputs; a box without inputs is just above its first reader."""
    below, above = defaultdict(list), defaultdict(list)
    for e in edges:
        below[e.source].append(e.target)
        above[e.target].append(e.source)
    rows = [0 if n in first or not first else 1 for n in range(count)]
    waiting = {n: len(above[n]) for n in range(count)}
    ready = [n for n in range(count) if not waiting[n]]
    while ready:
        n = ready.pop()
        for target in below[n]:
            rows[target] = max(rows[target], rows[n] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    for n in range(count):
        if not above[n] and below[n] and n not in first:
            rows[n] = min(rows[target] for target in below[n]) - 1
    bottom = max([rows[n] + (n not in last) for n in range(count)], default=0)
    return [bottom if n in last else rows[n] for n in range(count)]


Chains = dict[tuple[int, float, int], Node]


def _chains(boxes: list[Node], edges: Sequence[Edge]) -> Chains:
    """Connect the boxes through a node in each row between them; edges that leave from one place share these."""
    chains: Chains = {}
    linked = set()
    for edge in edges:
        before, leaves = boxes[edge.source], edge.leaves
        for row in range(boxes[edge.source].row + 1, boxes[edge.target].row):
            passing = chains.setdefault((edge.source, edge.leaves, row), Node(0, 0, row))
            if (before, passing) not in linked:
                linked.add((before, passing))
                before.below.append((passing, leaves, 0))
                passing.above.append((before, leaves, 0))
            before, leaves = passing, 0.0
        before.below.append((boxes[edge.target], leaves, edge.enters))
        boxes[edge.target].above.append((before, leaves, edge.enters))
    return chains


def _all(boxes: list[Node], chains: Chains) -> list[Node]:
    return [*boxes, *chains.values()]


# --- order within rows --------------------------------------------------------------------------------------------------


def _order(rows: list[list[Node]]) -> None:
    """Sort every row by the mean place of its neighbours, down and up, and keep the order with the fewest crossings."""
    best, fewest = [list(row) for row in rows], None
    for sweep in range(2 * SWEEPS):
        for row in rows:
            for place, n in enumerate(row):
                n.rank = place / max(len(row), 1)
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            _sort(row, down=sweep % 2 == 0)
        crossings = sum(map(_crossings, rows))
        if fewest is None or crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    for row, order in zip(rows, best, strict=True):
        row[:] = order


def _sort(row: list[Node], down: bool) -> None:
    def key(n: Node) -> float:
        near = n.above if down else n.below
        ports = [m.rank + 1e-3 * ((at if down else enters) / m.width if m.width else 0) for m, at, enters in near]
        return sum(ports) / len(ports) if ports else n.rank

    row.sort(key=key)
    for place, n in enumerate(row):
        n.rank = place / len(row)


def _crossings(row: list[Node]) -> int:
    """Crossings of the edges below a row."""
    place = {n: k for k, n in enumerate(row)}
    ends = sorted((place[n], at, m.rank, enters) for n in row for m, at, enters in n.below)
    order = [(rank, enters) for _, _, rank, enters in ends]
    return sum(a > b for k, a in enumerate(order) for b in order[k + 1 :])


# --- places -----------------------------------------------------------------------------------------------------------------


def _place(rows: list[list[Node]], gap: float, down: bool) -> None:
    """Move the nodes of each row as near as possible to below (or above) their neighbours, in the order of the row."""
    for row in rows:
        places, weights, offsets, offset = [], [], [], 0.0
        for n in row:
            near = n.above if down else n.below
            targets = [m.x + (at if down else enters) - (enters if down else at) for m, at, enters in near]
            places.append((sum(targets) / len(targets) if targets else n.x) - offset)
            weights.append(STRAIGHT if not n.width else 1.0 if targets else 0.05)
            offsets.append(offset)
            offset += n.width + gap
        for n, x, shift in zip(row, _ascending(places, weights), offsets, strict=True):
            n.x = x + shift


def _ascending(places: list[float], weights: list[float]) -> list[float]:
    """Isotonic regression: the ascending numbers nearest to `places`; neighbours that are out of order take their mean."""
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for value, weight in zip(places, weights, strict=True):
        pool = (value, weight, 1)
        while pools and pools[-1][0] >= pool[0]:
            mean, heavy, many = pools.pop()
            total = heavy + pool[1]
            pool = ((mean * heavy + pool[0] * pool[1]) / total, total, many + pool[2])
        pools.append(pool)
    return [mean for mean, _, many in pools for _ in range(many)]


def _route(
    edge: Edge, boxes: list[Node], chains: Chains, bands: list[tuple[float, float]]
) -> list[tuple[float, float]]:
    source, target = boxes[edge.source], boxes[edge.target]
    points = [
        (source.x + edge.leaves, source.y + source.height),
        (source.x + edge.leaves, bands[source.row][1]),
    ]
    for row in range(source.row + 1, target.row):
        x = chains[edge.source, edge.leaves, row].x
        points += [(x, bands[row][0]), (x, bands[row][1])]
    x = target.x + edge.enters
    return [*points, (x, bands[target.row][0]), (x, target.y)]
