"""Footprints: how far from its own point a thread reads a field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Block, Const, Expr, FieldParam, For, Index, Let, Read, Ref, Var
from gpuop.ir.visit import blocks, loop_values, values, walk_expr


@dataclass(frozen=True)
class Surrounding:
    """The points that a thread reads of a field on its own grid, relative to its own.

    Attributes:
        low, high: the least and the greatest offset along each axis of the grid.
        borders: the rules of its reads; none for reads at the own point, which is inside.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    borders: frozenset[tuple[str, Const | None]]

    def joined(self, other: Surrounding) -> Surrounding:
        low = tuple(map(min, self.low, other.low))
        return Surrounding(low, tuple(map(max, self.high, other.high)), self.borders | other.borders)

    @property
    def is_own(self) -> bool:
        """Whether it is the own point alone."""
        return not any(self.low) and not any(self.high)


@dataclass(frozen=True)
class _Range:
    """Integers, relative to the thread's position along an axis, or to 0 where there is none."""

    axis: str
    low: int
    high: int


def footprints(kernel: Kernel) -> dict[FieldParam, Surrounding | None]:
    """The footprint of each field that has a grid; None where a read is at no constant distance, or on another grid."""
    found: dict[FieldParam, Surrounding | None] = {}
    ranges = _Ranges()
    for read in ranges.reads(kernel.body):
        if read.field.by_value or not read.field.type.field_shape:
            continue
        one = _footprint(kernel, read, ranges)
        before = found.get(read.field, one)
        found[read.field] = None if one is None or before is None else before.joined(one)
    return found


def _footprint(kernel: Kernel, read: Read, ranges: _Ranges) -> Surrounding | None:
    axes = kernel.domain.axes
    if read.field.type.field_shape != kernel.domain.shape:
        return None
    if read.point is None:
        return Surrounding((0,) * len(axes), (0,) * len(axes), frozenset())
    along = [ranges.of(coordinate) for coordinate in read.point]
    if any(r is None or r.axis != axis for r, axis in zip(along, axes, strict=True)):
        return None
    low, high = (tuple(getattr(r, end) for r in along) for end in ("low", "high"))
    inside = not any(low) and not any(high)
    return Surrounding(low, high, frozenset() if inside else frozenset({(read.border, read.fill)}))


class _Ranges:
    """What is known of integers: sums of positions, constants and counters with constant bounds."""

    def __init__(self) -> None:
        self.known: dict[Var, _Range] = {}

    def reads(self, block: Block) -> Iterator[Read]:
        """Every read of a block, when its coordinates are known."""
        for stmt in block:
            for value in values(stmt):
                yield from (e for e in walk_expr(value) if isinstance(e, Read))
            if isinstance(stmt, Let) and not stmt.var.mutable:
                self._note(stmt.var, stmt.value)
            counted = loop_values(stmt) if isinstance(stmt, For) else None
            if isinstance(stmt, For) and counted:
                self.known[stmt.var] = _Range("", min(counted), max(counted))
            for inner in blocks(stmt):
                yield from self.reads(inner)

    def of(self, expr: Expr) -> _Range | None:
        match expr:
            case Const(value=value) if expr.type.integer:
                return _Range("", int(value), int(value))
            case Index(kind="global", axis=axis, offset=offset):
                return _Range(axis, offset, offset)
            case Ref(var=var):
                return self.known.get(var)
        return None

    def _note(self, var: Var, value: Expr) -> None:
        match value:
            case Apply(op="add" | "sub" as op, args=(x, y)):
                a, b = self.of(x), self.of(y)
            case _:
                a, b, op = self.of(value), _Range("", 0, 0), "add"
        if a is None or b is None or (a.axis and b.axis) or (op == "sub" and b.axis):
            return
        low, high = (a.low + b.low, a.high + b.high) if op == "add" else (a.low - b.high, a.high - b.low)
        self.known[var] = _Range(a.axis or b.axis, low, high)
