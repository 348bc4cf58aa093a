"""What a thread keeps of each intermediate: its block, and of the axis that it walks the newest rows or layers, in a ring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuop.ir.borders import Coordinate, inside, place
from gpuop.ir.build import Builder
from gpuop.ir.extents import extent
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Array, Expr, FieldParam, Ref, Var
from gpuop.ir.types import INT, Type
from gpuop.passes.schedules.cpu.stage_leads import Border, Kept, Lead, Leads


@dataclass(frozen=True)
class AxisPlace:
    """Where a stage is along an axis, behind or before the results: within a range, in which `at` is.

    Attributes:
        at: the coordinate.
        wrapped: the same within the field, where it wraps around; else `at` itself.
    """

    at: Expr
    wrapped: Expr
    low: int
    high: int


@dataclass(frozen=True)
class Ring:
    """What is kept of an intermediate.

    Attributes:
        arrays: one for each element of its tensor: of what is walked, of rows if these are not, and of columns. Where it does
            not wrap, one place more than there are slots takes what is computed of rows outside of the field.
        slots: how many rows or layers are kept; 0 where none are walked.
        origin: the first row and column of the block.
        border: of the reads that reach beyond an edge.
        reach: how many columns these reach beyond.
    """

    arrays: tuple[Array, ...]
    slots: int
    origin: Mapping[str, Var]
    border: Border
    reach: int

    def slot(self, b: Builder, at: Expr, low: int) -> Expr:
        """Where a row or layer is kept, which is no less than `low`."""
        return b.apply("mod", b.apply("add", at, -(low // self.slots) * self.slots if low < 0 else 0), self.slots)


class Rings:
    """What a thread keeps that has a block of so many points along each axis, and computes `together` rows at a time.

    Attributes:
        walk: the axis that is walked, "" if there is none.
        step: how many rows or layers a turn has.
        wraps: whether intermediates are read through "wrap": points outside are computed again, at the field's other end.
        leads: the stages.
        first: the row or layer at which a thread begins, behind the first one of its block: a multiple of `step`.
        at: the row or layer of the results at a turn.
        of: the ring of each intermediate.
        origins: the first row and column of each stage.
    """

    def __init__(self, kernel: Kernel, found: Leads, sizes: Mapping[str, int], together: int) -> None:
        self.source, self.sizes, self.together = kernel, sizes, together
        self.lanes, self.walk = found.lanes, found.walk
        self.step = together if self.walk == "row" else 1
        self.leads, kept = found.stages, found.kept
        self.wraps = wraps(kept)
        self.first = -(-max(lead.ahead - lead.start for lead in self.leads) // self.step) * -self.step
        self.at = Var(self.walk, Type(INT))
        self.origins = {id(lead): {axis: Var(f"{axis}s", Type(INT)) for axis in self.axes} for lead in self.leads}
        self.of = {param: self.ring(param, one) for param, one in kept.items()}

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes that rings have besides the one that is walked."""
        return ("row", "column") if self.walk == "layer" else ("column",)

    @property
    def arrays(self) -> list[Array]:
        return [array for ring in self.of.values() for array in ring.arrays]

    def origin(self, lead: Lead) -> Mapping[str, Var]:
        return self.origins[id(lead)]

    def vectors(self, columns: int) -> int:
        """Columns as whole vectors have them."""
        return -(-columns // self.lanes) * self.lanes

    def padding(self, lead: Lead, axis: str) -> tuple[int, int]:
        """What a stage's rings have before and behind a block; a reader's last vector may look at columns that nobody needs."""
        before, behind = lead.around(axis)
        if axis != "column":
            return before, behind
        more = self.lanes - 1
        return self.vectors(before + more) if before else 0, self.vectors(behind + more) if behind else 0

    def ring(self, param: FieldParam, one: Kept) -> Ring:
        slots = one.lead.ahead - one.oldest + self.step if self.walk else 0
        shape = [self.sizes[axis] + sum(self.padding(one.lead, axis)) for axis in self.axes]
        if self.walk:
            shape.insert(0, slots + (not self.wraps))
        planes, kind = param.type.planes, Type(param.type.storage)
        names = [f"{param.hint}_{k}_rows" for k in range(planes)] if planes > 1 else [f"{param.hint}_rows"]
        arrays = tuple(Array(name, kind, tuple(shape)) for name in names)
        return Ring(arrays, slots, self.origin(one.lead), one.border, one.beyond("column"))

    def spot(self, b: Builder, axis: str, at: Expr, low: int, high: int) -> AxisPlace:
        """A place along an axis, of which it is known where it is at least and at most."""
        n = self.source.domain.extent(axis)
        if not self.wraps or (low >= 0 and high < n):
            return AxisPlace(at, at, low, high)
        around = place(b, Coordinate(at, extent(self.source, axis), n, low, high), "wrap")
        return AxisPlace(at, b.apply("max", b.apply("min", around, n - 1), 0), low, high)

    def fresh(self, b: Builder, ring: Ring, spots: Mapping[str, AxisPlace]) -> tuple[Expr, ...]:
        """Where a row is put."""
        index: list[Expr] = []
        for axis, spot in spots.items():
            if axis != self.walk:
                index.append(b.apply("sub", spot.at, Ref(ring.origin[axis])))
                continue
            n = self.source.domain.extent(axis)
            test = (
                None
                if self.wraps
                else inside(b, Coordinate(spot.at, extent(self.source, axis), n, spot.low, spot.high))
            )
            slot = ring.slot(b, spot.at, spot.low if self.wraps else 0)
            index.append(slot if test is None else b.apply("choose", test, slot, ring.slots))
        return tuple(index)


def wraps(kept: Mapping[FieldParam, Kept]) -> bool:
    return any(one.border[0] == "wrap" for one in kept.values())
