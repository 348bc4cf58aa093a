"""The builtin functions of kernels: one for each table row and expansion that has a public name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpuop.dsl.value import Operand, Value, apply, record
from gpuop.errors import SemanticError
from gpuop.ir.expansions import EXPANSIONS
from gpuop.ir.ops import OPS

INTERNAL = {
    "add", "sub", "mul", "div", "mod", "neg", "lt", "le", "gt", "ge", "eq", "ne", "and", "xor", "or", "invert", "shl", "shr",
    "not", "choose", "remquo_bits", "floordiv", "both", "either", "absolute", "power",
}  # fmt: skip


def _builtin(name: str, arity: int, doc: str) -> Callable[..., Any]:
    def function(*args: Operand) -> Any:
        if len(args) != arity:
            raise SemanticError(f"_{name} takes {arity} argument{'s' if arity > 1 else ''}, not {len(args)}")
        result = record(name, *args)
        return tuple(map(Value, result)) if isinstance(result, tuple) else Value(result)

    function.__name__ = function.__qualname__ = f"_{name}"
    function.__doc__ = doc
    return function


def generated() -> dict[str, Callable[..., Any]]:
    """`_sin`, `_pow`, `_clamp`, `_dot` and the other functions of the guide."""
    names = {
        f"_{name}": _builtin(name, row.arity, f"OpenCL's {name}.") for name, row in OPS.items() if name not in INTERNAL
    }
    for name, (arity, function) in EXPANSIONS.items():
        if name not in INTERNAL:
            names[f"_{name}"] = _builtin(name, arity, function.__doc__ or f"OpenCL's {name}.")
    return names


def _and(a: Operand, b: Operand) -> Value:
    """C's `a && b` as a bool; both sides are computed."""
    return apply("both", a, b)


def _or(a: Operand, b: Operand) -> Value:
    """C's `a || b` as a bool; both sides are computed."""
    return apply("either", a, b)


def _not(a: Operand) -> Value:
    """C's `!a` as a bool."""
    return apply("not", a)


def _where(condition: Operand, a: Operand, b: Operand) -> Value:
    """a where the condition holds, else b; as numpy.where."""
    return apply("choose", condition, a, b)


def _select(a: Operand, b: Operand, condition: Operand) -> Value:
    """b where the condition holds, else a: OpenCL's order."""
    return apply("choose", condition, b, a)
