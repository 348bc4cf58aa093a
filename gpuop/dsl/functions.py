"""The builtin functions of kernels: one for each table row and expansion that has a public name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gpuop.dsl.targets import TargetExpression, formula
from gpuop.dsl.value import Operand, Value, apply, record
from gpuop.errors import SemanticError
from gpuop.ir.expansions import EXPANSIONS, Function
from gpuop.ir.ops import OPS, Row


class Entry(NamedTuple):
    """A builtin function, as the documentation lists it.

    Attributes:
        name: with its underscore.
        group: "integer", "math", "geometric", "common" or "relational".
        ulp: the error bound for float: 0 for correctly rounded, infinity where OpenCL 1.2 sets none.
        doc: what it computes, in one line.
        double: the bound for double.
    """

    name: str
    group: str
    arity: int
    ulp: float
    doc: str
    double: float


def table() -> list[Entry]:
    """The builtin functions, by group and name."""
    entries = [
        Entry(f"_{f.name}", f.group, f.arity, f.ulp, f.doc, f.ulp if f.double is None else f.double) for f in _public()
    ]
    return sorted(entries, key=lambda e: (e.group, e.name))


def _public() -> list[Row | Function]:
    """Rows and expansions that users call; operators and parts have no group."""
    everything: list[Row | Function] = [*OPS.values(), *EXPANSIONS.values()]
    return [function for function in everything if function.group]


def _builtin(name: str, arity: int, doc: str) -> Callable[..., Any]:
    def function(*args: Operand) -> Any:
        if len(args) != arity:
            raise SemanticError(f"_{name} takes {arity} argument{'s' if arity > 1 else ''}, not {len(args)}")
        if name in ("min", "max") and any(isinstance(a, TargetExpression) for a in args):
            return formula(name, *args)
        result = record(name, *args)
        return tuple(map(Value, result)) if isinstance(result, tuple) else Value(result)

    function.__name__ = function.__qualname__ = f"_{name}"
    function.__doc__ = doc
    return function


def generated() -> dict[str, Callable[..., Any]]:
    """`_sin`, `_pow`, `_clamp`, `_dot` and the other functions of the guide."""
    return {e.name: _builtin(e.name[1:], e.arity, f"OpenCL's {e.name[1:]}: {e.doc}.") for e in table()}


def _logical(name: str, *args: Operand) -> Any:
    """An operation on values, or on target expressions."""
    return (formula if any(isinstance(a, TargetExpression) for a in args) else apply)(name, *args)


def _and(a: Operand, b: Operand) -> Any:
    """C's `a && b` as a bool; both sides are computed."""
    return _logical("both", a, b)


def _or(a: Operand, b: Operand) -> Any:
    """C's `a || b` as a bool; both sides are computed."""
    return _logical("either", a, b)


def _not(a: Operand) -> Any:
    """C's `!a` as a bool."""
    return _logical("not", a)


def _where(condition: Operand, a: Operand, b: Operand) -> Value:
    """a where the condition holds, else b; as numpy.where."""
    return apply("choose", condition, a, b)
