"""Footprints: the halo of a pipeline or graph as users see it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from gpuop.base.errors import SemanticError
from gpuop.base.misspelt import hinted_methods
from gpuop.base.records import dataclass
from gpuop.fusion.program import Program, needed_ops
from gpuop.fusion.windows.halo_inference import Margin, ProgramHalo, infer_halo, iterate_halo, wider
from gpuop.fusion.windows.kernel import WindowExtents
from gpuop.fusion.windows.kernel_halo import AxisHalo
from gpuop.fusion.windows.program import window_program
from gpuop.ir.dims import folded
from gpuop.ir.types import MOST_GRID, FieldType, Shape, is_integer

Place = tuple[int, ...]


@hinted_methods
@dataclass(frozen=True)
class Footprint:
    """The halo of results: how far around a point of the grid they depend on arguments, through all operators.

    Attributes:
        grid: the extents of the grid.
        halo: the points before and after, for each axis.
        whole: the axes that no window may cut, with reasons.
        periodic: the periodic axes: windows wrap around their ends.
        positions: the axes along which results depend on the position of a point, not only on its surroundings.
        multiples: for axes with work-groups the number whose multiples windows end at, except at the end of the grid; and why.
        stages: collective values, reductions and atomic updates: each stage must be combined from all windows before the
            next one.
        results: the types of the results of a pipeline.
        at_once: True if the results on the grid do not need the last stage, and are computed with it.
    """

    grid: Place
    halo: tuple[tuple[int, int], ...]
    whole: dict[int, str]
    periodic: tuple[int, ...]
    positions: tuple[int, ...]
    stages: tuple[tuple[str, ...], ...] = ()
    results: tuple[FieldType, ...] = ()
    at_once: bool = False
    multiples: dict[int, tuple[int, str]] = field(default_factory=dict)

    def window(self, start: Sequence[int], stop: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """The points of arguments that [start, stop) needs: for each axis the first one and the one after the last.

        They are cut at the ends of the grid, but not along periodic axes, where points below 0 and from the extent on wrap
        around.

        Args:
            start, stop: an integer for each axis of the grid.

        Returns:
            A tuple of pairs.

        Raises:
            SemanticError: points outside of the grid, an axis that must be whole is cut, or one within a work-group.
        """
        first, last = places(start, stop, self.grid)
        self._check(first, last)
        return tuple(self._along(axis, *ends) for axis, ends in enumerate(zip(first, last, strict=True)))

    def known(self, parts: Iterable[Sequence[Any]]) -> tuple[Any, ...]:
        """Combine the parts of all windows to the values of a stage, in any order.

        The last bits of floating-point sums and means depend on the windows and on the order; other values do not.

        Args:
            parts: for each window the result of `pipeline.window(…, stage=)`.

        Returns:
            A tuple of arrays, one for each reduction, for `known=`.

        Raises:
            SemanticError: windows are missing.
        """
        each = iter(parts)
        joined = list(next(each))
        for more in each:
            joined = [a.joined(b) for a, b in zip(joined, more, strict=True)]
        return tuple(part.result() for part in joined)

    def _along(self, axis: int, start: int, stop: int) -> tuple[int, int]:
        n, (before, after) = self.grid[axis], self.halo[axis]
        if (start, stop) == (0, n):
            return 0, n
        if axis in self.periodic:
            return start - before, stop + after
        return max(start - before, 0), min(stop + after, n)

    def _check(self, start: Place, stop: Place) -> None:
        """Raise SemanticError for a window that cuts an axis that must be whole, or a work-group."""
        for axis, reason in self.whole.items():
            if (start[axis], stop[axis]) != (0, self.grid[axis]):
                raise SemanticError(
                    f"axis {axis} of the grid {self.grid} must be whole, and a window cuts it: {reason}"
                )
        for axis, (n, reason) in self.multiples.items():
            if start[axis] % n or (stop[axis] % n and stop[axis] != self.grid[axis]):
                raise SemanticError(
                    f"windows begin and end at multiples of {n} along axis {axis}, or where the grid {self.grid} ends, and this "
                    f"one is {start[axis]}:{stop[axis]}: {reason}"
                )

    def __str__(self) -> str:
        lines = [f"grid {'×'.join(map(str, self.grid))}"]
        for axis, (before, after) in enumerate(self.halo):
            if axis in self.whole:
                lines.append(f"  axis {axis}: must be whole: {self.whole[axis]}")
                continue
            facts = [f"{before} before, {after} after" if before or after else "own points only"]
            facts += [f"in multiples of {n}" for a, (n, _) in self.multiples.items() if a == axis]
            facts += ["its ends meet"] * (axis in self.periodic) + ["positions count"] * (axis in self.positions)
            lines.append(f"  axis {axis}: {'; '.join(facts)}")
        lines += [f"  stage {k}: {each}" for k, stage in enumerate(self.stages) for each in stage]
        return "\n".join(lines)


def places(start: Any, stop: Any, grid: Place) -> tuple[Place, Place]:
    """Check the ends of a part of the grid; return them as tuples of integers.

    Raises:
        SemanticError: no integers, not one for each axis, or outside of the grid.
    """
    ends = []
    for name, corner in (("start", start), ("stop", stop)):
        each = tuple(corner) if not is_integer(corner) else (corner,)
        if len(each) != len(grid) or not all(map(is_integer, each)):
            raise SemanticError(f"`{name}` is an integer for each axis of the grid {grid}, not {corner!r}")
        ends.append(tuple(int(n) for n in each))
    if not all(0 <= a < b <= n for a, b, n in zip(*ends, grid, strict=True)):
        raise SemanticError(
            f"the points from {ends[0]} to {ends[1]} are not within the grid {grid}: give 0 <= start < stop <= extent on each axis"
        )
    return ends[0], ends[1]


def footprint_of(grid: Place, halos: ProgramHalo, halo: Margin, placed: Sequence[int]) -> Footprint:
    """The footprint of inferred halos, by the axes of users; axes that kernels have as one cannot be cut."""
    more = len(grid) - len(halos.grid)
    whole: dict[int, str] = {}
    for axis in range(more + 1 if more else 0):
        whole[axis] = f"the first {more + 1} axes of a grid of {len(grid)} are one in kernels: cut others"
    for axis, reason in halos.whole.items():
        whole.setdefault(axis + more, reason)
    sizes = [math.lcm(*groups) for groups in halos.groups]
    ends = [AxisHalo(group=n).whole_groups(each) for n, each in zip(sizes, halo, strict=True)]
    first = ((0, 0),) * more
    return Footprint(
        grid,
        tuple((0, 0) if a in whole else each for a, each in enumerate((*first, *ends))),
        dict(sorted(whole.items())),
        tuple(a + more for a in halos.periodic if a + more not in whole),
        tuple(a + more for a in placed if a + more not in whole),
        multiples={
            a + more: (n, next(iter(halos.groups[a].values())))
            for a, n in enumerate(sizes)
            if n > 1 and a + more not in whole
        },
    )


def kernels_grid(grid: Sequence[int]) -> Shape:
    """The grid of kernels for a grid of users, with at most MOST_GRID axes."""
    return Shape(folded(Shape(grid), MOST_GRID))


def iteration_of(what: Program, states: Mapping[int, int], probes: Sequence[int] = ()) -> Program:
    """One iteration of a repeated program: its results are the next values of states, then the values in `probes`.

    Args:
        states: leaves, each with its next value.
    """
    results = (*states.values(), *probes)
    return replace(what, ops=needed_ops(list(what.ops), results), results=results)


def of_steps(
    turn: Program, states: Sequence[int], steps: int, parts: Collection[int] = (), results: Collection[int] = ()
) -> tuple[ProgramHalo, Footprint]:
    """Infer the halos of so many iterations of a program on its states, with those of values that are read before each.

    Args:
        turn: the program of an iteration; its first results are the next values of states.
        parts: results that windows give parts of.
        results: leaves that stand for combined values, which are whole.
    """
    grid = max((Shape(turn.types[v].field_shape) for v in states), key=math.prod, default=Shape())
    windows = [v for v in turn.leaves if turn.types[v].field_shape == grid and v not in results]
    halos = infer_halo(turn, grid, windows, parts)
    probes = range(len(states), len(turn.results))
    inputs = {leaf: position for position, leaf in enumerate(states)}
    inputs |= {v: probes.stop + n for n, v in enumerate(v for v in windows if v not in inputs)}
    needs = iterate_halo(halos, turn, inputs, [halos.nothing] * len(turn.results), steps)
    halo = halos.halo(halos.margins) if steps else halos.nothing
    halos.margins = {leaf: needs[position] for leaf, position in inputs.items() if position in needs}
    return halos, footprint_of(tuple(grid), halos, wider(halo, halos.halo(windows)), positions(turn, halos))


def positions(what: Program, halos: ProgramHalo) -> list[int]:
    """The axes along which results depend on positions in the whole grid."""
    grid = halos.grid
    axes = frozenset(range(len(grid))) - halos.whole.keys()
    names = (
        window_program(what, halos, WindowExtents(grid, grid, axes, frozenset(halos.periodic), axes)).numbers
        if axes
        else ()
    )
    return sorted({axis for name, axis in names if name == "origin"})
