"""How the places that a recorded kernel reads differ between neighbours in a row: not at all, as their columns do, or otherwise.

Vectors of neighbours load the first two kinds at once. The offsets from the own column, found through sums and counters with
known bounds, tell at which columns no read leaves its field.
"""

from __future__ import annotations

from collections.abc import Collection

from gpuop.ir.analysis.affine import Affine, affine, position
from gpuop.ir.nodes import Array, Declare, Expr, FieldParam, Index, Load, Read, Ref
from gpuop.ir.types import INT, Type
from gpuop.ir.visit import expressions, operands
from gpuop.passes.schedules.common.known_positions import KnownPlaces

COMMON = Affine({}, None, None)  # an integer that all lanes have in common


class LanePlaces(KnownPlaces[Affine]):
    """The places that lanes, which are neighbours in a row, have in common, or that are the own column and a number."""

    def between(self, low: int, high: int) -> Affine:
        return Affine({}, low, high)

    def of(self, expr: Expr) -> Affine | None:
        return affine(expr, self._leaf, _beside, ("add", "sub")) if expr.type == Type(INT) else self._leaf(expr)

    def _leaf(self, expr: Expr) -> Affine | None:
        match expr:
            case Index(kind="global", axis="column", offset=offset):
                return position("column", offset)
            case Ref(var=var):
                return self.places.get(var)
            case Read(point=None):
                return COMMON if expr.field.by_value else None
        return COMMON if all(map(self.is_common, operands(expr))) else None

    def is_common(self, expr: Expr) -> bool:
        place = self.of(expr)
        return place is not None and not place.varies

    def interior(self, apart: Collection[FieldParam] = ()) -> tuple[int, int]:
        """The first column, and the one behind the last, where no read along the row leaves its field, but for some fields."""
        first, end = 0, self.kernel.domain.extent("column")
        for read, place in self.reads():
            if (
                read.field not in apart
                and place is not None
                and place.varies
                and place.low is not None
                and place.high is not None
            ):
                first = max(first, -place.low)
                end = min(end, read.field.type.field_shape[-1] - place.high)
        return first, end

    def anywhere(self) -> list[Read]:
        """The reads at places that differ between lanes otherwise than as columns do."""
        return [read for read, place in self.reads() if place is None]

    def obstacle(self, gathers: bool = False) -> str:
        """What vectors cannot load; "" if they load all. `gathers`: also from anywhere, but where a lane that a condition
        leaves out would read outside of a field, and of halves, which come in whole vectors.
        """
        found = self.anywhere()
        if any(not gathers or read.border == "unchecked" or read.field.type.dtype == "float16" for read in found):
            return "it reads at places that are no constant offsets from the own point"
        loads = [e for e in expressions(self.kernel.body) if isinstance(e, Load)]
        constants = {s.array for s in self.kernel.body if isinstance(s, Declare) and s.array.space == "constant"}
        if any(isinstance(e.memory, Array) and e.memory not in constants for e in loads):
            return "it has arrays"
        if not all(self.is_common(i) for e in loads for i in e.index):
            return "it looks up tables at places that differ between points"
        return ""


def _beside(place: Affine) -> Affine | None:
    """None where it varies otherwise than at a known distance from the own column."""
    return place if not place.varies or (place.parts["column"] == 1 and place.low is not None) else None
