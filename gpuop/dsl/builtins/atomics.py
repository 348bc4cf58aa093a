"""Pointers, and the atomic functions on them: variables, array elements and output elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from gpuop.base.errors import SemanticError, article, here
from gpuop.base.records import dataclass
from gpuop.dsl.builtins.access import output_place
from gpuop.dsl.builtins.access_arguments import _pointed
from gpuop.dsl.builtins.shared_memory import LocalVariable, shown
from gpuop.dsl.recorder.assignment_targets import assigned_name
from gpuop.dsl.recorder.recorder import Recorder, caller, current
from gpuop.dsl.recorder.value import Operand, Value, atom
from gpuop.dsl.recorder.variable import Variable
from gpuop.ir.build import Builder, literal
from gpuop.ir.monoids import MONOIDS
from gpuop.ir.nodes import Array, Assign, Atomic, Expr, FieldParam, Lane, Load, Ref, Store, Var
from gpuop.ir.types import DOUBLE, FLOAT, INT, LONG, UINT, ULONG, Type

# name: the operation, operands, the kinds of numbers that it takes, its effect (`old` is the value that was read)
TYPES = (INT, UINT, LONG, ULONG, FLOAT, DOUBLE)
FUNCTIONS: dict[str, tuple[str, int, str, str]] = {
    "add": ("add", 1, MONOIDS["add"].atomic, "old + x"),
    "sub": ("sub", 1, MONOIDS["add"].atomic, "old - x"),
    "xchg": ("xchg", 1, "iuf", "x"),
    "inc": ("add", 0, "iu", "old + 1"),
    "dec": ("sub", 0, "iu", "old - 1"),
    "cmpxchg": ("cmpxchg", 2, "iuf", "x where old == compare (floats: the same bits), else old; operands: compare, x"),
    "compxchg": ("cmpxchg", 2, "iuf", "x where old == compare, else old, as `_atomic_cmpxchg` does"),
    "min": ("min", 1, MONOIDS["min"].atomic, "min(old, x), of floats the one that is a number, and -0 before 0"),
    "max": ("max", 1, MONOIDS["max"].atomic, "max(old, x), of floats the one that is a number, and 0 before -0"),
    "and": ("and", 1, MONOIDS["and"].atomic, "old & x"),
    "or": ("or", 1, MONOIDS["or"].atomic, "old | x"),
    "xor": ("xor", 1, MONOIDS["xor"].atomic, "old ^ x"),
}


@dataclass(frozen=True)
class Pointer:
    """Result of `_pointerTo`: an element of memory."""

    memory: Var | Array | FieldParam
    type: Type
    index: tuple[Expr, ...] = ()
    element: Expr | None = None
    advice: ClassVar[str] = "pointers are only for the atomic functions"


def _pointerTo(what: Operand, *place: Operand, offset: Any = None) -> Pointer:
    """A pointer for the atomic functions: `_pointerTo(v)`, `_pointerTo(a[i, j])`, or an output's element,
    `_pointerTo(_outK, [layer, [row,]] column[, element])`, or with `offset=`; outside the output nothing is updated."""
    recorder = current("`_pointerTo`")
    if (output := _pointed(recorder, what)) is not None:
        field, point, element = output_place(recorder, output, place, offset)
        return Pointer(field, Type(field.type.storage), point, element)
    if place or offset is not None:
        raise SemanticError(
            "`_pointerTo` takes coordinates after an output only; an element of an array is written in brackets, `a[i, j]`"
        )
    if isinstance(what, LocalVariable):
        if what.type.lanes > 1:
            raise SemanticError(
                f"atomics work on scalars, and `{what.hint}` is {article(str(what.type))}; use an array"
            )
        return Pointer(what._array, what.type)
    expr = what.expr if isinstance(what, Value) else None
    if isinstance(what, Variable) and isinstance(expr, Ref) and expr.var.mutable:
        return Pointer(expr.var, expr.type)
    loaded = recorder.values.get(expr.var) if isinstance(expr, Ref) else None
    named = any(value is what for value in caller().f_locals.values())  # then it is a value, which may be used again
    if isinstance(loaded, Load) and isinstance(expr, Ref) and not named and recorder.retract(expr.var):
        return Pointer(loaded.memory, loaded.type, loaded.index)
    what_else = " (components of vectors have no pointer)" if isinstance(loaded, Lane) else ""
    raise SemanticError(
        f"`_pointerTo` takes a variable, an array's element written in it (`_pointerTo(a[i])`) or an output, "
        f"not {shown(what)}{what_else}"
    )


def _operand(name: str, value: Operand, kind: Type) -> Expr:
    operand = atom(value)
    if isinstance(operand, (bool, int, float)):
        operand = literal(operand, [kind])
    if operand.type.lanes > 1 or (operand.type.kind == "f" and kind.kind != "f"):
        memory, argument = article(str(kind)), article(str(operand.type))
        raise SemanticError(f"{name} on {memory} takes {memory}, not {argument}; convert it first")
    return current().build.cast(operand, kind, saturate=False)


def _private(recorder: Recorder, op: str, memory: Var | Array, index: tuple[Expr, ...], args: list[Expr]) -> Value:
    """Read, compute and write private memory, which no other thread sees."""
    build, name = recorder.build, assigned_name(caller()) or "old"
    content = Ref(memory) if isinstance(memory, Var) else Load(memory, index, memory.type)
    old = recorder.declare(Var(name, memory.type), content)
    if op == "xchg":
        new = args[0]
    elif op == "cmpxchg":
        new = build.apply("choose", build.apply("eq", _bits(build, old), _bits(build, args[0])), args[1], old)
    elif op in ("min", "max") and memory.type.kind == "f":
        new = _extreme(build, op, old, args[0])
    else:
        new = build.apply(op, old, args[0])
    done = Assign(memory, new, here()) if isinstance(memory, Var) else Store(memory, index, new, here())
    recorder.emit(done)
    return Value(old)


def _bits(build: Builder, x: Expr) -> Expr:
    return x if x.type.integer else build.bits(x, Type(LONG if x.type.dtype is DOUBLE else INT))


def _extreme(build: Builder, op: str, old: Expr, x: Expr) -> Expr:
    """Update of shared memory by a minimum or maximum: independent of the order of threads."""
    sign = build.apply("lt" if op == "min" else "ge", _bits(build, x), 0)
    tied = build.apply("and", build.apply("eq", x, old), sign)
    wins = build.apply("or", build.apply("lt" if op == "min" else "gt", x, old), tied)
    return build.apply("choose", build.apply("or", wins, build.apply("ne", old, old)), x, old)


def _shared(recorder: Recorder, op: str, pointer: Pointer, args: list[Expr]) -> Value:
    assert not isinstance(pointer.memory, Var)
    if op == "sub" and pointer.type.kind == "f":
        op, args = "add", [recorder.build.apply("neg", args[0])]
    var = Var(assigned_name(caller()) or "old", pointer.type)
    recorder.scope_of[var] = recorder.scope
    recorder.emit(Atomic(op, pointer.memory, pointer.index, tuple(args), var, pointer.element, here()))
    return Value(Ref(var))


def _function(name: str) -> Callable[..., Value]:
    op, arity, kinds, meaning = FUNCTIONS[name]
    called, types = f"_atomic_{name}", [dtype for dtype in TYPES if dtype.kind in kinds]

    def function(pointer: Pointer, *operands: Operand) -> Value:
        recorder = current(f"`{called}`")
        if not isinstance(pointer, Pointer):
            raise SemanticError(f"{called} takes a pointer, as `{called}(_pointerTo(v)…)`, not {shown(pointer)}")
        if len(operands) != arity:
            raise SemanticError(
                f"{called} takes a pointer and {arity} operand{'s' * (arity != 1)}, not {len(operands)}"
            )
        if pointer.type.lanes > 1 or pointer.type.dtype not in types:
            raise SemanticError(f"{called} works on {', '.join(map(str, types))}, not on {article(str(pointer.type))}")
        if isinstance(pointer.memory, Array) and not pointer.memory.written:
            raise SemanticError(f"`{pointer.memory.hint}` is a constant table, which atomics cannot change")
        args = [_operand(called, value, pointer.type) for value in operands or (1,) * (name in ("inc", "dec"))]
        memory = pointer.memory
        if isinstance(memory, Var) or (isinstance(memory, Array) and memory.space == "private"):
            return _private(recorder, op, memory, pointer.index, args)
        return _shared(recorder, op, pointer, args)

    function.__name__ = function.__qualname__ = called
    function.__doc__ = f"Atomically replace what the pointer shows by {meaning}; gives what was there before."
    return function


def generated() -> dict[str, Callable[..., Value]]:
    return {f"_atomic_{name}": _function(name) for name in FUNCTIONS}
