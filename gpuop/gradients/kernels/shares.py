"""Cotangents of values: the shares of their uses.

A cotangent that only one arm of a choice has carries the choice's condition along, and is chosen by it at last: so a slope that is
infinite where the arm is not taken, as that of a square root of 0, does not meet the 0 of the other arm.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from gpuop.base.records import dataclass
from gpuop.gradients.kernels.places import Site
from gpuop.ir import nodes as ir
from gpuop.ir.build import Builder, constant
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.types import Type

Guard = tuple[ir.Expr, ...]  # conditions that hold where a cotangent counts
Key = ir.Var | Site


@dataclass(frozen=True, slots=True)
class Share:
    """A share of a cotangent: of the whole value, or of one lane of it."""

    value: ir.Expr
    guard: Guard = ()
    lane: int | None = None


class Cotangents(dict[Key, list[Share]]):
    """The shares of values' cotangents so far, last uses first."""

    def add(self, key: Key, share: Share) -> None:
        self.setdefault(key, []).append(share)

    def take(self, key: Key, kind: Type, b: Builder) -> Share | None:
        """The sum of a value's shares, first uses first, which are then gone; None if there are none."""
        shares = self.pop(key, [])[::-1]
        if not shares:
            return None
        if any(share.lane is not None for share in shares):
            return Share(_of_lanes(b, shares, kind))
        guard = shares[0].guard
        for share in shares[1:]:
            guard = guard[: sum(1 for _ in _common(guard, share.guard))]
        total = None
        for share in shares:
            value = masked(b, share.value, share.guard[len(guard) :])
            total = value if total is None else b.apply("add", total, value)
        assert total is not None
        return Share(total, guard)


def _common(a: Guard, b: Guard) -> list[ir.Expr]:
    """The conditions that two guards begin with."""
    result = []
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        result.append(x)
    return result


def _of_lanes(b: Builder, shares: Sequence[Share], kind: Type) -> ir.Expr:
    lanes: list[ir.Expr | None] = [None] * kind.lanes
    for share in shares:
        value = masked(b, share.value, share.guard)
        for lane in range(kind.lanes) if share.lane is None else (share.lane,):
            one = value if share.lane is not None else b.lane(value, lane)
            before = lanes[lane]
            lanes[lane] = one if before is None else b.apply("add", before, one)
    return b.pack([constant(0, kind.dtype) if lane is None else lane for lane in lanes])


def masked(b: Builder, value: ir.Expr, guard: Guard) -> ir.Expr:
    """The value where all conditions hold, else 0."""
    for condition in reversed(guard):
        value = b.apply("choose", condition, value, zero(value.type))
    return value


def lane_of(b: Builder, share: Share, lane: int) -> Share:
    """The share of one lane of a vector, where the conditions of that lane hold."""
    return Share(b.lane(share.value, lane), tuple(b.lane(condition, lane) for condition in share.guard))


def converted(b: Builder, share: Share, kind: Type) -> Share:
    """A cotangent converted back; that of a scalar that was spread is the sum of the lanes', where any of them counts."""
    value, guard = share.value, share.guard
    if value.type.lanes > kind.lanes:
        wide = tuple(condition for condition in guard if condition.type.lanes > 1)
        guard = tuple(condition for condition in guard if condition.type.lanes == 1)
        value = _over_lanes(b, "add", masked(b, value, wide))
        counts = b.all_of(wide)
        guard += () if counts is None else (_over_lanes(b, "or", counts),)
    return Share(b.cast(value, kind), guard)


def _over_lanes(b: Builder, op: str, value: ir.Expr) -> ir.Expr:
    return functools.reduce(lambda x, y: b.apply(op, x, y), b.lanes(value))


def zero(kind: Type) -> ir.Const:
    """A scalar 0 of the dtype of a type."""
    return constant(0, kind.dtype)


def conjugate(b: Builder, field: ir.FieldParam, value: ir.Expr, own: bool) -> ir.Expr:
    """The complex conjugate of an element of a complex field; other values as they are.

    Kernels differentiate by real and imaginary parts; the cotangent of a complex number is ∂/∂x − i·∂/∂y.
    """
    if field.type.dtype not in COMPLEX_DTYPES:
        return value
    if own:
        odd = b.apply("ne", b.apply("and", ir.Index("global", "element"), 1), 0)
        return b.apply("choose", odd, b.apply("neg", value), value)
    return b.pack([b.apply("neg", lane) if n % 2 else lane for n, lane in enumerate(b.lanes(value))])
