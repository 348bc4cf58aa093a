"""Affine indices: sums of positions and counters, each times a factor, and an interval.

Footprints, vector positions, transposed reads and output coverage all use it. They differ in the terms that count as positions
and in the sums of use to them, so each passes a function for either.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from gpuop.base.records import dataclass
from gpuop.ir.analysis.intervals import interval
from gpuop.ir.nodes import Apply, Const, Expr
from gpuop.ir.types import LONG


@dataclass(frozen=True)
class Affine:
    """`factor · position + …`, and a number from `low` to `high`.

    Attributes:
        parts: positions, counters or other terms, each with its factor, which is not 0.
        low, high: the bounds of the number; None where they are not known.
    """

    parts: Mapping[Any, int]
    low: int | None
    high: int | None

    @property
    def varies(self) -> bool:
        """True if the sum has positions."""
        return bool(self.parts)

    @property
    def is_exact(self) -> bool:
        """True if the interval is a single number."""
        return self.low is not None and self.low == self.high

    @property
    def number(self) -> int:
        """The number of an exact interval."""
        assert self.low is not None and self.is_exact
        return self.low

    def combined(self, op: str, other: Affine) -> Affine | None:
        """The sum, difference or product; None where both have a position, or neither factor is a known number."""
        if op == "mul":
            x, y = (other, self) if self.varies else (self, other)  # a number first
            return y.times(x.number) if x.is_exact and not x.varies else None
        if self.parts.keys() & other.parts.keys():
            return None
        more = {what: -factor for what, factor in other.parts.items()} if op == "sub" else other.parts
        bounds = joined_bounds(op, (self.low, self.high), (other.low, other.high))
        return Affine({**self.parts, **more} if more else self.parts, *bounds)

    def times(self, n: int) -> Affine:
        parts = {what: factor * n for what, factor in self.parts.items() if n}
        return Affine(parts, *joined_bounds("mul", (self.low, self.high), (n, n)))


def joined_bounds(
    op: str, a: tuple[int | None, int | None], b: tuple[int | None, int | None]
) -> tuple[int | None, int | None]:
    """The bounds of a sum, a difference or a product; None where those of an operand are not known."""
    (low, high), (least, most) = a, b
    if low is None or high is None or least is None or most is None:
        return None, None
    return interval(op, ((low, high), (least, most)), LONG)


def number(value: int) -> Affine:
    return Affine({}, value, value)


def position(what: Any, offset: int = 0) -> Affine:
    return Affine({what: 1}, offset, offset)


def affine(
    expr: Expr,
    leaf: Callable[[Expr], Affine | None],
    admitted: Callable[[Affine], Affine | None] = lambda form: form,
    operations: Collection[str] = ("add", "sub", "mul"),
) -> Affine | None:
    """An integer as a sum; None where it is something else.

    Args:
        leaf: returns the affine form of an expression that is neither a constant nor one of the operations.
        admitted: maps each sum on the way to the sum to use; None rejects it.
    """
    match expr:
        case Const(value=value) if expr.type.integer:
            form: Affine | None = number(int(value))
        case Apply(op=op, args=(x, y)) if op in operations:
            a, b = (affine(e, leaf, admitted, operations) for e in (x, y))
            form = None if a is None or b is None else a.combined(op, b)
        case _:
            form = leaf(expr)
    return None if form is None else admitted(form)
