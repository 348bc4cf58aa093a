"""Selection of one of several cases by an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuop.base.errors import SemanticError, here
from gpuop.dsl.builtins.declarations import variable
from gpuop.dsl.builtins.functions import listed
from gpuop.dsl.recorder.recorder import Recorder, Scope, current
from gpuop.dsl.recorder.value import Operand, Value, atom, integer
from gpuop.dsl.recorder.variable import Variable
from gpuop.ir import type_rules
from gpuop.ir.build import Number, collector, literal
from gpuop.ir.nodes import Assign, Block, Expr, If, Ref, Stmt
from gpuop.ir.types import Type

Case = tuple[list[Stmt], tuple[Expr | Number, ...], bool]  # statements, values, and a flag for several values


def _switch(index: Operand, *cases: Any) -> Any:
    """The value of the case that an index counts: `_switch(k, lambda: _readTensor(f), lambda: _readTensor(g), 0)`.

    Args:
        index: a scalar integer; below 0 it means the first case, beyond the last one that.
        cases: two or more, side by side or in a list: values, or functions without arguments, of which only the chosen one runs.
            They may read, loop and write; they give a value, or tuples of equally many, or nothing.

    Returns:
        A value of the cases' common type, a tuple where they give tuples, or None where they give nothing.

    Raises:
        SemanticError: fewer than two cases, or some that give more values than others.
    """
    recorder = current("`_switch`")
    branches = listed("_switch", cases)
    at = integer(index, "the index of `_switch`")
    recorded = [_recorded(recorder, case) for case in branches]
    counts = sorted({len(values) for _, values, _ in recorded})
    if len(counts) > 1:
        raise SemanticError(
            f"every case of `_switch` gives as many values as the others, not {counts[0]} and {counts[-1]}"
        )
    variables = [_variable(recorder, [values[n] for _, values, _ in recorded]) for n in range(counts[0])]
    bodies = [_assigning(statements, variables, values) for statements, values, _ in recorded]
    for stmt in _chain(at, bodies):
        recorder.emit(stmt)
    results = tuple(Value(each.expr) for each in variables)
    return results if any(several for _, _, several in recorded) else results[0] if results else None


def _recorded(recorder: Recorder, case: Any) -> Case:
    """Statements and results of a case."""
    if not callable(case):
        return [], (atom(case),), False
    recorder.push(Scope("_switch", here()))
    try:
        result = case()
        values = result if isinstance(result, tuple) else () if result is None else (result,)
        return recorder.scope.statements, tuple(map(atom, values)), isinstance(result, tuple)
    finally:
        recorder.pop()


def _variable(recorder: Recorder, results: Sequence[Expr | Number]) -> Variable:
    """A variable of the common type of what the cases give."""
    types = [expr.type for expr in recorder.build.literals((), results)]
    kind = Type(type_rules.common(types), type_rules.lanes("`_switch`", types))
    return variable(kind, 0)


def _assigning(statements: list[Stmt], variables: Sequence[Variable], values: Sequence[Expr | Number]) -> Block:
    """A case that assigns its values."""
    body, loc = [*statements], here()
    build = collector(body, loc)
    for each, value in zip(variables, values, strict=True):
        expr = literal(value, [each.type]) if isinstance(value, (bool, int, float)) else value
        converted = build.cast(expr, each.type, saturate=False)
        assert isinstance(each.expr, Ref)
        body.append(Assign(each.expr.var, converted, loc))
    return tuple(body)


def _chain(at: Expr, bodies: Sequence[Block]) -> Block:
    """Conditions one after another; indices beyond the cases come to the nearest one."""
    loc, chain = here(), bodies[-1]
    for k in reversed(range(len(bodies) - 1)):
        out: list[Stmt] = []
        test = collector(out, loc).apply("lt", at, k + 1)
        chain = (*out, If(test, bodies[k], chain, loc))
    return chain
