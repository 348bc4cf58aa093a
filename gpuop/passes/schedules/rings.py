"""The rows that a thread keeps of each intermediate, in a ring: a row takes the place of the oldest one."""

from __future__ import annotations

from dataclasses import dataclass

from gpuop.ir.borders import Coordinate, inside, place
from gpuop.ir.build import Builder, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Array, Expr, FieldParam, Var
from gpuop.ir.types import INT, Type
from gpuop.passes.schedules.leads import Border, Lead, Leads


@dataclass(frozen=True)
class Ring:
    """The rows of an intermediate that are kept.

    Attributes:
        arrays: one for each element of its tensor, of rows and of columns; one row more than there are slots takes what is
            computed of rows outside of the field.
        slots: how many rows are kept.
        origin: the first column.
        border: of the reads that reach beyond an edge.
        reach: how many columns these reach beyond.
    """

    arrays: tuple[Array, ...]
    slots: int
    origin: Var
    border: Border
    reach: int

    def slot(self, b: Builder, row: Coordinate, border: str) -> Expr:
        """Where a row is kept, or the one that the border puts in its place."""
        return b.apply("mod", place(b, row, "clamp" if border == "fill" else border), self.slots)

    def fresh(self, b: Builder, row: Coordinate) -> Expr:
        """Where a row is put."""
        test, slot = inside(b, row), b.apply("mod", row.at, self.slots)
        return slot if test is None else b.apply("choose", test, slot, self.slots)


class Rings:
    """What a thread keeps that has strips of `width` columns, and computes `together` rows at a time.

    Attributes:
        leads: the stages.
        first: the row at which a thread begins, behind the first one of its block: a multiple of `together`.
        row: the row of the results at a turn.
        of: the ring of each intermediate.
        origins: the first column of each stage.
    """

    def __init__(self, kernel: Kernel, found: Leads, width: int, together: int) -> None:
        self.source, self.together, self.rows = kernel, together, kernel.domain.extent("row")
        self.leads, kept = found
        self.first = -(-max(lead.ahead - lead.start for lead in self.leads) // together) * -together
        self.row = Var("row", Type(INT))
        self.origins = {id(lead): Var("origin", Type(INT)) for lead in self.leads}
        self.of: dict[FieldParam, Ring] = {}
        for param, one in kept.items():
            slots = one.lead.ahead - one.oldest + together
            arrays = _arrays(param, (slots + 1, width + one.lead.left + one.lead.right))
            self.of[param] = Ring(arrays, slots, self.origins[id(one.lead)], one.border, one.reach[1])

    @property
    def arrays(self) -> list[Array]:
        return [array for ring in self.of.values() for array in ring.arrays]

    def origin(self, lead: Lead) -> Var:
        return self.origins[id(lead)]

    def line(self, at: Expr, offset: int) -> Coordinate:
        """A row that is so far from that of the results."""
        return Coordinate(
            at, constant(self.rows, INT), self.rows, self.first + offset, self.rows - self.together + offset
        )


def _arrays(param: FieldParam, shape: tuple[int, int]) -> tuple[Array, ...]:
    planes, kind = param.type.planes, Type(param.type.storage)
    names = [f"{param.hint}_{k}_rows" for k in range(planes)] if planes > 1 else [f"{param.hint}_rows"]
    return tuple(Array(name, kind, shape) for name in names)
