"""The invariants of a kernel, checked after recording and after every pass. A violation is a bug of gpuop's."""

from __future__ import annotations

from enum import Enum

from gpuop.errors import GpuopError
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import (
    ATOMS,
    Apply,
    Array,
    Assert,
    Assign,
    Atomic,
    Block,
    Break,
    Continue,
    Declare,
    Expr,
    FieldParam,
    For,
    If,
    Lane,
    Let,
    Load,
    Pack,
    Read,
    Ref,
    Stmt,
    Store,
    Var,
    While,
    Wide,
    Write,
)
from gpuop.ir.ops import OPS
from gpuop.ir.symbolic import TargetConst
from gpuop.ir.types import BOOL, Type
from gpuop.ir.visit import operands, values


class Form(Enum):
    RECORDED = "recorded"
    LOWERED = "lowered"
    PRINTABLE = "printable"


class VerifyError(GpuopError):
    """An internal error: a pass broke an invariant."""


def verify(kernel: Kernel, form: Form, after: str = "recording") -> Kernel:
    """Return the kernel, or raise VerifyError naming the pass that broke it."""
    try:
        _Checker(kernel, form).block(kernel.body, 0)
    except AssertionError as broken:
        raise VerifyError(f"internal error in kernel {kernel.name!r} after {after}: {broken}") from broken
    return kernel


def element_type(memory: Array | FieldParam) -> Type:
    """The type of what an array or a field holds."""
    return memory.type if isinstance(memory, Array) else Type(memory.type.storage)


class _Checker:
    def __init__(self, kernel: Kernel, form: Form) -> None:
        self.form = form
        self.resolved = kernel.target is not None
        self.vectors = form is Form.RECORDED or (kernel.target is not None and kernel.target.vector_length > 1)
        self.inputs = set(kernel.inputs)
        self.outputs = set(kernel.written)
        self.bound: set[Var | Array] = set()
        self.scopes: list[set[Var | Array]] = []

    def visible(self, symbol: Var | Array) -> bool:
        return any(symbol in scope for scope in self.scopes)

    def bind(self, symbol: Var | Array) -> None:
        assert symbol not in self.bound, f"{symbol.hint} is bound twice"
        self.bound.add(symbol)
        self.scopes[-1].add(symbol)

    def block(self, block: Block, loops: int, *extra: Var) -> None:
        self.scopes.append(set())
        for var in extra:
            self.bind(var)
        for stmt in block:
            self.stmt(stmt, loops)
        self.scopes.pop()

    def stmt(self, stmt: Stmt, loops: int) -> None:
        for value in () if isinstance(stmt, While) else values(stmt):
            self.expr(value, nested=self.form is Form.PRINTABLE or isinstance(stmt, (Let, Assign)))
        match stmt:
            case Let(var=var, value=value):
                assert var.type == value.type, f"{var.hint}: {var.type} is bound to a {value.type}"
                self.bind(var)
            case Assign(var=var, value=value):
                assert self.visible(var) and var.mutable, f"{var.hint} is not an assignable variable here"
                assert var.type == value.type, f"{var.hint}: {var.type} is assigned a {value.type}"
            case Declare() | Store() | Atomic() | Wide() | Assert():
                self.effect(stmt)
            case Write(field=field, value=value):
                assert self.form is Form.RECORDED, "a write survives lowering"
                assert field in self.outputs, f"{field.hint} is not an output"
                assert value.type.dtype is field.type.storage, f"{field.hint} is written a {value.type}"
            case _:
                self.nested(stmt, loops)

    def effect(self, stmt: Declare | Store | Atomic | Wide | Assert) -> None:
        match stmt:
            case Declare(array=array):
                assert array.space != "local" or len(self.scopes) == 1, f"{array.hint}: local memory in a block"
                self.bind(array)
            case Atomic(memory=memory, args=args, var=var):
                known = self.visible(memory) if isinstance(memory, Array) else memory in self.outputs
                assert known, f"{memory.hint} is not updated here"
                for arg in args:
                    assert arg.type == element_type(memory), f"{memory.hint} is updated by a {arg.type}"
                if var is not None:
                    assert var.type == element_type(memory), (
                        f"{var.hint}: {var.type} is bound to an element of {memory.hint}"
                    )
                    self.bind(var)
            case Wide(field=field, array=array, loads=loads):
                assert field in (self.inputs if loads else self.outputs), f"{field.hint} is not accessed so"
                assert self.visible(array) and array.space == "private", f"{array.hint} does not hold lanes here"
                assert array.type == element_type(field), f"{array.hint} has not the type of {field.hint}"
            case Assert(cond=cond):
                assert cond.type == Type(BOOL), f"an assertion's condition is a {cond.type}"
            case Store(memory=memory, value=value):
                known = self.visible(memory) if isinstance(memory, Array) else memory in self.outputs
                assert known, f"{memory.hint} is not stored to here"
                self.one_lane(value.type)

    def nested(self, stmt: Stmt, loops: int) -> None:
        match stmt:
            case If(cond=cond, then=then, orelse=orelse):
                assert cond.type == Type(BOOL), f"a condition is a {cond.type}"
                self.block(then, loops)
                self.block(orelse, loops)
            case For(var=var, body=body):
                self.block(body, loops + 1, var)
            case While(head=head, cond=cond, body=body):
                self.scopes.append(set())  # the condition and the body see what the head computes
                for inner in head:
                    self.stmt(inner, loops + 1)
                self.expr(cond, nested=self.form is Form.PRINTABLE)
                assert cond.type == Type(BOOL), f"a condition is a {cond.type}"
                self.block(body, loops + 1)
                self.scopes.pop()
            case Break() | Continue():
                assert loops, "a break or continue outside a loop"

    def one_lane(self, type_: Type) -> None:
        assert self.vectors or type_.lanes == 1, f"a {type_} survives lowering"

    def expr(self, expr: Expr, nested: bool) -> None:
        if not isinstance(expr, ATOMS):
            assert nested, f"an operand is not an atom: {expr}"
        self.one_lane(expr.type)
        for operand in operands(expr):
            self.expr(operand, nested=self.form is Form.PRINTABLE)
        match expr:
            case TargetConst(known=known):
                assert not self.resolved, f"{known!r} is left though the target is known"
            case Ref(var=var):
                assert self.visible(var), f"{var.hint} is used before or outside its definition"
            case Apply(op=op, args=args, type=type_):
                assert (tuple(a.type for a in args), type_) == OPS[op].rule(op, [a.type for a in args]), (
                    f"{op} is mistyped"
                )
            case Read(field=field, point=point):
                assert self.form is Form.RECORDED, "a read survives lowering"
                assert field in self.inputs, f"{field.hint} is not an input"
                assert point is None or len(point) == len(field.type.field_shape), f"{field.hint}: wrong index count"
            case Load(memory=memory):
                known = self.visible(memory) if isinstance(memory, Array) else memory in self.inputs
                assert known, f"{memory.hint} is not readable here"
            case Lane() | Pack():
                assert self.vectors, "a vector survives lowering"
