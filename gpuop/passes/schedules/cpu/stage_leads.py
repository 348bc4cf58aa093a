"""Leads of stages: the distance of each from the results along the axis that threads walk, and its halo around a block."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpuop.ir.analysis.footprints import Surrounding, footprints
from gpuop.ir.analysis.stages import stages
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Const, FieldParam
from gpuop.passes.schedules.cpu.vector_lengths import vector_length

FAR = 1 << 30
MIRRORED = ("reflect", "symmetric")
Border = tuple[str, Const | None]
Span = tuple[int, int]


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
        walk: the axis that threads walk.
        lanes: the lanes of vectors.
    """

    stages: list[Lead]
    live: dict[FieldParam, LiveRange]
    walk: str
    lanes: int


def _walk(kernel: Kernel) -> str:
    """The axis that threads walk: "layer" where stages read others along layers, else "row"; "" where the grid has one axis."""
    axes = kernel.domain.axes
    near = (f for stage in stages(kernel) for param, f in footprints(stage).items() if param in kernel.intermediates)
    if len(axes) == 3 and any(f is not None and (f.low[0] or f.high[0]) for f in near):
        return "layer"
    return "row" if len(axes) > 1 else ""


def leads(kernel: Kernel) -> Leads:
    walk, axes = _walk(kernel), kernel.domain.axes
    in_order = [Lead(stage) for stage in stages(kernel)]
    live = {
        param: LiveRange(lead, FAR)
        for lead in in_order
        for param in lead.kernel.written
        if param in kernel.intermediates
    }
    for reader in reversed(in_order):
        for param, near in footprints(reader.kernel).items():
            if param in live and near is not None:
                for axis, span in zip(axes, zip(near.low, near.high, strict=True), strict=True):
                    _extend(live[param], reader, axis, span, mirrored(near), axis == walk)
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


def mirrored(near: Surrounding) -> bool:
    return any(border in MIRRORED for border, _ in near.borders)
