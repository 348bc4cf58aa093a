"""Integers of a recorded kernel in the lanes of a vector, neighbours in a row: common, affine in the column, or unknown.

Vectors load at the first two kinds of positions in one access. The offsets from the own column, derived through sums and bounded
loop counters, say at which columns no read leaves its field.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from typing import Generic, TypeVar

from gpuop.ir.analysis.affine import Affine, affine, position
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Array, Block, Declare, Expr, FieldParam, For, Index, Let, Load, Read, Ref, Var
from gpuop.ir.types import INT, Type
from gpuop.ir.visit import blocks, expressions, loop_values, operands

P = TypeVar("P")


class KnownPositions(ABC, Generic[P]):
    """The values of a kernel's integer variables in an abstract domain; variables without one are unknown."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.positions: dict[Var, P] = {}
        self.block(kernel.body)

    def block(self, block: Block) -> None:
        for stmt in block:
            match stmt:
                case Let(var=var, value=value) if not var.mutable:
                    position = self.of(value)
                    if position is not None:
                        self.positions[var] = position
                case For(var=var):
                    values = loop_values(stmt)
                    if values:
                        self.positions[var] = self.between(min(values), max(values))
            for inner in blocks(stmt):
                self.block(inner)

    @abstractmethod
    def of(self, expr: Expr) -> P | None:
        """The abstract value of an expression; None where it is unknown."""

    @abstractmethod
    def between(self, low: int, high: int) -> P:
        """The abstract value of an integer between these that is the same at all points."""

    @abstractmethod
    def is_common(self, expr: Expr) -> bool:
        """Return whether a value is the same at all points."""

    def reads(self) -> Iterator[tuple[Read, P | None]]:
        """The reads with explicit coordinates, and their columns: None where unknown, or where other coordinates differ."""
        for e in expressions(self.kernel.body):
            if isinstance(e, Read) and e.point is not None:
                others = (*e.point[:-1], *([] if e.element is None else [e.element]))
                yield e, self.of(e.point[-1]) if all(map(self.is_common, others)) else None


COMMON = Affine({}, None, None)  # an integer that is the same in all lanes


class LanePositions(KnownPositions[Affine]):
    """The integers that are the same in all lanes, or the own column plus a number."""

    def between(self, low: int, high: int) -> Affine:
        return Affine({}, low, high)

    def of(self, expr: Expr) -> Affine | None:
        return affine(expr, self._leaf, _beside, ("add", "sub")) if expr.type == Type(INT) else self._leaf(expr)

    def _leaf(self, expr: Expr) -> Affine | None:
        match expr:
            case Index(kind="global", axis="column", offset=offset):
                return position("column", offset)
            case Ref(var=var):
                return self.positions.get(var)
            case Read(point=None):
                return COMMON if expr.field.by_value else None
        return COMMON if all(map(self.is_common, operands(expr))) else None

    def is_common(self, expr: Expr) -> bool:
        place = self.of(expr)
        return place is not None and not place.varies

    def interior(self, apart: Collection[FieldParam] = ()) -> tuple[int, int]:
        """The first column, and the one behind the last, where no read along the row leaves its field.

        Args:
            apart: fields that do not count.
        """
        first, end = 0, self.kernel.domain.extent("column")
        for read, place in self.reads():
            if read.field in apart or place is None or place.low is None or place.high is None or not place.varies:
                continue
            first, end = max(first, -place.low), min(end, read.field.type.field_shape[-1] - place.high)
        return first, end

    def anywhere(self) -> list[Read]:
        """The reads at unknown positions: they differ between lanes, but not as columns do."""
        return [read for read, place in self.reads() if place is None]

    def obstacle(self, gathers: bool = False) -> str:
        """Return the reason why vectors cannot load; empty where they can.

        Args:
            gathers: whether they also load from unknown positions; not through "unchecked" borders, where a lane that a
                condition excludes would read outside of a field, nor halves, which come in whole vectors.
        """
        reads = self.anywhere()
        if any(not gathers or read.border == "unchecked" or read.field.type.dtype == "float16" for read in reads):
            return "it reads at places that are not constant offsets from the own point"
        loads = [e for e in expressions(self.kernel.body) if isinstance(e, Load)]
        constants = {s.array for s in self.kernel.body if isinstance(s, Declare) and s.array.space == "constant"}
        if any(isinstance(e.memory, Array) and e.memory not in constants for e in loads):
            return "it has arrays"
        if not all(self.is_common(i) for e in loads for i in e.index):
            return "it looks up tables at places that differ between points"
        return ""


def _beside(place: Affine) -> Affine | None:
    """The value itself, or None where it varies but is not at a known distance from the own column."""
    return place if not place.varies or (place.parts["column"] == 1 and place.low is not None) else None
