"""Builtin functions of kernels: one for each table row and expansion with a public name."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

from gpuop.base.errors import SemanticError
from gpuop.dsl.recorder.recorder import current
from gpuop.dsl.recorder.target_facts import TargetExpression, formula
from gpuop.dsl.recorder.value import Operand, Value, apply, atom, literal_atom, record, typed
from gpuop.ir import type_rules
from gpuop.ir.build import number
from gpuop.ir.expansions.table import EXPANSIONS, Function
from gpuop.ir.ops import OPS, Row
from gpuop.ir.type_rules import Rule

# functions of two operands that take several, and the rule for their common type
SEVERAL = {
    "min": type_rules.arithmetic,
    "max": type_rules.arithmetic,
    "fmin": type_rules.floating,
    "fmax": type_rules.floating,
}
OF_LISTS: dict[str, Callable[..., Any]] = {}  # functions that mean something else of a list; `networks` enters its own
OTHERS = {"complex": "Of complex numbers (float2s, double2s)", "random": "Random bits"}  # functions that OpenCL has not


class Entry(NamedTuple):
    """A builtin function, as the documentation lists it.

    Attributes:
        name: with its underscore.
        group: "integer", "math", "geometric", "common", "relational", "complex" or "random".
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
        if name in SEVERAL:
            return _of_several(name, SEVERAL[name], args)
        if name in OF_LISTS and args and isinstance(args[0], (list, tuple)):
            return OF_LISTS[name](*args)
        if len(args) != arity:
            raise SemanticError(f"_{name} takes {arity} argument{'s' if arity > 1 else ''}, not {len(args)}")
        result = record(name, *args)
        return tuple(map(Value, result)) if isinstance(result, tuple) else Value(result)

    function.__name__ = function.__qualname__ = f"_{name}"
    function.__doc__ = doc
    return function


def generated() -> dict[str, Callable[..., Any]]:
    """`_sin`, `_pow`, `_clamp`, `_dot` and the other functions of the guide, and those of complex numbers."""
    return {e.name: _builtin(e.name[1:], e.arity, f"{_whose(e)}: {e.doc}.") for e in table()}


def _whose(entry: Entry) -> str:
    return OTHERS.get(entry.group, f"OpenCL's {entry.name[1:]}")


def listed(name: str, args: tuple[Any, ...]) -> Sequence[Any]:
    """The operands of a function of several: its arguments, or the members of one list.

    Raises:
        SemanticError: there are none, or a single one that is no list: of a vector its components could be meant.
    """
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        args = tuple(args[0])
        if args:
            return args
    if len(args) < 2:
        what = "nothing" if not args else "one value"
        raise SemanticError(
            f"{name} takes two values or more, or a list of values, not {what}; of a vector's components: `{name}(*v)`"
        )
    return args


def _of_several(name: str, rule: Rule, args: tuple[Operand, ...]) -> Any:
    """A function of two operands, of several: all convert to their common type first, so their order does not matter."""
    values = listed(f"_{name}", args)
    if any(isinstance(v, TargetExpression) for v in values):
        return reduce(partial(formula, name), values)
    steps = current(f"`_{name}`").steps
    return Value(steps(lambda: reduce(partial(apply, name), alike(f"_{name}", rule, values)).expr))


def alike(name: str, rule: Rule, values: Sequence[Operand]) -> list[Value]:
    """The values in their common type."""
    build = current(f"`{name}`").build
    operands = build.literals((), [typed(v) if all(map(_is_number, values)) else atom(v) for v in values])
    types, _ = rule(name, [g.type for g in operands])
    return [Value(build.cast(g, t, saturate=False)) for g, t in zip(operands, types, strict=True)]


def _is_number(value: Operand) -> bool:
    return number(value) is not None


def _logical(name: str, *args: Operand) -> Any:
    """An operation on values, or on target expressions."""
    return (formula if any(isinstance(a, TargetExpression) for a in args) else apply)(name, *args)


def _and(*values: Operand) -> Any:
    """C `a && b && …` as a bool, of two values or more or of a list of them; all are computed."""
    operands = listed("_and", values)
    return reduce(partial(_logical, "both"), operands if len(operands) > 1 else (*operands, True))


def _or(*values: Operand) -> Any:
    """C `a || b || …` as a bool, of two values or more or of a list of them; all are computed."""
    operands = listed("_or", values)
    return reduce(partial(_logical, "either"), operands if len(operands) > 1 else (*operands, False))


def _sum(*values: Operand) -> Any:
    """a + b + …, of two values or more or of a list of them: added from left to right, as it is written."""
    operands = listed("_sum", values)
    if any(isinstance(v, TargetExpression) for v in operands):
        return reduce(operator.add, operands)
    return Value(current("`_sum`").steps(lambda: literal_atom(reduce(_added, operands))))


def _added(a: Operand, b: Operand) -> Any:
    """a + b; Python numbers are added in Python, as the sum takes the other operand's type."""
    return a + b if _is_number(a) and _is_number(b) else apply("add", a, b)


def _not(a: Operand) -> Any:
    """C `!a` as a bool."""
    return _logical("not", a)


def _where(condition: Operand, a: Operand, b: Operand) -> Value:
    """a where the condition holds, else b; as numpy.where."""
    return apply("choose", condition, a, b)
