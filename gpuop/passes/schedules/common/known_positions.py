"""Base of analyses of the integers of a recorded kernel, propagated from variable to variable: the positions of its reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, TypeVar

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Block, Expr, For, Let, Read, Var
from gpuop.ir.visit import blocks, expressions, loop_values

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
        """Whether a value is the same at all points."""

    def reads(self) -> Iterator[tuple[Read, P | None]]:
        """The reads with explicit coordinates, and their columns: None where unknown, or where other coordinates differ."""
        for e in expressions(self.kernel.body):
            if isinstance(e, Read) and e.point is not None:
                others = (*e.point[:-1], *([] if e.element is None else [e.element]))
                yield e, self.of(e.point[-1]) if all(map(self.is_common, others)) else None
