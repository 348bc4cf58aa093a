"""A window of a grid, as pipelines and graphs compute it: its points, its numbers, and its programs with reductions appended.

The partition of a pipeline has such a program for each stage, and one for the results.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from gpuop.base.errors import blaming
from gpuop.base.lru import BoundedCache
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import is_array
from gpuop.dsl.fields.sources import Deferred
from gpuop.engine.jit.call import Trace, in_planes
from gpuop.engine.jit.window_stages import (
    GridCollective,
    PipelineStages,
    StageUpdate,
    comes_in_windows,
    pipeline_stages,
)
from gpuop.fusion.program import Program, program
from gpuop.fusion.windows.footprint import Footprint, Place, footprint_of, kernels_grid, positions
from gpuop.fusion.windows.halo_inference import ProgramHalo, infer_halo, merge_axes, wider
from gpuop.fusion.windows.kernel import NUMBER, Name, WindowExtents
from gpuop.fusion.windows.program import WindowedProgram, window_program
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf, Node

WINDOWS_KEPT = 16  # programs of stages on windows of some extents


@dataclass(frozen=True)
class WindowShape:
    """The facts of a window that its programs depend on; windows of one shape share kernels.

    Attributes:
        extents, points: the points that the window has, and those that are wanted, along each axis of the grid.
        cut, partial: the axes of which a part is computed, and of which a part is wanted.
    """

    extents: Place
    points: Place
    cut: frozenset[int]
    partial: frozenset[int]

    def of_kernels(self, halos: ProgramHalo, periodic: Collection[int]) -> WindowExtents:
        """The extents by the axes of kernels, which have the first axes of large grids as one."""
        more = len(self.extents) - len(halos.grid)
        cut, around, partial = (frozenset(a - more for a in axes) for axes in (self.cut, periodic, self.partial))
        return WindowExtents(halos.grid, kernels_grid(self.extents), cut, cut & around, partial)


@dataclass(frozen=True)
class GridWindow:
    """The points [start, stop) of a grid, in a window.

    Attributes:
        ends: for each axis the first point of the window and the one behind the last; below 0 where the ends of the grid meet.
        shape: its shape.
    """

    grid: Place
    start: Place
    stop: Place
    ends: tuple[tuple[int, int], ...]
    shape: WindowShape

    @staticmethod
    def of(footprint: Footprint, start: Place, stop: Place, computed: tuple[Place, Place] | None = None) -> GridWindow:
        """The window for some points.

        Args:
            computed: the first of the points that are computed, and the one behind the last, if they are more.

        Raises:
            SemanticError: an axis that must be whole is cut, or a work-group.
        """
        if computed not in (None, (start, stop)):
            footprint.window(start, stop)  # refuses a window that divides a work-group
        grid, ends = footprint.grid, footprint.window(*(computed or (start, stop)))
        extents, points = (tuple(b - a for a, b in each) for each in (ends, zip(start, stop, strict=True)))
        cut = cut_axes(*(computed or (start, stop)), grid)
        return GridWindow(grid, start, stop, ends, WindowShape(extents, points, cut, cut_axes(start, stop, grid)))

    @property
    def inner(self) -> tuple[slice, ...]:
        """The place of the wanted points in the window."""
        each = zip(self.start, self.stop, self.ends, strict=True)
        return tuple(slice(a - first, b - first) for a, b, (first, _) in each)

    def number(self, name: str, axis: int) -> int:
        """The value of a number that kernels of windows take: the window's first point in the grid, or the ends of the wanted
        points in the window."""
        first = self.ends[axis][0]
        values = {"origin": first % self.grid[axis], "first": self.start[axis] - first, "last": self.stop[axis] - first}
        return values[name]


def cut_axes(start: Place, stop: Place, grid: Place) -> frozenset[int]:
    """The axes along which [start, stop) is not the whole grid."""
    return frozenset(axis for axis, ends in enumerate(zip(start, stop, strict=True)) if ends != (0, grid[axis]))


def reducing(on: WindowedProgram, of: Sequence[GridCollective], shape: WindowShape) -> WindowedProgram:
    """Append reductions to a program on windows: they replace its first results, and the others stay.

    The offset of the wanted points is a number of the window, so that windows of equal extents have the same kernels.
    """
    what, points, window = on.program, shape.points, shape.extents
    firsts = _firsts(points, window)
    fields, outputs = list[Node](), list[Field]()
    for each in of:
        kind = each.taken(window)
        field = Field.of(Leaf(kind.folded), kind=kind)
        fields.append(field.node)
        with blaming(each.node.call.loc):  # the user's line; the caller may be Dask
            outputs += each.of_window(field, firsts, points)
    numbered = {first.node: ("first", axis - len(window) + len(kernels_grid(window))) for axis, first in firsts.items()}
    more = program([f.node for f in outputs], [*fields, *numbered])
    last = max(what.types) + 1
    numbers: dict[Name, int] = {}
    leaves = dict[int, int]()
    for v, node in more.leaves.items():
        if node in numbered:
            numbers[numbered[node]] = leaves[v] = on.numbers.get(numbered[node], v + last)
        else:
            leaves[v] = what.results[fields.index(node)]
    return WindowedProgram(_behind(what, more, leaves, len(of)), {**on.numbers, **numbers})


def _firsts(points: Place, window: Place) -> dict[int, Field]:
    """Leaves for the first wanted point of a window, along axes where the window has more points than are wanted."""
    axes = [axis for axis, (count, extent) in enumerate(zip(points, window, strict=True)) if count != extent]
    return {axis: Field.of(Leaf(NUMBER, by_value=True, name=f"first{axis}")) for axis in axes}


def _behind(what: Program, more: Program, leaves: dict[int, int], count: int) -> Program:
    """Append the program `more`, whose `leaves` are values of `what`; its results replace the first `count` of `what`."""
    last, first = max(what.types) + 1, max((op.number for op in what.ops), default=-1) + 1
    moved = {v: leaves.get(v, v + last) for v in more.types}
    ops = tuple(
        replace(
            op,
            number=op.number + first,
            inputs=tuple(moved[v] for v in op.inputs),
            outputs=tuple(moved[v] for v in op.outputs),
        )
        for op in more.ops
    )
    numbers: dict[int, Node] = {
        leaves[v]: node for v, node in more.leaves.items() if isinstance(node, Leaf) and node.by_value
    }
    return replace(
        what,
        leaves=numbers | what.leaves,
        ops=(*what.ops, *ops),
        results=(*(moved[v] for v in more.results), *what.results[count:]),
        types=what.types | {moved[v]: kind for v, kind in more.types.items() if moved[v] not in what.types},
        key=(*what.key, more.key, tuple(leaves.items())),
        names={},
    )


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
    inside = [v in halos.cut for v in last.program.results]
    usual = all(c == (k.field_shape == grid) for c, k in zip(inside, trace.kinds, strict=True))
    both = stages.at_once(inside) if usual else None
    at_once = () if both is None else ((both, _halos(both, grid, shared, updates[-1])),)
    footprint = replace(footprint, stages=names, results=trace.kinds, at_once=both is not None)
    return GridPartition(stages, programs, footprint, at_once)


def _halos(trace: Trace, grid: Place, shared: Sequence[int], updates: Sequence[bool]) -> ProgramHalo:
    """Infer the halos of a program; `updates` has True for results of which windows give parts."""
    windows = [v for v, node in trace.program.leaves.items() if comes_in_windows(node, grid, shared)]
    parts = [v for v, updated in zip(trace.program.results, updates, strict=False) if updated]
    return infer_halo(trace.program, kernels_grid(grid), windows, parts)


def window_trace(of: GridPartition, stage: int, shape: WindowShape) -> WindowTrace:
    """The trace of a stage for windows of a shape.

    Args:
        stage: its number; the count of stages for the results, and one more for the results with the last stage.
    """
    trace, halos = (*of.programs, *of.at_once)[stage]
    window = shape.of_kernels(halos, of.footprint.periodic)
    windows = of.windows.find((stage, window), lambda: window_program(trace.program, halos, window))
    stage_leaves = {
        v: of.pipeline_stages.known.index(n) for v, n in trace.program.leaves.items() if not isinstance(n, Leaf)
    }
    collectives = of.pipeline_stages.collectives(stage)
    if collectives:
        windows = reducing(windows, collectives, shape)
    numbers = {leaf: name for name, leaf in windows.numbers.items()}
    if collectives:
        reduced = windows.program
        results = tuple(k.replace(field_shape=shape.extents) for k in trace.kinds[len(collectives) :])
        parts = reduced.results[: len(reduced.results) - len(results)]
        kinds = (*(reduced.types[v] for v in parts), *results)
        planar, by_library = in_planes(reduced)
        several = Trace(reduced, kinds, planar.union(parts), by_library, True, trace.optimize)
        return WindowTrace(several, (*(False for _ in parts), *(True for _ in results)), numbers, stage_leaves)
    inside = tuple(v in halos.cut for v in trace.program.results)
    kinds = tuple(k.replace(field_shape=shape.extents) if c else k for k, c in zip(trace.kinds, inside, strict=True))
    again = Trace(windows.program, kinds, *in_planes(windows.program), trace.several, trace.optimize)
    return WindowTrace(again, inside, numbers, stage_leaves)


def standing(value: Any) -> Any:
    """A placeholder array of a type, without memory."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple) and not is_array(value[1]):
        return np.broadcast_to(np.zeros((), value[1]), value[0])
    if isinstance(value, FieldType):
        return np.broadcast_to(np.zeros((), value.array_dtype), value.array_shape)
    return value


def grids_of(trace: Trace, shared: Collection[int]) -> list[Place]:
    """The grids of a program's arguments, but for those that are whole."""
    sources = (n.source for n in trace.program.leaves.values() if isinstance(n, Leaf))
    deferred = [s for s in sources if isinstance(s, Deferred)]
    return [tuple(s.kind.field_shape) for s in deferred if s.placeholder.position not in shared]


def is_whole(of: GridPartition) -> bool:
    """Return whether no axis can be cut."""
    return len(of.footprint.whole) == len(of.footprint.grid)
