"""Collective operations of a work-group: reductions, scans, votes, selections and shuffles."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError, article, described, here
from gpuop.dsl.builtins.functions import _where
from gpuop.dsl.builtins.functions import generated as functions
from gpuop.dsl.recorder.assignment_targets import assigned_name
from gpuop.dsl.recorder.callables import check_two_values
from gpuop.dsl.recorder.control_flow import condition
from gpuop.dsl.recorder.recorder import Recorder, Scope, caller, current
from gpuop.dsl.recorder.target_facts import TargetExpression, extent
from gpuop.dsl.recorder.value import Operand, Value, atom, convert, integer, literal_atom
from gpuop.ir.build import Builder
from gpuop.ir.monoids import MONOIDS
from gpuop.ir.nodes import (
    GRID_AXES,
    Assign,
    Break,
    Collective,
    Combination,
    Continue,
    Expr,
    For,
    If,
    Index,
    Let,
    Load,
    Read,
    Ref,
    Var,
    While,
)
from gpuop.ir.target_expressions import Extent
from gpuop.ir.types import INT, UCHAR, UINT, Type, is_integer
from gpuop.ir.visit import bound, changed, expressions, walk, walk_expr


def _collective(word: str, kind: str, value: Expr, over: Any, **more: Any) -> Value:
    """Record an operation, whose result is of the value's type."""
    recorder = current(f"`{word}`")
    var = Var(assigned_name(caller()) or "t", value.type)
    recorder.scope_of[var] = recorder.scope
    recorder.emit(Collective(kind, var, value, _parts(recorder, word, over), word=word, loc=here(), **more))
    return Value(Ref(var))


def _parts(recorder: Recorder, word: str, over: Any) -> Extent | str:
    """Threads of the collective operation."""
    if over is None:
        return ""
    if isinstance(over, str):
        if over not in GRID_AXES:
            raise SemanticError(f"{word}: `over=` names an axis, {', '.join(map(repr, GRID_AXES))}, not {over!r}")
        return over
    if isinstance(over, TargetExpression):
        return extent(over, "`over=`")
    if not is_integer(over):
        raise SemanticError(f"{word}: `over=` is the name of an axis, or a number of threads, not {described(over)}")
    sizes = recorder.work_group
    threads = int(np.prod([n for n in sizes if isinstance(n, int)]))
    if over < 1 or (all(isinstance(n, int) for n in sizes) and threads % over):
        raise SemanticError(
            f"{word}: `over={over}` makes no equal parts of a work-group of {threads} threads; "
            f"give a divisor of {threads}, or the name of an axis"
        )
    return int(over)


def _operand(word: str, value: Operand) -> tuple[Expr, bool]:
    """The value, and whether it is a truth value, which threads pass on as a number."""
    recorder = current(f"`{word}`")
    expr = literal_atom(value)
    if expr.type.kind != "b":
        return expr, False
    return recorder.build.cast(expr, expr.type.of(UCHAR)), True


def _as_given(value: Value, truth: bool) -> Value:
    return value != 0 if truth else value


def _summed(op: Any, expr: Expr, truth: bool) -> tuple[Expr, bool]:
    """Sums and products of truth values are integers, as in Python."""
    if truth and op in ("add", "mul"):
        return current().build.cast(expr, expr.type.of(INT)), False
    return expr, truth


def _reduceGroup(
    value: Operand, op: Any, *, identity: Operand | None = None, broadcast: bool = True, over: Any = None
) -> Value:
    """Reduction of the values of all threads of the work-group, or of each part of it.

    All threads of the work-group come here together. Values are combined in an order that depends on the number of threads
    alone, so floats have the same bits on all devices. Threads that the grid has not are left out: a group that the grid
    cuts has fewer threads, which are renumbered without gaps, in row-major order; with `whole_groups=True` of
    `_localThreads` too, though these tail threads run.

    Args:
        value: a scalar or a vector, which is combined component by component. The result has its type; sums and products
            of bools are ints.
        op: "add", "mul", "min" and "max" (NaN where a value is NaN, as in NumPy), "fmin" and "fmax" (which leave NaN out), "and",
            "or", "xor"; or a function of two values that uses nothing else, and that is associative and commutative.
        identity: the neutral element, optional.
        broadcast: whether all threads get the result, or the first one of each part; then the others keep their value.
        over: None for the whole work-group; "layer", "row" or "column" for the threads along that axis, so "column" is a reduction
            for each row of threads; or how many threads, in row-major order, make a part: a divisor of the work-group's. A
            group that the grid cuts has the parts of a whole one, with the threads that are left in each, numbered anew there.

    Raises:
        SemanticError: an unknown operation, a function that uses other kernel values, parts that do not divide the
            work-group; or, when the body ends, a condition around it that may differ between threads.
    """
    word = "_reduceGroup"
    if not isinstance(broadcast, bool):
        raise SemanticError(f"{word}: `broadcast=` is True or False, not {described(broadcast)}")
    expr, truth = _summed(op, *_operand(word, value))
    if identity is not None:
        identity_of(word, op, expr.type, identity)
    combined = combination(word, op, expr.type)
    kind = "reduce" if broadcast else "first"
    return _as_given(_collective(word, kind, expr, over, combination=combined), truth)


def _scanGroup(
    value: Operand, op: Any, *, inclusive: bool = True, identity: Operand | None = None, over: Any = None
) -> Value:
    """Prefix reduction (such as a prefix sum) of the values of the threads up to this one, in row-major order.

    All threads of the work-group come here together. The order of combining is the same on all devices.

    Args:
        value, op, over: as `_reduceGroup` takes them. Values are combined in the order of threads, so a function need not be
            commutative.
        inclusive: whether the thread's own value is among them.
        identity: the result of the first thread otherwise; named operations have one.

    Raises:
        SemanticError: as `_reduceGroup`; a function without `identity=` where `inclusive` is False.
    """
    word = "_scanGroup"
    if not isinstance(inclusive, bool):
        raise SemanticError(f"{word}: `inclusive=` is True or False, not {described(inclusive)}")
    expr, truth = _summed(op, *_operand(word, value))
    combined = combination(word, op, expr.type)
    outside = None if inclusive else identity_of(word, op, expr.type, identity)
    kind = "scan" if inclusive else "before"
    return _as_given(_collective(word, kind, expr, over, combination=combined, outside=outside), truth)


def _anyGroup(value: Operand, *, over: Any = None) -> Value:
    """Return whether a condition holds for any thread of the work-group, or of each part of it; all threads come here together.

    Args:
        value: a bool, or a number, which holds where it is not 0.
        over: as `_reduceGroup` takes it.
    """
    return _vote("_anyGroup", "or", value, over) != 0


def _allGroup(value: Operand, *, over: Any = None) -> Value:
    """Return whether a condition holds for all threads of the work-group, or of each part of it; all threads come here
    together.

    Args:
        value: a bool, or a number, which holds where it is not 0.
        over: as `_reduceGroup` takes it.
    """
    return _vote("_allGroup", "and", value, over) != 0


def _countGroup(value: Operand, *, over: Any = None) -> Value:
    """The number of threads of the work-group, or of each part of it, for which a condition holds, an int.

    All threads of the work-group call it together.
    Args:
        value: a bool, or a number, which holds where it is not 0.
        over: as `_reduceGroup` takes it.
    """
    return _vote("_countGroup", "add", value, over)


def _ballotGroup(value: Operand, *, over: Any = None) -> Value:
    """The threads of the work-group, or of each part of it, for which a condition holds: a uint with a bit for each thread.

    The least bit is that of the first thread. In a group that the grid cuts, bits are those of the remaining threads, as
    `_reduceGroup` numbers them. All threads of the work-group call it together.

    Args:
        value: a bool, or a number, which holds where it is not 0.
        over: as `_reduceGroup` takes it; a part has 32 threads at most. Of parts of 2, 4, 8, 16 or 32 threads, CUDA has an
            instruction.

    Raises:
        SemanticError: a part has more threads.
    """
    word = "_ballotGroup"
    expr = _ballot(current(f"`{word}`").build, value, word)
    return _collective(word, "ballot", expr, over, combination=combination(word, "or", expr.type))


def _ballot(build: Builder, value: Operand, word: str) -> Expr:
    """A uint that is not 0 where a condition holds; integers of 32 bits are taken as they are."""
    source = atom(value)
    if not isinstance(source, (bool, int, float)) and source.type in (Type(INT), Type(UINT)):
        return build.cast(source, Type(UINT), saturate=False)
    return build.cast(condition(value, word), Type(UINT))


def _vote(word: str, op: str, truth: Operand, over: Any) -> Value:
    recorder = current(f"`{word}`")
    expr = recorder.build.cast(condition(truth, word), Type(INT))
    return _collective(word, "reduce", expr, over, combination=combination(word, op, expr.type))


def _broadcastGroup(value: Operand, thread: Operand = 0, *, over: Any = None) -> Value:
    """The value of one thread of the work-group, or of each part of it, for all; all threads come here together.

    Args:
        value: a scalar or a vector.
        thread: its number in row-major order, the same for all threads; brought to the nearest that there is.
        over: as `_reduceGroup` takes it.
    """
    return _from("_broadcastGroup", "broadcast", value, thread, over)


def _selectGroup(value: Operand, k: Operand, *, over: Any = None) -> Value:
    """The value with `k` others before it in NumPy order, of all threads of the work-group or of each part of it.

    The least is 0, and NaN comes last. All threads come here together; each compares its value with all others.

    Args:
        value: a scalar.
        k: an integer, the same for all threads; brought to the nearest that there is.
        over: as `_reduceGroup` takes it.
    """
    word = "_selectGroup"
    expr, truth = _operand(word, value)
    if expr.type.lanes > 1:
        raise SemanticError(f"{word} takes a scalar, not {article(str(expr.type))}; vectors have no order")
    return _as_given(_collective(word, "select", expr, over, at=integer(k, f"the place of {word}")), truth)


def _shuffleGroup(value: Operand, thread: Operand, *, over: Any = None) -> Value:
    """The value of the thread of a number, which may differ between threads; the thread's own where there is no such.

    All threads of the work-group come here together. In a group that the grid cuts, numbers are those of the threads that are
    left, as `_reduceGroup` numbers them: the thread below in a column is not always as many further as a whole group is wide.

    Args:
        value: a scalar or a vector.
        thread: a number in row-major order, in the work-group or in the part of it.
        over: as `_reduceGroup` takes it. Of parts of 2, 4, 8, 16 or 32 threads, CUDA passes values without memory.
    """
    return _from("_shuffleGroup", "shuffle", value, thread, over)


def _shuffleGroupUp(value: Operand, distance: Operand = 1, *, over: Any = None) -> Value:
    """The value of the thread whose number is so much less, or the thread's own; otherwise as `_shuffleGroup`."""
    return _from("_shuffleGroupUp", "up", value, distance, over)


def _shuffleGroupDown(value: Operand, distance: Operand = 1, *, over: Any = None) -> Value:
    """The value of the thread whose number is so much greater, or the thread's own; otherwise as `_shuffleGroup`."""
    return _from("_shuffleGroupDown", "down", value, distance, over)


def _shuffleGroupXor(value: Operand, mask: Operand, *, over: Any = None) -> Value:
    """The value of the thread whose number differs in the bits of a mask, or the thread's own; otherwise as `_shuffleGroup`."""
    return _from("_shuffleGroupXor", "xor", value, mask, over)


def _from(word: str, kind: str, value: Operand, at: Operand, over: Any) -> Value:
    expr, truth = _operand(word, value)
    return _as_given(_collective(word, kind, expr, over, at=integer(at, f"the thread of {word}")), truth)


WORDS = (
    _reduceGroup, _scanGroup, _anyGroup, _allGroup, _countGroup, _ballotGroup, _broadcastGroup, _selectGroup, _shuffleGroup,
    _shuffleGroupUp, _shuffleGroupDown, _shuffleGroupXor,
)  # fmt: skip


# --- operations of `_reduceGroup` and `_scanGroup`: names, and functions of two values --------------------------------


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
    operation = Combination(left, right, body, result, op if isinstance(op, str) else "")
    _check_alone(word, operation)
    return operation


def _check_alone(word: str, operation: Combination) -> None:
    """Other threads' values are combined by any thread, so a function knows nothing of its own."""
    own = {operation.left, operation.right, *bound(operation.body)}
    used = [*expressions(operation.body), *walk_expr(operation.result)]
    foreign = any((isinstance(e, Ref) and e.var not in own) or isinstance(e, (Read, Load, Index)) for e in used)
    if (
        foreign
        or not changed(operation.body) <= own
        or not all(isinstance(stmt, ORDERED) for stmt in walk(operation.body))
    ):
        raise SemanticError(
            f"the function that {word} combines values with uses its two arguments and constants only, as it runs in any "
            "thread: it accesses no memory and no other value of the kernel"
        )


def identity_of(word: str, op: Any, kind: Type, identity: Operand) -> Expr:
    """Value before the first thread."""
    if identity is not None:
        return convert(identity, kind)
    if not isinstance(op, str):
        raise SemanticError(f"{word} with a function needs `identity=`, the value before the first thread")
    return convert(MONOIDS[op].identity(kind.dtype), kind)
