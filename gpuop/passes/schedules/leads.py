"""How far each stage of a kernel runs ahead of the results: in rows, and in columns beyond a strip's."""

from __future__ import annotations

from dataclasses import dataclass

from gpuop.ir.footprints import Footprint, footprints
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Const, FieldParam
from gpuop.ir.stages import stages
from gpuop.passes.schedules.lane_places import LanePlaces

FAR = 1 << 30
MIRRORED = ("reflect", "symmetric")
Border = tuple[str, Const | None]


@dataclass
class Lead:
    """A stage, when the results are at some row of a block, in a strip of columns.

    Attributes:
        kernel: the stage, without intermediates.
        interior: the first column, and the one behind the last, where no read of a field leaves it.
        ahead: how many rows further it is.
        start: its first row, behind the first one of the block.
        left, right: columns that it computes beyond those of the strip.
    """

    kernel: Kernel
    interior: tuple[int, int]
    ahead: int = 0
    start: int = 0
    left: int = 0
    right: int = 0


@dataclass
class Kept:
    """What is kept of an intermediate.

    Attributes:
        lead: the stage that makes it.
        oldest: the oldest row that is still read, from that of the results.
        reach: how many rows and columns beyond an edge are read.
        border: of its reads, if they reach beyond.
    """

    lead: Lead
    oldest: int = 0
    reach: tuple[int, int] = (0, 0)
    border: Border = ("clamp", None)


Leads = tuple[list[Lead], dict[FieldParam, Kept]]


def leads(kernel: Kernel) -> Leads:
    """The stages in the order in which they run, and the intermediates; all of these are read at constant distances."""
    found = [Lead(stage, LanePlaces(stage).interior(kernel.intermediates)) for stage in stages(kernel)]
    kept = {param: Kept(lead, FAR) for lead in found for param in lead.kernel.written if param in kernel.intermediates}
    for reader in reversed(found):
        for param, near in footprints(reader.kernel).items():
            if param in kept and near is not None:
                _extend(kept[param], reader, near)
    return found, kept


def _extend(kept: Kept, reader: Lead, near: Footprint) -> None:
    """Rows beyond an edge stand for some inside, which must be there too."""
    lead, (low, high) = kept.lead, rows_of(near)
    lead.ahead, lead.start = max(lead.ahead, reader.ahead + high), min(lead.start, reader.start + low)
    lead.left, lead.right = max(lead.left, reader.left - near.low[-1]), max(lead.right, reader.right + near.high[-1])
    kept.oldest = min(kept.oldest, reader.ahead + low)
    rows, columns = max(high, -low), max(near.high[-1], -near.low[-1])
    kept.reach = max(kept.reach[0], rows), max(kept.reach[1], columns)
    for border in near.borders:
        kept.border = border


def rows_of(near: Footprint) -> tuple[int, int]:
    """The rows that are read, and the own one; those that mirrored rows stand for."""
    low, high = min(near.low[-2], 0), max(near.high[-2], 0)
    if any(border in MIRRORED for border, _ in near.borders):
        low, high = min(low, -high), max(high, -low)
    return low, high
