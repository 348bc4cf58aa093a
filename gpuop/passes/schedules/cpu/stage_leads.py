"""How far each stage of a kernel runs ahead of the results: along the axis that threads walk, and beyond a thread's block."""

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
    """A stage, when the results are at some row or layer of a block.

    Attributes:
        kernel: the stage, without intermediates.
        ahead: how many rows or layers further it is.
        start: its first one, behind the first one of the block.
        halo: the points that it computes before a block and behind it, along the axes that are not walked.
    """

    kernel: Kernel
    ahead: int = 0
    start: int = 0
    halo: dict[str, Span] = field(default_factory=dict)

    def around(self, axis: str) -> Span:
        return self.halo.get(axis, (0, 0))


@dataclass
class Kept:
    """What is kept of an intermediate.

    Attributes:
        lead: the stage that makes it.
        oldest: the oldest row or layer that is still read, from that of the results.
        reach: how far beyond an edge is read along each axis.
        border: of its reads, if they reach beyond.
    """

    lead: Lead
    oldest: int = 0
    reach: dict[str, int] = field(default_factory=dict)
    border: Border = ("clamp", None)

    def beyond(self, axis: str) -> int:
        return self.reach.get(axis, 0)


@dataclass(frozen=True)
class Leads:
    """What is known of a kernel's stages.

    Attributes:
        stages: in the order in which they run.
        kept: the intermediates; all of these are read at constant distances.
        walk: the axis that threads walk.
        lanes: of vectors.
    """

    stages: list[Lead]
    kept: dict[FieldParam, Kept]
    walk: str
    lanes: int


def _walked(kernel: Kernel) -> str:
    """The axis that threads walk: layers, where stages read others along them, or rows; "" where the grid has one axis."""
    axes = kernel.domain.axes
    near = (f for stage in stages(kernel) for param, f in footprints(stage).items() if param in kernel.intermediates)
    if len(axes) == 3 and any(f is not None and (f.low[0] or f.high[0]) for f in near):
        return "layer"
    return "row" if len(axes) > 1 else ""


def leads(kernel: Kernel) -> Leads:
    walk, axes = _walked(kernel), kernel.domain.axes
    found = [Lead(stage) for stage in stages(kernel)]
    kept = {param: Kept(lead, FAR) for lead in found for param in lead.kernel.written if param in kernel.intermediates}
    for reader in reversed(found):
        for param, near in footprints(reader.kernel).items():
            if param in kept and near is not None:
                for axis, span in zip(axes, zip(near.low, near.high, strict=True), strict=True):
                    _extend(kept[param], reader, axis, span, mirrored(near), axis == walk)
                for border in near.borders:
                    kept[param].border = border
    return Leads(found, kept, walk, vector_length(kernel))


def _extend(kept: Kept, reader: Lead, axis: str, span: Span, mirrors: bool, walked: bool) -> None:
    """Points beyond an edge stand for some inside, which must be there too."""
    lead, (low, high) = kept.lead, (min(span[0], 0), max(span[1], 0))
    kept.reach[axis] = max(kept.beyond(axis), high, -low)
    if walked:
        if mirrors:
            low, high = min(low, -high), max(high, -low)
        lead.ahead, lead.start = max(lead.ahead, reader.ahead + high), min(lead.start, reader.start + low)
        kept.oldest = min(kept.oldest, reader.ahead + low)
    else:
        (before, behind), around = lead.around(axis), reader.around(axis)
        lead.halo[axis] = max(before, around[0] - low), max(behind, around[1] + high)


def mirrored(near: Surrounding) -> bool:
    return any(border in MIRRORED for border, _ in near.borders)
