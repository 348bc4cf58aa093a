"""Lanes become vectors: the loop over lanes disappears, and what differs between them is computed for all at once.

CPUs run it that way, also where their compilers would not find it. What is equal for all lanes stays scalar. Of a condition
that differs between lanes both branches are computed, and choices take the place of assignments.
"""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.build import constant
from gpuop.ir.dead_code import without_dead_code
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import (
    ATOMS,
    Apply,
    Argument,
    Array,
    Assert,
    Assign,
    Atomic,
    Barrier,
    Bits,
    Block,
    Break,
    Cast,
    Comment,
    Const,
    Continue,
    Declare,
    Expr,
    For,
    If,
    Index,
    Lane,
    Let,
    Load,
    Pack,
    Print,
    Read,
    Ref,
    Stmt,
    Store,
    Stride,
    Var,
    While,
    Wide,
    Write,
    assert_never,
)
from gpuop.ir.ops import OPS
from gpuop.ir.symbolic import TargetConst
from gpuop.ir.types import DOUBLE, INT, Type
from gpuop.ir.visit import expressions, loop_values, walk


def obstacle(body: Block) -> str:
    """What in a recorded body vectors cannot do; "" if nothing."""
    for stmt in walk(body):
        match stmt:
            case While() | Break() | Continue():
                return "the turns of its loops differ between points"
            case For() if loop_values(stmt) is None:
                return "the turns of its loops differ between points"
            case Declare():
                return "it has arrays"
            case Let() | Assign() | Write() | Store() | If() | For() | Comment():
                pass
            case Atomic() | Wide() | Barrier() | Print() | Assert():
                raise AssertionError("threads of such kernels have one point")
            case _:
                assert_never(stmt)
    return ""


def demand(body: Block, streamed: bool) -> str:
    """Why vectors are not for a body, where they are for functions and for outputs past the caches; "" if it has such."""
    found = list(expressions(body))
    if any(e.type.dtype is DOUBLE for e in found):
        return "it computes with doubles"
    bounded = any(isinstance(e, Apply) and OPS[e.op].ulp > 0 for e in found)
    return "" if bounded or streamed else "it calls no functions that are slow one by one"


def vectorize(kernel: Kernel) -> Kernel:
    if kernel.target is None or kernel.target.vector_length == 1:
        return kernel
    lanes = {stmt.array: stmt.array.elements for stmt in kernel.body if isinstance(stmt, Wide)}
    if not lanes:
        return kernel
    return without_dead_code(replace(kernel, body=_Vectors(lanes).top(kernel.body)))


class _Vectors:
    def __init__(self, lanes: dict[Array, int]) -> None:
        (self.count,) = set(lanes.values())
        self.held = {array: Ref(Var(array.hint, self.wide(array.type))) for array in lanes}
        self.vars: dict[Var, Ref] = {}  # vectors in the place of variables that differ between lanes
        self.out: list[Stmt] = []

    def wide(self, type_: Type) -> Type:
        return Type(type_.dtype, self.count)

    def bind(self, expr: Expr) -> Expr:
        if isinstance(expr, ATOMS):
            return expr
        var = Var("t", expr.type, temporary=True)
        self.out.append(Let(var, expr))
        return Ref(var)

    def top(self, body: Block) -> Block:
        """The body of the kernel, one loop of which is that over lanes."""
        out: list[Stmt] = []
        for stmt in body:
            match stmt:
                case Declare(array=array) if array in self.held:
                    continue
                case Wide(field=field, array=array, loads=loads, index=index, left=left):
                    held, index = self.held[array], index if left is None else (*index, left)
                    load = Load(field, index, held.type)
                    out.append(Let(held.var, load, stmt.loc) if loads else Store(field, index, held, stmt.loc))
                case For(var=var, body=inner):
                    numbers = tuple(constant(k, INT) for k in range(self.count))
                    self.vars[var] = Ref(replace(var, type=self.wide(var.type)))
                    out.append(Let(self.vars[var].var, Pack(numbers, self.wide(var.type))))
                    out += self.block(inner, None)
                case _:
                    out.append(stmt)
        return tuple(out)

    # --- statements ---------------------------------------------------------------------------------------------

    def block(self, block: Block, mask: Expr | None) -> Block:
        """A block for all lanes, of which those run it where the mask holds."""
        outer, self.out = self.out, []
        for stmt in block:
            self.stmt(stmt, mask)
        done, self.out = self.out, outer
        return tuple(done)

    def stmt(self, stmt: Stmt, mask: Expr | None) -> None:
        match stmt:
            case Let(var=var, value=value):
                self.let(stmt, var, self.expr(value))
            case Assign(var=var, value=value):
                new = self.spread(self.expr(value), self.wide(var.type))
                old = self.vars[var]
                chosen = new if mask is None else Apply("choose", (mask, self.bind(new), old), old.type)
                self.out.append(Assign(old.var, chosen, stmt.loc))
            case Store(memory=Array() as array, value=value):
                self.out.append(
                    Let(self.held[array].var, self.spread(self.expr(value), self.held[array].type), stmt.loc)
                )
            case If():
                self.branches(stmt, mask)
            case For(body=body):
                self.out.append(replace(stmt, body=self.block(body, mask)))
            case Comment():
                self.out.append(stmt)
            case While() | Break() | Continue() | Declare() | Write() | Store() | Atomic() | Wide():
                raise AssertionError(f"a {type(stmt).__name__} is an obstacle to vectors")
            case Barrier() | Print() | Assert():
                raise AssertionError(f"a {type(stmt).__name__} is an obstacle to several points a thread")
            case _:
                assert_never(stmt)

    def let(self, stmt: Let, var: Var, value: Expr) -> None:
        if var.mutable:
            value = self.spread(value, self.wide(var.type))
        if value.type.lanes > 1:
            self.vars[var] = Ref(replace(var, type=value.type))
            var = self.vars[var].var
        self.out.append(Let(var, value, stmt.loc))

    def branches(self, stmt: If, mask: Expr | None) -> None:
        cond = self.expr(stmt.cond)
        if cond.type.lanes == 1:
            self.out.append(replace(stmt, then=self.block(stmt.then, mask), orelse=self.block(stmt.orelse, mask)))
            return
        kept = Var("t", cond.type, temporary=True)  # the branch may change what it was computed from
        self.out.append(Let(kept, cond, stmt.loc))
        holds: Expr = Ref(kept)
        for branch, test in ((stmt.then, holds), (stmt.orelse, Apply("not", (holds,), cond.type))):
            if branch:
                test = self.bind(test)
                test = test if mask is None else self.bind(Apply("and", (mask, test), cond.type))
                self.out += self.block(branch, test)

    # --- expressions --------------------------------------------------------------------------------------------

    def expr(self, expr: Expr) -> Expr:
        """An expression whose operands are atoms; a vector where it differs between lanes."""
        match expr:
            case Ref(var=var):
                return self.vars.get(var, expr)
            case Load(memory=Array() as array):
                return self.held[array]
            case Apply(op=op, args=args):
                moved = [self.expr(a) for a in args]
                if all(a.type.lanes == 1 for a in moved):
                    return expr
                wanted, result = OPS[op].rule(op, [a.type for a in moved])
                return Apply(op, tuple(map(self.operand, moved, wanted)), result)
            case Cast(arg=arg, type=type_) | Bits(arg=arg, type=type_):
                operand = self.expr(arg)
                return replace(expr, arg=operand, type=Type(type_.dtype, operand.type.lanes))
            case Const() | TargetConst() | Index() | Stride() | Argument() | Load():
                return expr
            case Lane() | Pack() | Read():
                raise AssertionError(f"a {type(expr).__name__} survives lowering")
            case _:
                assert_never(expr)

    def operand(self, atom: Expr, wanted: Type) -> Expr:
        return self.bind(self.spread(atom, wanted))

    def spread(self, expr: Expr, wanted: Type) -> Expr:
        """A scalar in all lanes."""
        return Cast(expr, wanted, saturate=False) if expr.type.lanes < wanted.lanes else expr
