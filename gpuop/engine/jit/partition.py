"""Partition of a pipeline by windows of its grid: a program for each stage, and one for the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from gpuop.base.lru import BoundedCache
from gpuop.engine.jit.call import Traced, in_planes
from gpuop.engine.jit.window_reductions import reducing
from gpuop.engine.jit.window_stages import Staged, StageUpdate, comes_in_windows, staged
from gpuop.fusion.windows.footprint import Footprint, Place, kernels_grid, positions, told
from gpuop.fusion.windows.halo_inference import Surroundings, surroundings, together, wider
from gpuop.fusion.windows.kernel import Name, WindowOf
from gpuop.fusion.windows.program import WindowedProgram, on_window
from gpuop.ir.values import Leaf

CutAxes: TypeAlias = tuple[
    frozenset[int], frozenset[int]
]  # axes that are computed in part, and axes that are wanted in part
WINDOWS_KEPT = 16  # programs of stages on windows of some extents


@dataclass(frozen=True, eq=False)
class Parted:
    """The programs of a pipeline for windows of a grid, of any extents.

    Attributes:
        programs: the program of each stage and then that of the results, each with its halo.
        at_once: the program of the last stage together with the results on the grid, if there is one.
        footprint: the joined needs of all programs: a window is the same for all stages.
        windows: programs of stages on windows, before reductions are added; equal extents share kernels.
    """

    staged: Staged
    programs: tuple[tuple[Traced, Surroundings], ...]
    footprint: Footprint
    at_once: tuple[tuple[Traced, Surroundings], ...] = ()
    windows: BoundedCache[Any, WindowedProgram] = field(default_factory=lambda: BoundedCache(WINDOWS_KEPT))


@dataclass(frozen=True, eq=False)
class Windowed:
    """The trace of a stage for windows of some extents.

    Attributes:
        cut: for each result, True if it is on the grid.
        numbers: leaves that are numbers of the window.
        known: leaves that are reductions of earlier stages, with their positions among these.
    """

    traced: Traced
    cut: tuple[bool, ...]
    numbers: dict[int, Name]
    known: dict[int, int]


def parted(made: Traced, grid: Place, shared: Sequence[int]) -> Parted:
    """Partition a pipeline; `shared` are the positions of arguments that every window gets whole."""
    stages = staged(made, grid, shared)
    each_of = [
        *((made, [isinstance(j, StageUpdate) for j in joint]) for joint, made in stages.stages),
        (stages.last, []),
    ]
    programs = tuple((each, _around(each, grid, shared, updates)) for each, updates in each_of)
    every = Surroundings(kernels_grid(grid))
    together(every, [found for _, found in programs])
    halo, placed = every.nothing, set[int]()
    for each, found in programs:
        halo = wider(halo, found.halo(found.margins))  # fields of constants alone come in windows too
        placed.update(positions(each.program, found))
    told_of = told(grid, every, halo, sorted(placed))
    names = tuple(tuple(map(str, each)) for each, _ in stages.stages)
    last, found = programs[-1]
    inside = [v in found.cut for v in last.program.wanted]
    usual = all(c == (k.field_shape == grid) for c, k in zip(inside, made.kinds, strict=True))
    both = stages.at_once(inside) if usual else None
    at_once = () if both is None else ((both, _around(both, grid, shared, each_of[-2][1])),)
    told_of = replace(told_of, stages=names, results=made.kinds, at_once=both is not None)
    return Parted(stages, programs, told_of, at_once)


def _around(made: Traced, grid: Place, shared: Sequence[int], updates: Sequence[bool]) -> Surroundings:
    """Infer the halo of a window; `updates` has True for results of which windows give parts."""
    windows = [v for v, node in made.program.leaves.items() if comes_in_windows(node, grid, shared)]
    parts = [v for v, updated in zip(made.program.wanted, updates, strict=False) if updated]
    return surroundings(made.program, kernels_grid(grid), windows, parts)


def windowed(of: Parted, stage: int, extents: Place, cut: CutAxes, points: Place) -> Windowed:
    """The program of a stage for windows of these extents, cut along some axes.

    Args:
        stage: its number; the count of stages for the results, and one more for the results with the last stage.
        points: the points that are wanted along each axis of the grid.
    """
    made, found = (*of.programs, *of.at_once)[stage]
    more = len(extents) - len(found.grid)
    axes, partial = (frozenset(a - more for a in each) for each in cut)
    periodic = axes & frozenset(a - more for a in of.footprint.periodic)
    what = WindowOf(found.grid, kernels_grid(extents), axes, periodic, partial)
    windows = of.windows.find((stage, what), lambda: on_window(made.program, found, what))
    known = {v: of.staged.known.index(n) for v, n in made.program.leaves.items() if not isinstance(n, Leaf)}
    joint = of.staged.joint(stage)
    if joint:
        windows = reducing(windows, joint, points, extents)
    numbers = {leaf: name for name, leaf in windows.numbers.items()}
    if joint:
        reduced = windows.program
        results = tuple(k.replace(field_shape=extents) for k in made.kinds[len(joint) :])
        parts = reduced.wanted[: len(reduced.wanted) - len(results)]
        kinds = (*(reduced.types[v] for v in parts), *results)
        planar, by_library = in_planes(reduced)
        several = Traced(reduced, kinds, planar.union(parts), by_library, True, made.optimize)
        return Windowed(several, (*(False for _ in parts), *(True for _ in results)), numbers, known)
    inside = tuple(v in found.cut for v in made.program.wanted)
    kinds = tuple(k.replace(field_shape=extents) if c else k for k, c in zip(made.kinds, inside, strict=True))
    again = Traced(windows.program, kinds, *in_planes(windows.program), made.several, made.optimize)
    return Windowed(again, inside, numbers, known)
