"""Invariants of kernels, checked after recording and after every pass. A violation is a bug in gpuop."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import Any

from gpuop.base.errors import GpuopError, SemanticError
from gpuop.ir import nodes as ir
from gpuop.ir.borders import BORDERS
from gpuop.ir.kernel import Kernel
from gpuop.ir.ops import OPS
from gpuop.ir.target_expressions import TargetConst
from gpuop.ir.types import BOOL, DOUBLE, UCHAR, UINT, ULONG, Type
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
    except VerifyError as broken:
        raise VerifyError(f"internal error in kernel {kernel.name!r} after {after}: {broken}") from broken
    return kernel


def verifiable(kernel: Kernel, form: Form) -> tuple[Any, ...]:
    """The parts of a kernel that `verify` examines."""
    return form, kernel.target, kernel.inputs, kernel.intermediates, kernel.outputs, kernel.body


def element_type(memory: ir.Array | ir.FieldParam) -> Type:
    """Element type of an array or a field."""
    return memory.type if isinstance(memory, ir.Array) else Type(memory.type.storage)


class _Checker:
    def __init__(self, kernel: Kernel, form: Form) -> None:
        self.form = form
        self.resolved = kernel.target is not None
        self.vectors = form is Form.RECORDED or (kernel.target is not None and kernel.target.vector_length > 1)
        self.inputs = {*kernel.inputs, *kernel.intermediates}
        self.outputs = {*kernel.written, *kernel.intermediates}
        self.bound: set[ir.Var | ir.Array] = set()
        self.scopes: list[list[ir.Var | ir.Array]] = []
        self.seen: set[ir.Var | ir.Array] = set()  # symbols of all open scopes

    # --- symbols ----------------------------------------------------------------------------------------------------

    def readable(self, memory: ir.Array | ir.FieldParam) -> bool:
        return memory in self.seen if isinstance(memory, ir.Array) else memory in self.inputs

    def writable(self, memory: ir.Array | ir.FieldParam) -> bool:
        return memory in self.seen if isinstance(memory, ir.Array) else memory in self.outputs

    def bind(self, symbol: ir.Var | ir.Array) -> None:
        if symbol in self.bound:
            raise VerifyError(f"{symbol.hint} is bound twice")
        self.bound.add(symbol)
        self.seen.add(symbol)
        self.scopes[-1].append(symbol)

    def close(self) -> None:
        self.seen.difference_update(self.scopes.pop())

    # --- statements -------------------------------------------------------------------------------------------------

    def block(self, block: ir.Block, loops: int, *extra: ir.Var) -> None:
        self.scopes.append([])
        for var in extra:
            self.bind(var)
        for stmt in block:
            self.stmt(stmt, loops)
        self.close()

    def stmt(self, stmt: ir.Stmt, loops: int) -> None:  # noqa: C901 - a case for each kind of node
        nested = isinstance(stmt, (ir.Let, ir.Assign)) or (isinstance(stmt, ir.Store) and bool(stmt.ahead))
        for value in () if isinstance(stmt, ir.While) else values(stmt):
            self.expr(value, nested=self.form is Form.PRINTABLE or nested)
        match stmt:
            case ir.Let(var=var, value=value):
                if var.type != value.type:
                    raise VerifyError(f"{var.hint}: {var.type} is bound to a {value.type}")
                self.bind(var)
            case ir.Assign(var=var, value=value):
                self.assign(var, value)
            case ir.Declare(array=array):
                if array.space == "local" and len(self.scopes) > 1:
                    raise VerifyError(f"{array.hint}: local memory in a block")
                self.bind(array)
            case ir.Write(field=field, value=value):
                self.write(field, value)
            case ir.Store(memory=memory, value=value, ahead=ahead):
                if not self.writable(memory):
                    raise VerifyError(f"{memory.hint} is not stored to here")
                if ahead and len(ahead) != value.type.lanes:
                    raise VerifyError(f"{value.type.lanes} lanes are stored to {len(ahead)} places of {memory.hint}")
            case ir.Atomic():
                self.atomic(stmt)
            case ir.Wide():
                self.wide(stmt)
            case ir.Collective():
                self.collective(stmt)
            case ir.Assert(cond=cond):
                if cond.type != Type(BOOL):
                    raise VerifyError(f"an assertion's condition is a {cond.type}")
            case ir.If() | ir.For() | ir.While():
                self.nested(stmt, loops)
            case ir.Break() | ir.Continue():
                if not loops:
                    raise VerifyError("a break or continue outside a loop")
            case ir.Barrier() | ir.Print() | ir.Comment():
                pass
            case _:
                ir.assert_never(stmt)

    def assign(self, var: ir.Var, value: ir.Expr) -> None:
        if not (var in self.seen and var.mutable):
            raise VerifyError(f"{var.hint} is not an assignable variable here")
        if var.type != value.type:
            raise VerifyError(f"{var.hint}: {var.type} is assigned a {value.type}")

    def write(self, field: ir.FieldParam, value: ir.Expr) -> None:
        if self.form is not Form.RECORDED:
            raise VerifyError("a write survives lowering")
        if field not in self.outputs:
            raise VerifyError(f"{field.hint} is not an output")
        if value.type.dtype is not field.type.storage:
            raise VerifyError(f"{field.hint} is written a {value.type}")

    def atomic(self, stmt: ir.Atomic) -> None:
        memory, var = stmt.memory, stmt.var
        if not self.writable(memory):
            raise VerifyError(f"{memory.hint} is not updated here")
        for arg in stmt.args:
            if arg.type != element_type(memory):
                raise VerifyError(f"{memory.hint} is updated by a {arg.type}")
        if var is not None:
            if var.type != element_type(memory):
                raise VerifyError(f"{var.hint}: {var.type} is bound to an element of {memory.hint}")
            self.bind(var)

    def collective(self, stmt: ir.Collective) -> None:
        if stmt.var.type != stmt.value.type:
            raise VerifyError(f"{stmt.var.hint}: {stmt.var.type} is what a {stmt.kind} makes of {stmt.value.type}")
        self.bind(stmt.var)

    def wide(self, stmt: ir.Wide) -> None:
        field, array = stmt.field, stmt.array
        if field not in (self.inputs if stmt.loads else self.outputs):
            raise VerifyError(f"{field.hint} is not accessed so")
        if not (array in self.seen and array.space == "private"):
            raise VerifyError(f"{array.hint} does not hold lanes here")
        words = array.type == Type(UINT) and element_type(field) == Type(UCHAR)
        words |= array.type == Type(ULONG) and element_type(field) == Type(DOUBLE)
        if array.type != element_type(field) and not words:
            raise VerifyError(f"{array.hint} has not the type of {field.hint}")

    def nested(self, stmt: ir.If | ir.For | ir.While, loops: int) -> None:
        match stmt:
            case ir.If(cond=cond, then=then, orelse=orelse):
                self.condition(cond)
                self.block(then, loops)
                self.block(orelse, loops)
            case ir.For(var=var, body=body):
                self.block(body, loops + 1, var)
            case ir.While(head=head, cond=cond, body=body):
                self.scopes.append([])  # the condition and the body see what the head computes
                for inner in head:
                    self.stmt(inner, loops + 1)
                self.expr(cond, nested=self.form is Form.PRINTABLE)
                self.condition(cond)
                self.block(body, loops + 1)
                self.close()
            case _:
                ir.assert_never(stmt)

    def condition(self, cond: ir.Expr) -> None:
        if cond.type != Type(BOOL):
            raise VerifyError(f"a condition is a {cond.type}")

    # --- expressions ------------------------------------------------------------------------------------------------

    def expr(self, expr: ir.Expr, nested: bool) -> None:  # noqa: C901 - a case for each kind of node
        if not (nested or isinstance(expr, ir.ATOMS)):
            raise VerifyError(f"an operand is not an atom: {expr}")
        if not self.vectors and expr.type.lanes > 1:
            raise VerifyError(f"a {expr.type} survives lowering")
        for operand in operands(expr):
            self.expr(operand, nested=self.form is Form.PRINTABLE)
        match expr:
            case TargetConst(fact=fact):
                if self.resolved:
                    raise VerifyError(f"{fact!r} is left though the target is known")
            case ir.Ref(var=var):
                if var not in self.seen:
                    raise VerifyError(f"{var.hint} is used before or outside its definition")
            case ir.Apply(op=op):
                if op not in OPS:
                    raise VerifyError(f"{op} is no row of the operator table")
                if not _well_typed(op, tuple(arg.type for arg in expr.args), expr.type):
                    raise VerifyError(f"{op} is mistyped")
            case ir.Read():
                self.read(expr)
            case ir.Load(memory=memory):
                if not self.readable(memory):
                    raise VerifyError(f"{memory.hint} is not readable here")
            case ir.Lane() | ir.Pack():
                if not self.vectors:
                    raise VerifyError("a vector survives lowering")
                count = sum(arg.type.lanes for arg in operands(expr))
                if isinstance(expr, ir.Pack) and count != expr.type.lanes:
                    raise VerifyError(f"a {expr.type} of {count} components")
            case ir.Const() | ir.Index() | ir.Stride() | ir.Argument() | ir.Cast() | ir.Bits():
                pass
            case _:
                ir.assert_never(expr)

    def read(self, expr: ir.Read) -> None:
        field, point = expr.field, expr.point
        if self.form is not Form.RECORDED:
            raise VerifyError("a read survives lowering")
        if field not in self.inputs:
            raise VerifyError(f"{field.hint} is not an input")
        if point is not None and len(point) != len(field.type.field_shape):
            raise VerifyError(f"{field.hint}: wrong index count")
        if expr.border not in BORDERS:
            raise VerifyError(f"{field.hint}: no border is {expr.border}")


@lru_cache(maxsize=4096)
def _well_typed(op: str, operands: tuple[Type, ...], result: Type) -> bool:
    try:
        expected = OPS[op].rule(op, [*operands])
    except SemanticError:  # the message of the rule is for users
        return False
    return expected == (operands, result)
