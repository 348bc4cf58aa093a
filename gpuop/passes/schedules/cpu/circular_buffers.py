"""Circular buffers of intermediates: a thread keeps the newest rows or layers of its block along the axis that it walks.

The row y of an intermediate lies in slot y mod `slots`; the slot after the last takes rows outside of the field. With three slots:

    row     -1 |  0   1   2   3   4   5  ...        rows 3, 4 and 5 are still read: those before are overwritten
    slot     3 |  0   1   2   0   1   2  ...
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache

from gpuop.base.records import dataclass
from gpuop.ir.analysis.footprints import footprints
from gpuop.ir.analysis.stages import stages
from gpuop.ir.borders import Coordinate, inside, place
from gpuop.ir.build import Builder
from gpuop.ir.extents import extent
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Array, Expr, FieldParam, Ref, Var
from gpuop.ir.types import INT, Type
from gpuop.passes.schedules.common.register_windows import MIRRORED, Span
from gpuop.passes.schedules.cpu.vector_lengths import vector_length

FAR = 1 << 30
Border = tuple[str, Expr | None]


@dataclass
class Lead:
    """The lead of a stage over the results.

    Attributes:
        kernel: the stage, without intermediates.
        ahead: the number of rows or layers between the results and the stage.
        start: its first row or layer, relative to the first one of the block.
        halo: the numbers of points that it computes before and behind a block, by axis that is not walked.
    """

    kernel: Kernel
    ahead: int = 0
    start: int = 0
    halo: dict[str, Span] = field(default_factory=dict)

    def around(self, axis: str) -> Span:
        return self.halo.get(axis, (0, 0))


@dataclass
class LiveRange:
    """The live range of an intermediate.

    Attributes:
        lead: the stage that computes it.
        oldest: the oldest row or layer that is still read, relative to that of the results.
        reach: the distance of reads beyond an edge, by axis.
        border: the border of these reads.
    """

    lead: Lead
    oldest: int = 0
    reach: dict[str, int] = field(default_factory=dict)
    border: Border = ("clamp", None)

    def beyond(self, axis: str) -> int:
        return self.reach.get(axis, 0)


@dataclass(frozen=True)
class Leads:
    """The stages of a kernel.

    Attributes:
        stages: the leads, in the order in which stages run.
        live: the live ranges of intermediates; all reads of them are at constant distances.
        walk: the axis that threads walk: "layer" where stages read others along layers, else "row"; "" where there is one axis.
        lanes: the lanes of vectors.
    """

    stages: list[Lead]
    live: dict[FieldParam, LiveRange]
    walk: str
    lanes: int


@lru_cache(maxsize=16)  # a schedule asks for it at each decision
def leads(kernel: Kernel) -> Leads:
    axes, in_order = kernel.domain.axes, [Lead(stage) for stage in stages(kernel)]
    every = (f for lead in in_order for param, f in footprints(lead.kernel).items() if param in kernel.intermediates)
    layered = len(axes) == 3 and any(f is not None and (f.low[0] or f.high[0]) for f in every)
    walk = "layer" if layered else "row" if len(axes) > 1 else ""
    computed = ((param, lead) for lead in in_order for param in lead.kernel.written)
    live = {param: LiveRange(lead, FAR) for param, lead in computed if param in kernel.intermediates}
    for reader in reversed(in_order):
        for param, near in footprints(reader.kernel).items():
            if param in live and near is not None:
                for axis, span in zip(axes, zip(near.low, near.high, strict=True), strict=True):
                    mirrors = any(border in MIRRORED for border, _ in near.borders)
                    _extend(live[param], reader, axis, span, mirrors, axis == walk)
                for border in near.borders:
                    live[param].border = border
    return Leads(in_order, live, walk, vector_length(kernel))


def _extend(live: LiveRange, reader: Lead, axis: str, span: Span, mirrors: bool, walked: bool) -> None:
    """Extend a live range, and the lead of its stage, to a read; mirrors beyond an edge need the points inside too."""
    lead, (low, high) = live.lead, (min(span[0], 0), max(span[1], 0))
    live.reach[axis] = max(live.beyond(axis), high, -low)
    if walked:
        if mirrors:
            low, high = min(low, -high), max(high, -low)
        lead.ahead, lead.start = max(lead.ahead, reader.ahead + high), min(lead.start, reader.start + low)
        live.oldest = min(live.oldest, reader.ahead + low)
    else:
        (before, behind), around = lead.around(axis), reader.around(axis)
        lead.halo[axis] = max(before, around[0] - low), max(behind, around[1] + high)


@dataclass(frozen=True)
class AxisPosition:
    """The coordinate of a stage along an axis, ahead of that of the results.

    Attributes:
        at: the coordinate.
        wrapped: the coordinate wrapped around into the field, where borders wrap; else `at` itself.
        low, high: the range of `at`.
    """

    at: Expr
    wrapped: Expr
    low: int
    high: int


@dataclass(frozen=True)
class CircularBuffer:
    """The buffer of an intermediate.

    Attributes:
        arrays: one for each element of its tensor, indexed by slot, by row where layers are walked, and by column. Without
            "wrap" there is one slot more, for the rows outside of the field.
        slots: the number of rows or layers; 0 where no axis is walked.
        origin: the first row and column of the block.
        border: the border of reads beyond an edge.
        reach: the number of columns by which these reach beyond the edge.
    """

    arrays: tuple[Array, ...]
    slots: int
    origin: Mapping[str, Var]
    border: Border
    reach: int

    def slot(self, b: Builder, at: Expr, low: int) -> Expr:
        """The slot of a row or layer that is not less than `low`."""
        return b.apply("mod", b.apply("add", at, -(low // self.slots) * self.slots if low < 0 else 0), self.slots)


class CircularBuffers:
    """The buffers of a thread with a block of so many points along each axis, which computes `together` rows at a time.

    Attributes:
        walk: the axis that is walked, "" if there is none.
        step: the rows or layers of an iteration.
        wraps: whether intermediates are read through "wrap": points outside are computed again, from the other end of the field.
        leads: the stages.
        first: the row or layer at which a thread begins, relative to the first one of its block: a multiple of `step`.
        at: the row or layer of the results in an iteration.
        of: the buffer of each intermediate.
        origins: the first row and column of each stage.
    """

    def __init__(self, kernel: Kernel, plan: Leads, sizes: Mapping[str, int], together: int) -> None:
        self.source, self.sizes, self.together = kernel, sizes, together
        self.lanes, self.walk = plan.lanes, plan.walk
        self.step = together if self.walk == "row" else 1
        self.leads, live = plan.stages, plan.live
        self.wraps = any(one.border[0] == "wrap" for one in live.values())
        self.first = -(-max(lead.ahead - lead.start for lead in self.leads) // self.step) * -self.step
        self.at = Var(self.walk, Type(INT))
        self.origins = {id(lead): {axis: Var(f"{axis}s", Type(INT)) for axis in self.axes} for lead in self.leads}
        self.of = {param: self.buffer(param, one) for param, one in live.items()}

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of buffers besides the one that is walked."""
        return ("row", "column") if self.walk == "layer" else ("column",)

    @property
    def arrays(self) -> list[Array]:
        return [array for buffer in self.of.values() for array in buffer.arrays]

    def origin(self, lead: Lead) -> Mapping[str, Var]:
        return self.origins[id(lead)]

    def vectors(self, columns: int) -> int:
        """A number of columns, rounded up to whole vectors."""
        return -(-columns // self.lanes) * self.lanes

    def padding(self, lead: Lead, axis: str) -> tuple[int, int]:
        """The points of a stage's buffers before and behind a block; the last vector of a reader may load columns without use."""
        before, behind = lead.around(axis)
        if axis != "column":
            return before, behind
        more = self.lanes - 1
        return self.vectors(before + more) if before else 0, self.vectors(behind + more) if behind else 0

    def buffer(self, param: FieldParam, one: LiveRange) -> CircularBuffer:
        slots = one.lead.ahead - one.oldest + self.step if self.walk else 0
        shape = [self.sizes[axis] + sum(self.padding(one.lead, axis)) for axis in self.axes]
        if self.walk:
            shape.insert(0, slots + (not self.wraps))
        planes, kind = param.type.planes, Type(param.type.storage)
        names = [f"{param.hint}_{k}_rows" for k in range(planes)] if planes > 1 else [f"{param.hint}_rows"]
        arrays = tuple(Array(name, kind, tuple(shape)) for name in names)
        return CircularBuffer(arrays, slots, self.origin(one.lead), one.border, one.beyond("column"))

    def spot(self, b: Builder, axis: str, at: Expr, low: int, high: int) -> AxisPosition:
        """The position of a stage along an axis, from a coordinate and its bounds."""
        n = self.source.domain.extent(axis)
        if not self.wraps or (low >= 0 and high < n):
            return AxisPosition(at, at, low, high)
        around = place(b, Coordinate(at, extent(self.source, axis), n, low, high), "wrap")
        return AxisPosition(at, b.apply("max", b.apply("min", around, n - 1), 0), low, high)

    def fresh(self, b: Builder, buffer: CircularBuffer, spots: Mapping[str, AxisPosition]) -> tuple[Expr, ...]:
        """The indices of a new row."""
        index: list[Expr] = []
        for axis, spot in spots.items():
            if axis != self.walk:
                index.append(b.apply("sub", spot.at, Ref(buffer.origin[axis])))
                continue
            n = self.source.domain.extent(axis)
            where = Coordinate(spot.at, extent(self.source, axis), n, spot.low, spot.high)
            test = None if self.wraps else inside(b, where)
            slot = buffer.slot(b, spot.at, spot.low if self.wraps else 0)
            index.append(slot if test is None else b.apply("choose", test, slot, buffer.slots))
        return tuple(index)
