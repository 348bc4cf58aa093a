"""What a kernel reads around its threads' own points, and what keeps it from running on a part of its grid."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gpuop.base.errors import Loc
from gpuop.fusion.windows.index_halo import Near, Nearness, group_of
from gpuop.fusion.windows.partial_updates import uncombined
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Expr, FieldParam, Index, Read, Stmt, Write
from gpuop.ir.visit import values, walk, walk_expr

PLURAL = {"layer": "layers", "row": "rows", "column": "columns"}
ENDLESS = "wrap"  # the border whose windows go on at the other end
MIRRORED = {
    "reflect": 0,
    "symmetric": 1,
}  # borders, with how much nearer to the end it is what is read than what is asked for


@dataclass(frozen=True)
class Around:
    """How far a kernel reads around own points along an axis, before and after them, under which borders.

    Attributes:
        mirrored: what is mirrored at an end of the grid lies on the other side of the points there: so far before and after.
        group: the threads of a work-group.
    """

    before: int = 0
    after: int = 0
    borders: Mapping[str, str] = field(default_factory=dict)
    mirrored: tuple[int, int] = (0, 0)
    group: int = 1

    def joined(self, other: Around) -> Around:
        first, last = (max(ends) for ends in zip(self.mirrored, other.mirrored, strict=True))
        borders = {**other.borders, **self.borders}
        return Around(max(self.before, other.before), max(self.after, other.after), borders, (first, last), self.group)

    def whole_groups(self, ends: tuple[int, int]) -> tuple[int, int]:
        """As many points before and after as threads of whole work-groups make."""
        before, after = (-(-points // self.group) * self.group for points in ends)
        return before, after

    def of(self, ends: tuple[int, int]) -> tuple[int, int]:
        """What is needed for so many points before and after others.

        None of these lies outside of the grid: what is mirrored at an end is so far from there, and not farther from others.
        """
        ends = self.whole_groups(ends)
        return max(ends[0] + self.before, self.mirrored[0]), max(ends[1] + self.after, self.mirrored[1])


class EndToEnd(str):
    """Why an axis is whole, where windows would do what one of the whole does: each is needed from end to end."""


@dataclass
class Reaching:
    """What a kernel needs.

    Attributes:
        around: by field and axis; of fields on the kernel's own grid.
        whole: why an axis cannot be cut, for those that cannot.
        groups: the threads of a work-group along each axis.
    """

    around: dict[FieldParam, list[Around]] = field(default_factory=dict)
    whole: dict[int, str] = field(default_factory=dict)
    groups: tuple[int, ...] = ()


def said(kernel: Any, loc: Loc | None = None) -> str:
    """An operator, as reasons name it: one of the library's by the function that the user's line calls."""
    at = loc or kernel.loc
    if at is None:
        return f"operator `{kernel.name}`"
    return f"operator `{at.called or kernel.name}` ({at})"


def reaching(kernel: Kernel, cut: Collection[FieldParam], name: str) -> Reaching:
    """What a kernel needs of the inputs that come in windows, all of which are on its grid; `name` is what reasons call it."""
    axes = kernel.domain.axes
    groups = tuple(group_of(kernel, axis) for axis in axes)
    own = [Around(group=n or 1) for n in groups]
    found = Reaching({param: list(own) for param in kernel.inputs if param in cut}, groups=groups)
    reason = _obstacle(kernel)
    if reason:
        found.whole = dict.fromkeys(range(len(axes)), f"{name} {reason}")
        return found
    near = Nearness(kernel)
    for stmt in walk(kernel.body):
        for read in _reads(stmt):
            if read.field in cut and read.point is not None:
                for axis, at in enumerate(read.point):
                    _read(kernel, near, found, read, axis, at, name)
        near.meet(stmt)
    return found


def _reads(stmt: Stmt) -> Iterator[Read]:
    for value in values(stmt):
        yield from (e for e in walk_expr(value) if isinstance(e, Read))


def _read(kernel: Kernel, near: Nearness, found: Reaching, read: Read, axis: int, at: Expr, who: str) -> None:
    """Take a read's coordinate along an axis."""
    name, n = kernel.domain.axes[axis], kernel.domain.shape[axis]
    place = near.near(at)
    if n == 1:
        return
    if place is None or place.axis != name:
        found.whole.setdefault(
            axis, f"{who} reads `{read.field.hint}` along {PLURAL[name]} {_elsewhere(near, place, at)}"
        )
        return
    group, over = found.groups[axis], MIRRORED.get(read.border)
    before, after = max(-place.low, 0), max(place.high - (group - 1) * place.of_group, 0)
    beyond = after + -n % group  # the last work-group may go on behind the end
    mirrored = (0, 0) if over is None else (max(beyond - over, 0), max(before - over, 0))
    one = Around(before, after, mirrored=mirrored, group=group)
    reach = max(before, beyond)
    if reach >= n - 1:
        reason = f"{who} reads `{read.field.hint}` up to {reach} {PLURAL[name]} away"
        found.whole.setdefault(axis, EndToEnd(f"{reason}, of {n}: cut another axis"))
        return
    if place.low or place.high:
        one = replace(one, borders={read.border: who} if read.border != "unchecked" else {})
    found.around[read.field][axis] = found.around[read.field][axis].joined(one)


def _elsewhere(near: Nearness, place: Near | None, at: Expr) -> str:
    """Where a coordinate is that is not near to the thread's own, and what to do instead."""
    if place is not None:
        return f"at the thread's {place.axis}: compute it of the whole"
    least, most = near.ranges.range(at)
    if least == most and not isinstance(at, Index):
        return "at a fixed place: give what is there as an array of its own"
    return "at a place that is no constant distance away: bound the distance, as in `_row + _clamp(d, -3, 3)`"


def _obstacle(kernel: Kernel) -> str:
    """Why a kernel runs on all of its grid or not at all; empty where it need not."""
    if kernel.group is not None and not all(isinstance(n, int) for n in kernel.group):
        return "has work-groups as large as a device decides: say `_localThreads(…)` with numbers"
    if kernel.group is not None and kernel.domain.elements > 1:
        return "has work-groups, and threads for each element: let threads have points"
    if any(output.initial is not None for output in kernel.outputs):
        return "updates other points than the thread's own: give a new output instead of `inout=`"
    if reason := uncombined(kernel):
        return reason
    for stmt in walk(kernel.body):
        match stmt:
            case Write(point=point) if point is not None:
                return (
                    "writes at other points than the thread's own: let these read there, or update by atomic operations"
                )
    return ""
