"""The derivatives of reductions and scans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from gpuop.dsl.fields.derivative_rules import derivatives, with_rule
from gpuop.dsl.fields.field import Field
from gpuop.ops.elementwise.algebra import apply, astype, where
from gpuop.ops.layout.axes import Axis, axes_of
from gpuop.ops.layout.layouts import reshaped, spread
from gpuop.ops.layout.reorder import flip
from gpuop.ops.reduce.complex_reductions import Fields, doubled_together, halved_together
from gpuop.ops.reduce.reductions import reduced

Axes = tuple[int, ...]
Tangents = Sequence[Field | None]


def _total(axes: Axes, values: Field) -> Field:
    return reduced("sum", values, axes if len(axes) < len(values.type.array_shape) else None)


def everywhere(field: Field, axes: Axes, value: Field) -> Field:
    """The result of a reduction at each place of the values."""
    unit = [Axis(1, at.tensor) if n in axes else at for n, at in enumerate(axes_of(field.type))]
    return spread("sum", reshaped("sum", value, unit), tuple(field.type.array_shape))


def _sum_pulled(axes: Axes, divisor: int, inputs: Sequence[Field], result: Field, cotangent: Field) -> list[Field]:
    """The cotangent of a sum, for each of the values; its share of that of a mean."""
    whole = everywhere(inputs[0], axes, cotangent)
    return [whole / divisor if divisor else whole]


def _sum_pushed(axes: Axes, divisor: int, inputs: Sequence[Field], result: Field, tangents: Tangents) -> Field | None:
    (tangent,) = tangents
    if tangent is None:
        return None
    return _total(axes, tangent) / divisor if divisor else _total(axes, tangent)


def _winners(axes: Axes, field: Field, result: Field) -> tuple[Field, Field]:
    """The values that are the extreme, and how many there are."""
    wins = apply("equal", field, everywhere(field, axes, result))
    return wins, _total(axes, astype(wins, field.dtype))


def _extreme_pulled(axes: Axes, inputs: Sequence[Field], result: Field, cotangent: Field) -> list[Field]:
    """Equal shares for the values that are the extreme."""
    wins, count = _winners(axes, inputs[0], result)
    share = astype(apply("true_divide", cotangent, count), cotangent.dtype)
    return [where(wins, everywhere(inputs[0], axes, share), 0)]


def _extreme_pushed(axes: Axes, inputs: Sequence[Field], result: Field, tangents: Tangents) -> Field | None:
    (tangent,) = tangents
    if tangent is None:
        return None
    wins, count = _winners(axes, inputs[0], result)
    return astype(apply("true_divide", _total(axes, where(wins, tangent, 0)), count), result.dtype)


def _product(a: Fields, b: Fields) -> Fields:
    """The product of two values, and its tangent; no quotient, so zeros are as other numbers."""
    (x, s), (y, t) = a, b
    return apply("multiply", x, y), apply("add", apply("multiply", x, t), apply("multiply", s, y))


def _product_pushed(axes: Axes, inputs: Sequence[Field], result: Field, tangents: Tangents) -> Field | None:
    (tangent,) = tangents
    return None if tangent is None else halved_together("prod", (inputs[0], tangent), axes, _product)[1]


derivatives.update(
    {
        "sum pulled": _sum_pulled,
        "sum pushed": _sum_pushed,
        "extreme pulled": _extreme_pulled,
        "extreme pushed": _extreme_pushed,
        "product pushed": _product_pushed,
    }
)


# --- scans ------------------------------------------------------------------------------------------------------------


def with_scan_rule(name: str, result: Field, field: Field, axis: int, scan: Callable[[Field], Field]) -> Field:
    """The result of a scan along an axis, with its rule, where it has one."""
    if name == "sum":
        return with_rule(result, "cumsum", [field], partial(_scan_pulled, axis, scan), partial(_scan_pushed, scan))
    if name != "prod":
        return result
    return with_rule(result, "cumprod", [field], None, partial(_pairs_pushed, axis, _product))


def with_running_rule(name: str, result: Field, field: Field, axis: int) -> Field:
    """The running extremes along an axis, with their rule."""
    pairs = partial(_extreme, name)
    return with_rule(result, f"{name}.accumulate", [field], None, partial(_pairs_pushed, axis, pairs))


def _scan_pulled(
    axis: int, scan: Callable[[Field], Field], inputs: Sequence[Field], result: Field, cotangent: Field
) -> list[Field]:
    """The sums from the other end."""
    return [flip(scan(flip(cotangent, axis)), axis)]


def _scan_pushed(
    scan: Callable[[Field], Field], inputs: Sequence[Field], result: Field, tangents: Tangents
) -> Field | None:
    (tangent,) = tangents
    return None if tangent is None else scan(tangent)


def _extreme(name: str, a: Fields, b: Fields) -> Fields:
    """The extreme of two values, and the tangent of the first one that is it."""
    (x, s), (y, t) = a, b
    value = apply(name, x, y)
    return value, where(apply("equal", value, x), s, t)


def _pairs_pushed(
    axis: int, pairs: Callable[[Fields, Fields], Fields], inputs: Sequence[Field], result: Field, tangents: Tangents
) -> Field | None:
    (tangent,) = tangents
    return None if tangent is None else doubled_together((inputs[0], tangent), axis, pairs)[1]
