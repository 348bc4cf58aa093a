"""The derivatives of elementwise functions whose text has another slope than the function where it chooses by equality.

Complex functions take parts of numbers on an axis as they are, and the signs of zeros from elsewhere; read as it stands, such text
has slope 0 there. Their rules are the derivatives of holomorphic functions, as in JAX.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Sequence
from typing import Any

from gpuop.dsl.fields.derivative_rules import derivatives
from gpuop.dsl.fields.field import Field
from gpuop.ops.elementwise.algebra import apply, astype, where
from gpuop.ops.layout.layouts import spread

Slope = Callable[..., Any]  # of the operands and the result


def _over(x: Any, y: Any) -> Field:
    return apply("divide", x, y)


def _by_exponent(base: Any, exponent: Any, r: Any) -> Any:
    """zʷ·log z, which is 0 where z is 0."""
    base = where(apply("equal", base, 0), 1, base) if isinstance(base, Field) else complex(base)
    return r * (apply("log", base) if isinstance(base, Field) else cmath.log(base))


def _share(power: str, operand: int) -> Slope:
    """The share of an operand in a sum of powers; 1 where the others are negligible, as beside an infinite one."""

    def slope(*values: Any) -> Any:
        own, r = values[operand], values[-1]
        return where(apply("equal", own, r), 1, apply(power, apply("subtract", own, r)))

    return slope


SLOPES: dict[str, tuple[Slope, ...]] = {
    "exp": (lambda z, r: r,),
    "expm1": (lambda z, r: apply("exp", z),),
    "log": (lambda z, r: apply("reciprocal", z),),
    "log1p": (lambda z, r: apply("reciprocal", z + 1),),
    "log2": (lambda z, r: _over(1 / math.log(2), z),),
    "log10": (lambda z, r: _over(1 / math.log(10), z),),
    "sqrt": (lambda z, r: _over(0.5, r),),
    "reciprocal": (lambda z, r: -(r * r),),
    "sin": (lambda z, r: apply("cos", z),),
    "cos": (lambda z, r: -apply("sin", z),),
    "tan": (lambda z, r: 1 + r * r,),
    "sinh": (lambda z, r: apply("cosh", z),),
    "cosh": (lambda z, r: apply("sinh", z),),
    "tanh": (lambda z, r: 1 - r * r,),
    "arcsin": (
        lambda z, r: apply("reciprocal", apply("cos", r)),
    ),  # on the side of the branch cut that the result is on
    "arccos": (lambda z, r: -apply("reciprocal", apply("sin", r)),),
    "arctan": (lambda z, r: apply("reciprocal", 1 + z * z),),
    "arcsinh": (lambda z, r: apply("reciprocal", apply("cosh", r)),),
    "arccosh": (lambda z, r: apply("reciprocal", apply("sinh", r)),),
    "arctanh": (lambda z, r: apply("reciprocal", 1 - z * z),),
    "power": (lambda z, w, r: w * apply("power", z, w - 1), _by_exponent),
    "logaddexp": (_share("exp", 0), _share("exp", 1)),
    "logaddexp2": (_share("exp2", 0), _share("exp2", 1)),
    "remainder": (lambda x, y, r: 1, lambda x, y, r: -apply("floor_divide", x, y)),
}


def _pushed(
    name: str, constants: Sequence[Any], inputs: Sequence[Field], result: Field, tangents: Sequence[Field | None]
) -> Field | None:
    """The sum of the tangents of the operands times the slopes; constants are those that are no Fields."""
    fields, moving = iter(inputs), iter(tangents)
    operands = [next(fields) if constant is None else constant for constant in constants]
    total = None
    for slope, constant in zip(SLOPES[name], constants, strict=True):
        tangent = next(moving) if constant is None else None
        if tangent is not None:
            part = apply("multiply", tangent, slope(*operands, result))
            total = part if total is None else apply("add", total, part)
    return None if total is None else astype(spread(name, total, result.type.array_shape), result.dtype)


def _length_pushed(inputs: Sequence[Field], result: Field, tangents: Sequence[Field | None]) -> Field | None:
    """The tangent of the root of a sum of squares: 0 where that is 0, as of `_length`."""
    (tangent,) = tangents
    if tangent is None:
        return None
    zero = apply("equal", result, 0)
    return where(zero, 0, _over(apply("multiply", tangent, 0.5), where(zero, 1, result)))


derivatives["elementwise.pushed"] = _pushed
derivatives["elementwise.length"] = _length_pushed
