"""What users are told of how far results depend on arguments."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpuop.base.errors import SemanticError
from gpuop.fusion.program import Program, needed_ops
from gpuop.fusion.windows.halo_inference import Margin, Surroundings, surroundings, turned, wider
from gpuop.fusion.windows.kernel import WindowOf
from gpuop.fusion.windows.kernel_halo import Around
from gpuop.fusion.windows.program import on_window
from gpuop.ir.dims import folded
from gpuop.ir.types import MOST_GRID, FieldType, Shape, is_integer

Place = tuple[int, ...]


@dataclass(frozen=True)
class Footprint:
    """How far around a point of the grid results depend on arguments, through all operators.

    Attributes:
        grid: the extents of the grid.
        halo: points before and after, for each axis.
        whole: the axes that no window may cut, with the reason of each.
        periodic: the axes whose ends meet: windows go on at the other end, and are not cut there.
        positions: the axes along which results depend on where a point is, not only on what is around it.
        multiples: of what windows' ends are multiples where the grid does not end, along axes with work-groups; with the reason.
        stages: what all windows make together, reductions and what atomic operations update: each stage is to be known, of all
            windows, before the next one.
        results: the types of a pipeline's results.
        at_once: whether those on the grid need nothing of the last stage, so that they are computed with it.
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
        """Which points of arguments the points [start, stop) need: for each axis the first one and the one behind the last.

        They are cut at the grid's ends, but not along periodic axes, where those below 0 and from the extent on are counted from
        the other end.

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
        """What a stage gives, put together of what all its windows give, in any order.

        Sums and means of floats depend on the windows in their last bits, and on the order; nothing else does.

        Args:
            parts: of each window what `pipeline.window(…, stage=)` gives.

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
        """Refuse a window of what must be whole."""
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
    """The ends of a part of the grid, as tuples of integers.

    Raises:
        SemanticError: no integers, not one for each axis, or outside of the grid.
    """
    ends = []
    for name, given in (("start", start), ("stop", stop)):
        each = tuple(given) if not is_integer(given) else (given,)
        if len(each) != len(grid) or not all(map(is_integer, each)):
            raise SemanticError(f"`{name}` is an integer for each axis of the grid {grid}, not {given!r}")
        ends.append(tuple(int(n) for n in each))
    if not all(0 <= a < b <= n for a, b, n in zip(*ends, grid, strict=True)):
        raise SemanticError(f"the points from {ends[0]} to {ends[1]} are none of a grid {grid}")
    return ends[0], ends[1]


def told(grid: Place, found: Surroundings, halo: Margin, placed: Sequence[int]) -> Footprint:
    """What was found, by the axes that users see: of those that kernels have as one, none can be cut."""
    more = len(grid) - len(found.grid)
    whole: dict[int, str] = {}
    for axis in range(more + 1 if more else 0):
        whole[axis] = f"the first {more + 1} axes of a grid of {len(grid)} are one in kernels: cut others"
    for axis, reason in found.whole.items():
        whole.setdefault(axis + more, reason)
    sizes = [math.lcm(*groups) for groups in found.groups]
    ends = [Around(group=n).whole_groups(each) for n, each in zip(sizes, halo, strict=True)]
    first = ((0, 0),) * more
    return Footprint(
        grid,
        tuple((0, 0) if a in whole else each for a, each in enumerate((*first, *ends))),
        dict(sorted(whole.items())),
        tuple(a + more for a in found.periodic if a + more not in whole),
        tuple(a + more for a in placed if a + more not in whole),
        multiples={
            a + more: (n, next(iter(found.groups[a].values())))
            for a, n in enumerate(sizes)
            if n > 1 and a + more not in whole
        },
    )


def kernels_grid(grid: Sequence[int]) -> Shape:
    """A grid as kernels have it."""
    return Shape(folded(Shape(grid), MOST_GRID))


def turn_of(what: Program, states: Mapping[int, int], seen: Sequence[int] = ()) -> Program:
    """A turn of a program that is repeated: it wants the values that states take next, and others that are looked at.

    Args:
        states: leaves, each with the value that it takes next.
    """
    wanted = (*states.values(), *seen)
    return replace(what, ops=needed_ops(list(what.ops), wanted), wanted=wanted)


def of_steps(
    turn: Program, states: Sequence[int], steps: int, parts: Collection[int] = (), known: Collection[int] = ()
) -> tuple[Surroundings, Footprint]:
    """What the states of a program that is repeated need of themselves after so many steps, and what is looked at before each.

    Args:
        turn: wants their next values first.
        parts: wanted values that are put together of parts.
        known: the leaves that were, which are whole.
    """
    grid = max((Shape(turn.types[v].field_shape) for v in states), key=math.prod, default=Shape())
    windows = [v for v in turn.leaves if turn.types[v].field_shape == grid and v not in known]
    found = surroundings(turn, grid, windows, parts)
    seen = range(len(states), len(turn.wanted))
    given = {leaf: position for position, leaf in enumerate(states)}
    given |= {v: seen.stop + n for n, v in enumerate(v for v in windows if v not in given)}
    needs = turned(found, turn, given, [found.nothing] * len(turn.wanted), steps)
    halo = found.halo(found.margins) if steps else found.nothing
    found.margins = {leaf: needs[position] for leaf, position in given.items() if position in needs}
    return found, told(tuple(grid), found, wider(halo, found.halo(windows)), positions(turn, found))


def positions(what: Program, found: Surroundings) -> list[int]:
    """The axes along which results depend on positions in the whole."""
    grid = found.grid
    axes = frozenset(range(len(grid))) - found.whole.keys()
    names = on_window(what, found, WindowOf(grid, grid, axes, frozenset(found.periodic), axes)).numbers if axes else ()
    return sorted({axis for name, axis in names if name == "origin"})
