"""Operations of `_reduceGroup` and `_scanGroup`: names, and functions of two values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from gpuop.base.errors import SemanticError, here
from gpuop.dsl.builtins.functions import _where
from gpuop.dsl.builtins.functions import generated as functions
from gpuop.dsl.recorder.callables import check_two_values
from gpuop.dsl.recorder.recorder import Scope, current
from gpuop.dsl.recorder.value import Operand, Value, convert
from gpuop.ir.monoids import MONOIDS
from gpuop.ir.nodes import Assign, Break, Combination, Continue, Expr, For, If, Index, Let, Load, Read, Ref, Var, While
from gpuop.ir.types import Type
from gpuop.ir.visit import bound, changed, expressions, walk, walk_expr

Function = Callable[[Any, Any], Any]
_FUNCTIONS = functions()


def _least(a: Value, b: Value) -> Value:
    return _extreme(a <= b, a, b)


def _greatest(a: Value, b: Value) -> Value:
    return _extreme(a >= b, a, b)


def _extreme(first: Value, a: Value, b: Value) -> Value:
    return _where(first | (a != a) if a.type.kind == "f" else first, a, b)


# operation of a monoid on two recorded values
OPERATIONS: dict[str, Function] = {
    "add": operator.add,
    "mul": operator.mul,
    "min": _least,
    "max": _greatest,
    "fmin": _FUNCTIONS["_fmin"],
    "fmax": _FUNCTIONS["_fmax"],
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
ORDERED = (Let, Assign, If, For, While, Break, Continue)  # statements that a function of two values may record


def combination(word: str, op: Any, kind: Type) -> Combination:
    """Recorded form of a named operation, or of a function of two values."""
    recorder = current(f"`{word}`")
    if isinstance(op, str) and op not in OPERATIONS:
        raise SemanticError(
            f"{word} has no operation {op!r}; it has {', '.join(OPERATIONS)}, and functions of two values"
        )
    if not isinstance(op, str):
        check_two_values(f"{word} takes the name of an operation or a function of two values", op)
    function = OPERATIONS[op] if isinstance(op, str) else op
    left, right = Var("a", kind, temporary=True), Var("b", kind, temporary=True)
    scope = Scope(word, here())
    naming, recorder.naming = recorder.naming, False
    recorder.push(scope)
    recorder.scope_of[left] = recorder.scope_of[right] = scope
    try:
        result = convert(function(Value(Ref(left)), Value(Ref(right))), kind)
    finally:
        body, recorder.naming = tuple(recorder.pop()), naming
    made = Combination(left, right, body, result, op if isinstance(op, str) else "")
    _check_alone(word, made)
    return made


def _check_alone(word: str, made: Combination) -> None:
    """Other threads' values are combined by any thread, so a function knows nothing of its own."""
    own = {made.left, made.right, *bound(made.body)}
    used = [*expressions(made.body), *walk_expr(made.result)]
    foreign = any((isinstance(e, Ref) and e.var not in own) or isinstance(e, (Read, Load, Index)) for e in used)
    if foreign or not changed(made.body) <= own or not all(isinstance(stmt, ORDERED) for stmt in walk(made.body)):
        raise SemanticError(
            f"the function that {word} combines values by uses only these two and constants: it runs in any thread; "
            "it reads and writes no memory, and knows no other value of the kernel's"
        )


def identity_of(word: str, op: Any, kind: Type, identity: Operand) -> Expr:
    """Value before the first thread."""
    if identity is not None:
        return convert(identity, kind)
    if not isinstance(op, str):
        raise SemanticError(f"{word} of a function takes `identity=`, which the first thread gets")
    return convert(MONOIDS[op].identity(kind.dtype), kind)
