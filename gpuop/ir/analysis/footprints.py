"""Footprints: distances from its own point at which a thread reads a field."""

from __future__ import annotations

from collections.abc import Iterator

from gpuop.base.records import dataclass
from gpuop.ir.analysis.affine import Affine, affine, position
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Block, Expr, FieldParam, For, Index, Let, Read, Ref, Var
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
    borders: frozenset[tuple[str, Expr | None]]

    def joined(self, other: Surrounding) -> Surrounding:
        low = tuple(map(min, self.low, other.low))
        return Surrounding(low, tuple(map(max, self.high, other.high)), self.borders | other.borders)

    @property
    def is_own(self) -> bool:
        """True if it is the own point alone."""
        return not any(self.low) and not any(self.high)


def footprints(kernel: Kernel) -> dict[FieldParam, Surrounding | None]:
    """The footprint of each field that has a grid; None where a read is at no constant distance, or on another grid."""
    result: dict[FieldParam, Surrounding | None] = {}
    ranges = _Ranges()
    for read in ranges.reads(kernel.body):
        if read.field.by_value or not read.field.type.field_shape:
            continue
        one = _footprint(kernel, read, ranges)
        before = result.get(read.field, one)
        result[read.field] = None if one is None or before is None else before.joined(one)
    return result


def _footprint(kernel: Kernel, read: Read, ranges: _Ranges) -> Surrounding | None:
    axes = kernel.domain.axes
    if read.field.type.field_shape != kernel.domain.shape:
        return None
    if read.point is None:
        return Surrounding((0,) * len(axes), (0,) * len(axes), frozenset())
    along = [ranges.of(coordinate) for coordinate in read.point]
    if any(r is None or axis not in r.parts for r, axis in zip(along, axes, strict=True)):
        return None
    low, high = (tuple(getattr(r, end) for r in along) for end in ("low", "high"))
    inside = not any(low) and not any(high)
    return Surrounding(low, high, frozenset() if inside else frozenset({(read.border, read.fill)}))


class _Ranges:
    """Affine forms of integers: sums of positions, constants and counters with constant bounds."""

    def __init__(self) -> None:
        self.forms: dict[Var, Affine] = {}

    def reads(self, block: Block) -> Iterator[Read]:
        """Every read of a block, when its coordinates are known."""
        for stmt in block:
            for value in values(stmt):
                yield from (e for e in walk_expr(value) if isinstance(e, Read))
            if isinstance(stmt, Let) and not stmt.var.mutable:
                form = self.of(stmt.value)
                if form is not None:
                    self.forms[stmt.var] = form
            counted = loop_values(stmt) if isinstance(stmt, For) else None
            if isinstance(stmt, For) and counted:
                self.forms[stmt.var] = Affine({}, min(counted), max(counted))
            for inner in blocks(stmt):
                yield from self.reads(inner)

    def of(self, expr: Expr) -> Affine | None:
        return affine(expr, self._leaf, _near_one_position, ("add", "sub"))

    def _leaf(self, expr: Expr) -> Affine | None:
        match expr:
            case Index(kind="global", axis=axis, offset=offset):
                return position(axis, offset)
            case Ref(var=var):
                return self.forms.get(var)
        return None


def _near_one_position(form: Affine) -> Affine | None:
    return form if len(form.parts) <= 1 and all(factor == 1 for factor in form.parts.values()) else None
