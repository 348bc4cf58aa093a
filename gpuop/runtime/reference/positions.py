"""The positions of threads in the grid and in their work-groups, for a chunk of threads at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.base.records import dataclass
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import GRID_AXES

CHUNK = 1 << 18  # threads at once
Ints = NDArray[Any]


@dataclass
class Positions:
    """Some threads; whole work-groups of them if groups matter.

    Attributes:
        at, local, group: positions by axis, an array over the threads for each.
        point: the position in a plane of a field that has the thread grid; for tail threads the nearest one.
        inside: whether a thread is in the grid.
        number: the number of each thread, among all that run.
        groups: the number of work-groups; `member` is the number of each thread's group, `first` of the first in the launch.
    """

    count: int
    at: dict[str, Ints]
    point: Ints
    inside: Ints
    number: Ints
    local: dict[str, Ints]
    group: dict[str, Ints]
    groups: int
    member: Ints
    first: int = 0

    def lane(self, kind: str, at: Ints, width: int, threads: int) -> Ints:
        """Return the source thread of a shuffle for each thread, by lanes, in work-groups whose threads all run."""
        own = np.arange(self.count) % threads
        lane = own % width
        sources = {"warp shuffle": at % width, "warp up": lane - at, "warp down": lane + at}[kind]
        there = (sources >= 0) & (sources < width) & (own - lane + sources < threads)
        return np.arange(self.count) + np.where(there, sources - lane, 0)

    def ballot(self, votes: Ints, width: int, threads: int) -> Ints:
        """Return the votes of each thread's lanes, one bit a lane: numbers that are 0 or not."""
        group, own = np.divmod(np.arange(self.count), threads)
        warp = group * -(-threads // width) + own // width
        bits = np.zeros(warp[-1] + 1, votes.dtype)
        np.bitwise_or.at(bits, warp, (votes != 0).astype(votes.dtype) << (own % width).astype(votes.dtype))
        return np.asarray(bits[warp])


def chunks(kernel: Kernel, surplus: bool) -> Iterator[Positions]:
    """Give the threads of a launch. `surplus`: with the tail threads of whole groups, as on devices."""
    if kernel.group is None:
        return _linear(kernel)
    return grouped_chunks(kernel, surplus)


def _linear(kernel: Kernel) -> Iterator[Positions]:
    domain = kernel.domain
    points = max(domain.shape.points, 1)
    for start in range(0, domain.threads, CHUNK):
        ids = np.arange(start, min(start + CHUNK, domain.threads))
        rest = point = ids % points
        at = {"element": (ids // points).astype(np.int32)}
        for axis in ("column", "row", "layer"):
            at[axis] = (rest % domain.extent(axis)).astype(np.int32)
            rest = rest // domain.extent(axis)
        yield Positions(len(ids), at, point, np.ones(len(ids), np.bool_), ids, {}, {}, 1, np.zeros(len(ids), np.int64))


def grouped_chunks(kernel: Kernel, surplus: bool) -> Iterator[Positions]:
    """Give whole work-groups, as `chunks` does, whether or not threads can tell them."""
    domain, sizes = kernel.domain, kernel.work_group
    extents = (domain.extent("layer") * domain.elements, domain.extent("row"), domain.extent("column"))
    counts = tuple(-(-n // size) for n, size in zip(extents, sizes, strict=True))
    total, step = int(np.prod(counts)), max(CHUNK // sizes.points, 1)
    inner = np.unravel_index(np.arange(sizes.points), sizes)
    for start in range(0, total, step):
        numbers = np.arange(start, min(start + step, total))
        outer = np.unravel_index(numbers, counts)
        groups = [np.repeat(g, sizes.points) for g in outer]
        locals_ = [np.tile(i, len(numbers)) for i in inner]
        where = [g * size + i for g, size, i in zip(groups, sizes, locals_, strict=True)]
        inside = np.logical_and.reduce([w < n for w, n in zip(where, extents, strict=True)])
        keep = slice(None) if surplus or inside.all() else inside
        yield _positions(
            kernel, [w[keep] for w in where], [i[keep] for i in locals_], [g[keep] for g in groups], numbers, keep
        )


def _positions(
    kernel: Kernel, where: list[Ints], locals_: list[Ints], groups: list[Ints], numbers: Ints, keep: Any
) -> Positions:
    domain = kernel.domain
    deep, row, column = (w.astype(np.int32) for w in where)
    at = {"layer": deep // domain.elements, "row": row, "column": column, "element": deep % domain.elements}
    inside = np.ones(len(row), np.bool_)
    point, number = np.zeros(len(row), np.int64), at["element"].astype(np.int64)
    for axis in domain.axes:
        n = domain.extent(axis)
        inside &= at[axis] < n
        point = point * n + np.minimum(at[axis], n - 1)
        number = number * kernel.launched.extent(axis) + at[axis]
    group = dict(zip(GRID_AXES, (g.astype(np.int32) for g in groups), strict=True))
    if domain.elements > 1:
        group["layer"] = at["layer"]
    member = np.repeat(np.arange(len(numbers)), kernel.work_group.points)[keep]
    local = dict(zip(GRID_AXES, (i.astype(np.int32) for i in locals_), strict=True))
    return Positions(len(row), at, point, inside, number, local, group, len(numbers), member, int(numbers[0]))
