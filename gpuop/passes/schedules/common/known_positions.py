"""What is known of a recorded kernel's integers, from variable to variable: where its reads are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, TypeVar

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Block, Expr, For, Let, Read, Var
from gpuop.ir.visit import blocks, expressions, loop_values

P = TypeVar("P")


class KnownPlaces(ABC, Generic[P]):
    """The places of a kernel's variables; a variable that is in none differs between points as it likes."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.places: dict[Var, P] = {}
        self.block(kernel.body)

    def block(self, block: Block) -> None:
        for stmt in block:
            match stmt:
                case Let(var=var, value=value) if not var.mutable:
                    found = self.of(value)
                    if found is not None:
                        self.places[var] = found
                case For(var=var):
                    turns = loop_values(stmt)
                    if turns:
                        self.places[var] = self.between(min(turns), max(turns))
            for inner in blocks(stmt):
                self.block(inner)

    @abstractmethod
    def of(self, expr: Expr) -> P | None:
        """The place that a value is; None where it differs otherwise than places do."""

    @abstractmethod
    def between(self, low: int, high: int) -> P:
        """An integer between these that all points have in common."""

    @abstractmethod
    def is_common(self, expr: Expr) -> bool:
        """Whether all points have the same value."""

    def reads(self) -> Iterator[tuple[Read, P | None]]:
        """The reads at given points, and their columns, None where others of their coordinates differ between points."""
        for e in expressions(self.kernel.body):
            if isinstance(e, Read) and e.point is not None:
                others = (*e.point[:-1], *([] if e.element is None else [e.element]))
                yield e, self.of(e.point[-1]) if all(map(self.is_common, others)) else None
