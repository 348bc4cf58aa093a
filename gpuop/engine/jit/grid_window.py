"""A window of a grid, as pipelines and graphs compute it: its points, its numbers, and its programs with reductions appended."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from gpuop.base.errors import blaming
from gpuop.dsl.fields.field import Field
from gpuop.engine.jit.window_stages import GridCollective
from gpuop.fusion.program import Program, program
from gpuop.fusion.windows.footprint import Footprint, Place, kernels_grid
from gpuop.fusion.windows.halo_inference import ProgramHalo
from gpuop.fusion.windows.kernel import NUMBER, Name, WindowExtents
from gpuop.fusion.windows.program import WindowedProgram
from gpuop.ir.values import Leaf, Node


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
    fields, wanted = list[Node](), list[Field]()
    for each in of:
        kind = each.taken(window)
        field = Field.of(Leaf(kind.folded), kind=kind)
        fields.append(field.node)
        with blaming(each.node.call.loc):  # the user's line; the caller may be Dask
            wanted += each.of_window(field, firsts, points)
    given = {first.node: ("first", axis - len(window) + len(kernels_grid(window))) for axis, first in firsts.items()}
    more = program([f.node for f in wanted], [*fields, *given])
    last = max(what.types) + 1
    numbers: dict[Name, int] = {}
    leaves = dict[int, int]()
    for v, node in more.leaves.items():
        if node in given:
            numbers[given[node]] = leaves[v] = on.numbers.get(given[node], v + last)
        else:
            leaves[v] = what.wanted[fields.index(node)]
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
        wanted=(*(moved[v] for v in more.wanted), *what.wanted[count:]),
        types=what.types | {moved[v]: kind for v, kind in more.types.items() if moved[v] not in what.types},
        key=(*what.key, more.key, tuple(leaves.items())),
        names={},
    )
