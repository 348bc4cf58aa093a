"""Partition of a pipeline by windows of its grid: a program for each stage, and one for the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpuop.base.lru import BoundedCache
from gpuop.engine.jit.call import Trace, in_planes
from gpuop.engine.jit.grid_window import WindowShape, reducing
from gpuop.engine.jit.window_stages import PipelineStages, StageUpdate, comes_in_windows, pipeline_stages
from gpuop.fusion.windows.footprint import Footprint, Place, footprint_of, kernels_grid, positions
from gpuop.fusion.windows.halo_inference import ProgramHalo, infer_halo, merge_axes, wider
from gpuop.fusion.windows.kernel import Name
from gpuop.fusion.windows.program import WindowedProgram, window_program
from gpuop.ir.values import Leaf

WINDOWS_KEPT = 16  # programs of stages on windows of some extents


@dataclass(frozen=True, eq=False)
class GridPartition:
    """The programs of a pipeline for windows of a grid, of any extents.

    Attributes:
        programs: the program of each stage and then that of the results, each with its halo.
        at_once: the program of the last stage together with the results on the grid, if there is one.
        footprint: the joined needs of all programs: a window is the same for all stages.
        windows: programs of stages on windows, before reductions are added; equal extents share kernels.
    """

    pipeline_stages: PipelineStages
    programs: tuple[tuple[Trace, ProgramHalo], ...]
    footprint: Footprint
    at_once: tuple[tuple[Trace, ProgramHalo], ...] = ()
    windows: BoundedCache[Any, WindowedProgram] = field(default_factory=lambda: BoundedCache(WINDOWS_KEPT))


@dataclass(frozen=True, eq=False)
class WindowTrace:
    """The trace of a stage for windows of some extents.

    Attributes:
        cut: for each result, True if it is on the grid.
        numbers: leaves that are numbers of the window.
        known: leaves that are reductions of earlier stages, with their positions among these.
    """

    trace: Trace
    cut: tuple[bool, ...]
    numbers: dict[int, Name]
    known: dict[int, int]


def partition(trace: Trace, grid: Place, shared: Sequence[int]) -> GridPartition:
    """Partition a pipeline; `shared` are the positions of arguments that every window gets whole."""
    stages = pipeline_stages(trace, grid, shared)
    updates = [[isinstance(each, StageUpdate) for each in collectives] for collectives, _ in stages.stages]
    traces = [*(each for _, each in stages.stages), stages.last]
    programs = tuple(
        (each, _halos(each, grid, shared, updated)) for each, updated in zip(traces, [*updates, []], strict=True)
    )
    joined = ProgramHalo(kernels_grid(grid))
    merge_axes(joined, [halos for _, halos in programs])
    margin, axes = joined.nothing, set[int]()
    for each, halos in programs:
        margin = wider(margin, halos.halo(halos.margins))  # fields of constants alone come in windows too
        axes.update(positions(each.program, halos))
    footprint = footprint_of(grid, joined, margin, sorted(axes))
    names = tuple(tuple(map(str, each)) for each, _ in stages.stages)
    last, halos = programs[-1]
    inside = [v in halos.cut for v in last.program.wanted]
    usual = all(c == (k.field_shape == grid) for c, k in zip(inside, trace.kinds, strict=True))
    both = stages.at_once(inside) if usual else None
    at_once = () if both is None else ((both, _halos(both, grid, shared, updates[-1])),)
    footprint = replace(footprint, stages=names, results=trace.kinds, at_once=both is not None)
    return GridPartition(stages, programs, footprint, at_once)


def _halos(trace: Trace, grid: Place, shared: Sequence[int], updates: Sequence[bool]) -> ProgramHalo:
    """Infer the halos of a program; `updates` has True for results of which windows give parts."""
    windows = [v for v, node in trace.program.leaves.items() if comes_in_windows(node, grid, shared)]
    parts = [v for v, updated in zip(trace.program.wanted, updates, strict=False) if updated]
    return infer_halo(trace.program, kernels_grid(grid), windows, parts)


def window_trace(of: GridPartition, stage: int, shape: WindowShape) -> WindowTrace:
    """The trace of a stage for windows of a shape.

    Args:
        stage: its number; the count of stages for the results, and one more for the results with the last stage.
    """
    trace, halos = (*of.programs, *of.at_once)[stage]
    window = shape.of_kernels(halos, of.footprint.periodic)
    windows = of.windows.find((stage, window), lambda: window_program(trace.program, halos, window))
    known = {v: of.pipeline_stages.known.index(n) for v, n in trace.program.leaves.items() if not isinstance(n, Leaf)}
    collectives = of.pipeline_stages.collectives(stage)
    if collectives:
        windows = reducing(windows, collectives, shape)
    numbers = {leaf: name for name, leaf in windows.numbers.items()}
    if collectives:
        reduced = windows.program
        results = tuple(k.replace(field_shape=shape.extents) for k in trace.kinds[len(collectives) :])
        parts = reduced.wanted[: len(reduced.wanted) - len(results)]
        kinds = (*(reduced.types[v] for v in parts), *results)
        planar, by_library = in_planes(reduced)
        several = Trace(reduced, kinds, planar.union(parts), by_library, True, trace.optimize)
        return WindowTrace(several, (*(False for _ in parts), *(True for _ in results)), numbers, known)
    inside = tuple(v in halos.cut for v in trace.program.wanted)
    kinds = tuple(k.replace(field_shape=shape.extents) if c else k for k, c in zip(trace.kinds, inside, strict=True))
    again = Trace(windows.program, kinds, *in_planes(windows.program), trace.several, trace.optimize)
    return WindowTrace(again, inside, numbers, known)
