"""How the places that a recorded kernel reads differ between neighbours in a row: not at all, as their columns do, or otherwise.

Vectors of neighbours load the first two kinds at once. The offsets from the own column, found through sums and counters with
known bounds, tell at which columns no read leaves its field.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from gpuop.ir.nodes import Apply, Array, Const, Declare, Expr, FieldParam, Index, Load, Read, Ref
from gpuop.ir.types import INT, Type
from gpuop.ir.visit import expressions, operands
from gpuop.passes.schedules.common.known_positions import KnownPlaces


@dataclass(frozen=True)
class Place:
    """An integer that all lanes have in common, from `low` to `high` where that is known; or, `along`, the own column plus it."""

    along: bool = False
    low: int | None = None
    high: int | None = None

    @property
    def is_exact(self) -> bool:
        return self.low is not None and self.low == self.high


COMMON = Place()


class LanePlaces(KnownPlaces[Place]):
    """The places that lanes, which are neighbours in a row, have or do not have in common."""

    def between(self, low: int, high: int) -> Place:
        return Place(False, low, high)

    def of(self, expr: Expr) -> Place | None:
        match expr:
            case Const(value=value) if expr.type == Type(INT):
                return Place(False, int(value), int(value))
            case Index(kind="global", axis="column", offset=offset):
                return Place(True, offset, offset)
            case Ref(var=var):
                return self.places.get(var)
            case Apply(op="add" | "sub" as op, args=(x, y)) if expr.type == Type(INT):
                found = self.sum(self.of(x), self.of(y), op)
                if found is not None:
                    return found
            case Read(point=None):
                return COMMON if expr.field.by_value else None
        return COMMON if all(map(self.is_common, operands(expr))) else None

    def is_common(self, expr: Expr) -> bool:
        place = self.of(expr)
        return place is not None and not place.along

    @staticmethod
    def sum(x: Place | None, y: Place | None, op: str) -> Place | None:
        if x is None or y is None or (y.along and (x.along or op == "sub")):
            return None
        if x.low is None or x.high is None or y.low is None or y.high is None:
            return None if x.along or y.along else COMMON
        low, high = (x.low + y.low, x.high + y.high) if op == "add" else (x.low - y.high, x.high - y.low)
        return Place(x.along or y.along, low, high)

    def interior(self, apart: Collection[FieldParam] = ()) -> tuple[int, int]:
        """The first column, and the one behind the last, where no read along the row leaves its field, but for some fields."""
        first, end = 0, self.kernel.domain.extent("column")
        for read, place in self.reads():
            if (
                read.field not in apart
                and place is not None
                and place.along
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
