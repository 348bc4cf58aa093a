"""The halo of a kernel: its reads around own points, and the reasons why it cannot run on a part of its grid."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from gpuop.base.errors import Loc
from gpuop.base.records import dataclass
from gpuop.fusion.windows.index_halo import IndexHalo, OffsetRange, group_of
from gpuop.fusion.windows.partial_updates import combining_refusal
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Expr, FieldParam, Index, Read, Stmt, Write
from gpuop.ir.visit import values, walk, walk_expr

PLURAL = {"layer": "layers", "row": "rows", "column": "columns"}
ENDLESS = "wrap"  # the border of periodic axes
MIRRORED = {
    "reflect": 0,
    "symmetric": 1,
}  # borders that mirror at an end, with the offset of the mirrored index


@dataclass(frozen=True)
class AxisHalo:
    """The halo of a kernel's reads along an axis: points before and after own points, and the borders.

    Attributes:
        mirrored: the distance before and after points at an end of the grid of the points that a border mirrors.
        group: the threads of a work-group along the axis.
    """

    before: int = 0
    after: int = 0
    borders: Mapping[str, str] = field(default_factory=dict)
    mirrored: tuple[int, int] = (0, 0)
    group: int = 1

    def joined(self, other: AxisHalo) -> AxisHalo:
        first, last = (max(ends) for ends in zip(self.mirrored, other.mirrored, strict=True))
        borders = {**other.borders, **self.borders}
        return AxisHalo(
            max(self.before, other.before), max(self.after, other.after), borders, (first, last), self.group
        )

    def whole_groups(self, ends: tuple[int, int]) -> tuple[int, int]:
        """Round points before and after up to whole work-groups."""
        before, after = (-(-points // self.group) * self.group for points in ends)
        return before, after

    def of(self, ends: tuple[int, int]) -> tuple[int, int]:
        """The halo of points in a halo: so many before and after others.

        None of them is outside of the grid, so mirrored points are counted from its end and need no more from others.
        """
        ends = self.whole_groups(ends)
        return max(ends[0] + self.before, self.mirrored[0]), max(ends[1] + self.after, self.mirrored[1])


class EndToEnd(str):
    """The reason for a whole axis whose windows would be needed from end to end."""


@dataclass
class KernelHalo:
    """The halo of a kernel.

    Attributes:
        around: the halo of each field on the grid of the kernel, along each axis.
        whole: axes that cannot be cut, with reasons.
        groups: the threads of a work-group along each axis.
    """

    around: dict[FieldParam, list[AxisHalo]] = field(default_factory=dict)
    whole: dict[int, str] = field(default_factory=dict)
    groups: tuple[int, ...] = ()


def operator_label(kernel: Any, loc: Loc | None = None) -> str:
    """The name of an operator in reasons: for the library, the function that the user's line calls."""
    at = loc or kernel.loc
    if at is None:
        return f"operator `{kernel.name}`"
    return f"operator `{at.called or kernel.name}` ({at})"


def infer_kernel_halo(kernel: Kernel, cut: Collection[FieldParam], name: str) -> KernelHalo:
    """Infer the halo of inputs that come in windows, all on the grid of the kernel; `name` is its name in reasons."""
    axes = kernel.domain.axes
    groups = tuple(group_of(kernel, axis) for axis in axes)
    own = [AxisHalo(group=n or 1) for n in groups]
    halo = KernelHalo({param: list(own) for param in kernel.inputs if param in cut}, groups=groups)
    reason = _refusal(kernel)
    if reason:
        halo.whole = dict.fromkeys(range(len(axes)), f"{name} {reason}")
        return halo
    near = IndexHalo(kernel)
    for stmt in walk(kernel.body):
        for read in _reads(stmt):
            if read.field in cut and read.point is not None:
                for axis, at in enumerate(read.point):
                    _read(kernel, near, halo, read, axis, at, name)
        near.meet(stmt)
    return halo


def _reads(stmt: Stmt) -> Iterator[Read]:
    for value in values(stmt):
        yield from (e for e in walk_expr(value) if isinstance(e, Read))


def _read(kernel: Kernel, near: IndexHalo, halo: KernelHalo, read: Read, axis: int, at: Expr, who: str) -> None:
    """Add a read's coordinate along an axis."""
    name, n = kernel.domain.axes[axis], kernel.domain.shape[axis]
    place = near.near(at)
    if n == 1:
        return
    if place is None or place.axis != name:
        halo.whole.setdefault(
            axis, f"{who} reads `{read.field.hint}` along {PLURAL[name]} {_distance_reason(near, place, at)}"
        )
        return
    group, over = halo.groups[axis], MIRRORED.get(read.border)
    before, after = max(-place.low, 0), max(place.high - (group - 1) * place.of_group, 0)
    beyond = after + -n % group  # the last work-group may go on behind the end
    mirrored = (0, 0) if over is None else (max(beyond - over, 0), max(before - over, 0))
    one = AxisHalo(before, after, mirrored=mirrored, group=group)
    reach = max(before, beyond)
    if reach >= n - 1:
        reason = f"{who} reads `{read.field.hint}` up to {reach} {PLURAL[name]} away"
        halo.whole.setdefault(axis, EndToEnd(f"{reason}, of {n}: cut another axis"))
        return
    if place.low or place.high:
        one = replace(one, borders={read.border: who} if read.border != "unchecked" else {})
    halo.around[read.field][axis] = halo.around[read.field][axis].joined(one)


def _distance_reason(near: IndexHalo, place: OffsetRange | None, at: Expr) -> str:
    """The place of a coordinate that has no bounded distance, and a remedy."""
    if place is not None:
        return f"at the thread's {place.axis}: compute it of the whole"
    least, most = near.ranges.range(at)
    if least == most and not isinstance(at, Index):
        return "at a fixed place: give what is there as an array of its own"
    return "at a place that is no constant distance away: bound the distance, as in `_row + _clamp(d, -3, 3)`"


def _refusal(kernel: Kernel) -> str:
    """The reason why a kernel must run on its whole grid; empty if there is none."""
    if kernel.group is not None and not all(isinstance(n, int) for n in kernel.group):
        return "has work-groups as large as a device decides: say `_localThreads(…)` with numbers"
    if kernel.group is not None and kernel.domain.elements > 1:
        return "has work-groups, and threads for each element: let threads have points"
    if any(output.initial is not None for output in kernel.outputs):
        return "updates other points than the thread's own: give a new output instead of `inout=`"
    if reason := combining_refusal(kernel):
        return reason
    for stmt in walk(kernel.body):
        match stmt:
            case Write(point=point) if point is not None:
                return (
                    "writes at other points than the thread's own: let these read there, or update by atomic operations"
                )
    return ""
