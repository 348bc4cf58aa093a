"""Warnings for C semantics that users hardly mean: a KernelWarning at the user line, once per line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuop.base.errors import KernelWarning, user_frame, warn
from gpuop.ir.build import Number
from gpuop.ir.nodes import Const, Expr, Ref, Var
from gpuop.ir.types import Type

if TYPE_CHECKING:
    from gpuop.dsl.recorder.recorder import Recorder

MIRRORED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
SIGNS = {
    "less": "less than", "less_equal": "at most", "greater": "greater than", "greater_equal": "at least", "equal": "equal to",
    "not_equal": "other than",
}  # fmt: skip
OPERATOR = 3  # frames from here to the line with the operator


def note(recorder: Recorder, name: str, operands: Sequence[Any], atoms: Sequence[Any], result: Expr) -> None:
    """Examine an operator in the user's line."""
    frame = sys._getframe(OPERATOR)
    if (name not in SIGNS and name != "divide") or user_frame(frame) is not frame or len(atoms) != 2:
        return
    a, b = atoms
    if name == "divide":
        all_recorded = not any(isinstance(operand, (int, float, np.generic)) for operand in operands)
        if all_recorded and isinstance(result, Ref) and result.type.integer:
            recorder.quotients.add(result.var)
    elif (number := _number(b)) is not None:
        _check_comparison(name, a, number)
    elif (number := _number(a)) is not None:
        _check_comparison(MIRRORED.get(name, name), b, number)


def _number(atom: Any) -> Number | None:
    value = atom.value if isinstance(atom, Const) else atom
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _check_comparison(name: str, value: Any, number: Number) -> None:
    """Warn of a comparison that the type of one side decides."""
    if not isinstance(value, Expr) or not value.type.integer or value.type.kind == "b" or number != number:
        return
    info = np.iinfo(value.type.dtype.numpy)
    result = _decided(name, int(info.min), int(info.max), number)
    if result is not None:
        kind, when = Type(value.type.dtype), "always" if result else "never"
        warn(
            f"this comparison is {when} true, whatever the value: {kind} is from {info.min} to {info.max}, so it is {when} "
            f"{SIGNS[name]} {number}; what is computed in {kind} wraps around at these ends, as in C: convert before you compute, "
            "as `_convert_int(x)` and `_convert_float(x)` do, or leave the comparison out",
            KernelWarning,
        )


def _decided(name: str, low: int, high: int, number: Number) -> bool | None:
    """Result of comparing any integer of a range with a number; None if it depends on the integer."""
    match name:
        case "less":
            return True if high < number else False if low >= number else None
        case "less_equal":
            return True if high <= number else False if low > number else None
        case "greater":
            return True if low > number else False if high <= number else None
        case "greater_equal":
            return True if low >= number else False if high < number else None
    outside = not low <= number <= high or number != int(number)
    return (name == "not_equal") if outside else None


def as_float(quotients: set[Var], value: Any) -> None:
    """Warn where a quotient of two integers becomes a float by itself."""
    if quotients and isinstance(value, Ref) and value.var in quotients:
        quotients.discard(value.var)
        warn(
            "`/` of two integers is an integer in kernels, as in C, and becomes a float only here: 1 / 2 is 0; write "
            "`_convert_float(a) / b` for the quotient of floats, or `a // b` where an integer is meant",
            KernelWarning,
        )
