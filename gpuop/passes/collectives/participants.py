"""Participants of collective operations: the threads of a work-group, along one of its axes, or of equal parts of it."""

from __future__ import annotations

import math

from gpuop.base.errors import Loc, SemanticError
from gpuop.base.records import dataclass
from gpuop.ir.build import Builder, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import GRID_AXES, Const, Expr, Index
from gpuop.ir.target_expressions import Extent
from gpuop.ir.types import INT

WARP = 32  # threads that shuffle values where a target can; the order of operations follows it on all targets


@dataclass(frozen=True)
class PartOfGroup:
    """The part of a work-group that a thread is in: threads of the grid, numbered in row-major order.

    Attributes:
        size: the greatest number of its threads.
        parts: the number of parts of the work-group.
        which: the number of the part.
        number: the number of the thread in its part.
        members: the number of threads of the part.
        inside: whether the thread is in the grid; None where tail threads never run the operation.
        aligned: whether threads of consecutive numbers are adjacent in the work-group, and parts too.
    """

    size: int
    parts: int
    which: Expr
    number: Expr
    members: Expr
    inside: Expr | None
    aligned: bool

    @property
    def in_warp(self) -> bool:
        """Return whether the part lies in one warp."""
        return self.aligned and self.size <= WARP and (self.parts == 1 or self.size & (self.size - 1) == 0)

    @property
    def of_warps(self) -> bool:
        """Return whether the part is longer than a warp, and begins where a warp does."""
        return self.aligned and self.size > WARP and (self.parts == 1 or self.size % WARP == 0)

    @property
    def width(self) -> int:
        """The lanes of a warp that a part has."""
        return min(WARP, 1 << (self.size - 1).bit_length())

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of memory with a value for each thread of the work-group."""
        return (self.size,) if self.parts == 1 else (self.parts, self.size)

    def place(self, number: Expr) -> tuple[Expr, ...]:
        """The index of the value of a thread in that memory."""
        return (number,) if self.parts == 1 else (self.which, number)

    def has(self, last: int) -> bool:
        """Return whether all parts are proved to have more threads than `last`."""
        return isinstance(self.members, Const) and last < int(self.members.value)


def check_threads(over: int, threads: int, loc: Loc | None = None) -> None:
    """Check that parts of `over` threads divide a work-group.

    Raises:
        SemanticError: they do not.
    """
    if over < 1 or threads % over:
        parts = f"`over={over}` makes no equal parts of a work-group of {threads} threads; "
        raise SemanticError(f"{parts}give a divisor of {threads}, or the name of an axis", loc)


def part_of(kernel: Kernel, over: Extent | str, b: Builder, loc: Loc | None) -> PartOfGroup:
    """The parts of a kernel's work-groups, as `Collective.over` says, with the values that depend on the thread."""
    group = _Group(kernel, b)
    threads = math.prod(group.sizes.values())
    if isinstance(over, str) and over:
        return group.along(over)
    assert isinstance(over, (int, str))
    size = threads if isinstance(over, str) else over
    if kernel.target is None:  # an estimate, for which work-groups are of any size
        size = math.gcd(size, threads)
    check_threads(size, threads, loc)
    several = [axis for axis in GRID_AXES if group.sizes[axis] > 1]
    if size == threads and len(several) <= 1:
        return group.along(several[0] if several else "column")
    return group.in_a_row(size, threads)


class _Group:
    """A work-group of a kernel: its extents, and the number of its threads along each axis that are in the grid."""

    def __init__(self, kernel: Kernel, b: Builder) -> None:
        self.b = b
        self.sizes = dict(zip(GRID_AXES, kernel.work_group, strict=True))
        self.have: dict[str, Expr] = {}
        for axis, size in self.sizes.items():
            extent = kernel.domain.extent(axis)
            is_open = extent in kernel.extents
            self.have[axis] = constant(size, INT)
            if size > 1 and (extent % size or is_open):
                before = b.apply("mul", Index("group", axis), size)
                end = Index("global_size", axis) if is_open else constant(extent, INT)
                self.have[axis] = b.apply("min", b.apply("sub", end, before), size)
        self.whole = kernel.whole

    def local(self, axis: str) -> Expr:
        return Index("local", axis) if self.sizes[axis] > 1 else constant(0, INT)

    def along(self, axis: str) -> PartOfGroup:
        """The threads along an axis with the same position along the others."""
        b, size = self.b, self.sizes[axis]
        others = [other for other in GRID_AXES if other != axis]
        which: Expr = constant(0, INT)
        for other in others:
            which = b.apply("add", b.apply("mul", which, self.sizes[other]), self.local(other))
        parts = math.prod(self.sizes[other] for other in others)
        later = GRID_AXES[GRID_AXES.index(axis) + 1 :]
        aligned = all(self.sizes[other] == 1 for other in later)
        return PartOfGroup(size, parts, which, self.local(axis), self.have[axis], self.inside(), aligned)

    def inside(self) -> Expr | None:
        """The test whether the thread is in the grid, where tail threads run too; else None."""
        ends = {axis: have for axis, have in self.have.items() if not isinstance(have, Const)}
        return self.b.all_of(self.b.apply("lt", self.local(axis), have) for axis, have in ends.items() if self.whole)

    def in_a_row(self, size: int, threads: int) -> PartOfGroup:
        """Parts of `size` threads in row-major order. Where the grid ends in the group, only its threads are counted."""
        b = self.b
        place: Expr = constant(0, INT)
        for axis in GRID_AXES:
            place = b.apply("add", b.apply("mul", place, self.sizes[axis]), self.local(axis))
        which = b.apply("div", place, size) if size < threads else constant(0, INT)
        first = b.apply("mul", which, size)
        end = b.apply("add", first, size)
        ends = [axis for axis, have in self.have.items() if not isinstance(have, Const)]
        if not ends:
            return PartOfGroup(
                size, threads // size, which, b.apply("sub", place, first), constant(size, INT), None, True
            )
        if self.sizes["column"] % size == 0:
            return self.of_a_row(size, threads, which)
        before, inside = self.counted(first), self.inside()
        number = b.apply("sub", self.counted(place), before)
        if inside is not None:
            number = b.apply("choose", inside, number, 0)
        members = b.apply("sub", self.counted(end), before)
        row = len([axis for axis in GRID_AXES if self.sizes[axis] > 1]) == 1
        return PartOfGroup(size, threads // size, which, number, members, inside, row)

    def of_a_row(self, size: int, threads: int, which: Expr) -> PartOfGroup:
        """Parts of `size` threads of a row; the threads of the grid come first."""
        b, column, have = self.b, self.local("column"), self.have["column"]
        number = b.apply("mod", column, size)
        members: Expr = constant(size, INT)
        if not isinstance(have, Const):
            members = b.apply("min", b.apply("sub", have, b.apply("sub", column, number)), size)
        return PartOfGroup(size, threads // size, which, number, members, self.inside(), True)

    def counted(self, place: Expr) -> Expr:
        """The number of threads of the grid before a position in row-major order."""
        b = self.b
        column, rest = b.apply("mod", place, self.sizes["column"]), b.apply("div", place, self.sizes["column"])
        row, layer = b.apply("mod", rest, self.sizes["row"]), b.apply("div", rest, self.sizes["row"])
        layers, rows, columns = (self.have[axis] for axis in GRID_AXES)
        in_layer, in_row = b.apply("lt", layer, layers), b.apply("lt", row, rows)
        whole_rows = b.apply("choose", in_layer, b.apply("min", row, rows), 0)
        more = b.apply("choose", b.apply("and", in_layer, in_row), b.apply("min", column, columns), 0)
        before = b.apply("add", b.apply("mul", b.apply("min", layer, layers), rows), whole_rows)
        return b.apply("add", b.apply("mul", before, columns), more)
