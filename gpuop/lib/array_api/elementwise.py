"""Elementwise functions of the array API standard: host algebra under the names of the standard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpuop.dsl.fields.field import Field
from gpuop.ops.elementwise import algebra
from gpuop.ops.elementwise.algebra import apply
from gpuop.ops.select import choices

Operand = Any  # a Field or a number
OF_ONE = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atanh": "arctanh", "bitwise_invert": "invert", "conj": "conjugate",
    **{
        name: name
        for name in (
            "ceil", "cos", "cosh", "exp", "expm1", "floor", "imag", "isfinite", "isinf", "isnan", "log", "log10", "log1p",
            "log2", "logical_not", "negative", "positive", "real", "reciprocal", "sign", "signbit", "sin", "sinh", "sqrt",
            "square", "tan", "tanh", "trunc",
        )
    },
}  # fmt: skip
OF_TWO = {
    "atan2": "arctan2", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift", "pow": "power",
    **{
        name: name
        for name in (
            "add", "bitwise_and", "bitwise_or", "bitwise_xor", "copysign", "divide", "equal", "floor_divide", "greater",
            "greater_equal", "hypot", "less", "less_equal", "logaddexp", "logical_and", "logical_or", "logical_xor", "maximum",
            "minimum", "multiply", "nextafter", "not_equal", "remainder", "subtract",
        )
    },
}  # fmt: skip


def _of_one(name: str, numpys: str) -> Callable[..., Field]:
    def function(x: Field, /) -> Field:
        return apply(numpys, x)

    return _called(function, name)


def _of_two(name: str, numpys: str) -> Callable[..., Field]:
    def function(x1: Operand, x2: Operand, /) -> Field:
        return apply(numpys, x1, x2)

    return _called(function, name)


def _called(function: Callable[..., Field], name: str) -> Callable[..., Field]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}` of the array API standard."
    return function


FUNCTIONS = {name: _of_one(name, numpys) for name, numpys in OF_ONE.items()}
FUNCTIONS |= {name: _of_two(name, numpys) for name, numpys in OF_TWO.items()}


def clip(x: Field, /, min: Operand = None, max: Operand = None) -> Field:
    """`clip` of the array API standard, in the field's dtype."""
    return algebra.astype(algebra.clip(x, min, max), x.dtype)


def round(x: Field, /) -> Field:
    """`round` of the array API standard: halves go to the even neighbour."""
    return choices.around(x)


def where(condition: Field, x1: Operand, x2: Operand, /) -> Field:
    """`where` of the array API standard."""
    return algebra.where(condition, x1, x2)


FUNCTIONS |= {"clip": clip, "round": round, "where": where}
