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
from gpuop.ir.types import DOUBLE, INT, LONG, Type
from gpuop.ir.visit import expressions, loop_values, map_blocks, walk
from gpuop.passes.simplify import identity


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


def doubles(body: Block) -> str:
    """Why vectors are not for a body where those of doubles are computed wrongly; "" if it has none."""
    return "it computes with doubles" if any(e.type.dtype is DOUBLE for e in expressions(body)) else ""


def demand(body: Block, streamed: bool) -> str:
    """Why vectors are not for a body, where they are for functions and for outputs past the caches; "" if it has such."""
    bounded = any(isinstance(e, Apply) and OPS[e.op].ulp > 0 for e in expressions(body))
    slow = "" if bounded or streamed else "it calls no functions that are slow one by one"
    return doubles(body) or slow


def vectorize(kernel: Kernel) -> Kernel:
    if kernel.target is None or kernel.target.vector_length == 1:
        return kernel
    if not any(isinstance(stmt, For) and stmt.lanes for stmt in walk(kernel.body)):
        return kernel
    held = {stmt.array for stmt in kernel.body if isinstance(stmt, Wide)}
    return without_dead_code(replace(kernel, body=_Vectors(held).outside(kernel.body)))


class _Vectors:
    """Rewrites a kernel whose loops over lanes are marked.

    Attributes:
        count: the lanes of the loop that is being rewritten.
        lane: the vector of their numbers.
        held: the vectors in the place of arrays that have an element for each lane.
        vars: the vectors in the place of variables that differ between lanes.
        first: what integers that count with the lanes are in the first one: where a vector begins in memory.
    """

    def __init__(self, held: set[Array]) -> None:
        self.count = 1
        self.lane = Ref(Var("lane", Type(INT)))
        self.held = {array: Ref(Var(array.hint, Type(array.type.dtype, array.elements))) for array in held}
        self.vars: dict[Var, Ref] = {}
        self.first: dict[Var, Expr] = {}
        self.out: list[Stmt] = []

    def wide(self, type_: Type) -> Type:
        return Type(type_.dtype, self.count)

    def bind(self, expr: Expr, like: Var | None = None) -> Expr:
        if isinstance(expr, ATOMS):
            return expr
        var = Var("t", expr.type, temporary=True) if like is None else replace(like, type=expr.type)
        self.out.append(Let(var, expr))
        return Ref(var)

    def outside(self, block: Block) -> Block:
        """A block around loops over lanes, or beside them."""
        out: list[Stmt] = []
        for stmt in block:
            match stmt:
                case Declare(array=array) if array in self.held:
                    continue
                case Wide(field=field, array=array, loads=loads, index=index, left=left):
                    held, index = self.held[array], index if left is None else (*index, left)
                    load = Load(field, index, held.type)
                    out.append(Let(held.var, load, stmt.loc) if loads else Store(field, index, held, stmt.loc))
                case For(var=var, body=inner, lanes=True):
                    turns = loop_values(stmt)
                    assert turns is not None
                    self.count = len(turns)
                    numbers = tuple(constant(k, INT) for k in turns)
                    self.lane, self.first[var] = Ref(replace(var, type=self.wide(var.type))), numbers[0]
                    self.vars[var] = self.lane
                    out.append(Let(self.lane.var, Pack(numbers, self.lane.type)))
                    out += self.block(inner, None)
                case _:
                    out.append(map_blocks(stmt, self.outside))
        return tuple(out)

    # --- statements ---------------------------------------------------------------------------------------------

    def block(self, block: Block, mask: Expr | None) -> Block:
        """A block for all lanes, of which those run it where the mask holds."""
        outer, self.out, vectors = self.out, [], dict(self.vars)
        for stmt in block:
            self.stmt(stmt, mask)
        done, self.out, self.vars = self.out, outer, vectors
        return tuple(done)

    def stmt(self, stmt: Stmt, mask: Expr | None) -> None:
        match stmt:
            case Let(var=var, value=value):
                self.let(stmt, var, value)
            case Assign(var=var, value=value):
                new = self.spread(self.expr(value), self.wide(var.type))
                old = self.vars[var]
                chosen = new if mask is None else Apply("choose", (mask, self.bind(new), old), old.type)
                self.out.append(Assign(old.var, chosen, stmt.loc))
            case Store():  # by schedules alone, to memory of the thread's own that may be written for all lanes
                self.store(stmt, self.expr(stmt.value))
            case If():
                self.branches(stmt, mask)
            case For(body=body):
                self.out.append(replace(stmt, body=self.block(body, mask)))
            case Comment():
                self.out.append(stmt)
            case While() | Break() | Continue() | Declare() | Write() | Atomic() | Wide():
                raise AssertionError(f"a {type(stmt).__name__} is an obstacle to vectors")
            case Barrier() | Print() | Assert():
                raise AssertionError(f"a {type(stmt).__name__} is an obstacle to several points a thread")
            case _:
                assert_never(stmt)

    def store(self, stmt: Store, value: Expr) -> None:
        if value.type.lanes == 1 and all(map(self.is_scalar, stmt.index)):
            self.out.append(replace(stmt, value=self.bind(value)))
            return
        value = self.spread(value, self.wide(value.type.scalar))
        if isinstance(stmt.memory, Array) and stmt.memory in self.held:
            self.out.append(Let(self.held[stmt.memory].var, value, stmt.loc))
        else:
            self.out.append(replace(stmt, index=self.neighbours(stmt.index), value=self.bind(value)))

    def let(self, stmt: Let, var: Var, value: Expr) -> None:
        first = None if var.mutable else self.counted(value)
        if first is not None:
            self.first[var] = self.bind(first, var)
            return
        value = self.expr(value)
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

    # --- places -------------------------------------------------------------------------------------------------

    def counted(self, expr: Expr) -> Expr | None:
        """What an integer that counts with the lanes is in the first one; None for any other."""
        match expr:
            case Ref(var=var):
                return self.first.get(var)
            case Apply(op="add", args=(x, y)):
                return self.plus(self.counted(x), y) or self.plus(self.counted(y), x)
            case Apply(op="sub", args=(x, y), type=type_):
                first = self.counted(x)
                return Apply("sub", (first, y), type_) if first is not None and self.is_scalar(y) else None
            case Cast(arg=arg, type=type_) if type_ == Type(LONG) and arg.type == Type(INT):
                first = self.counted(arg)
                return None if first is None else Cast(first, type_, saturate=False)
        return None

    def plus(self, first: Expr | None, other: Expr) -> Expr | None:
        if first is None or not self.is_scalar(other):
            return None
        return identity(Apply("add", (other, first), other.type))

    def is_scalar(self, atom: Expr) -> bool:
        return not isinstance(atom, Ref) or (atom.var not in self.vars and atom.var not in self.first)

    def neighbours(self, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Where the elements of all lanes begin, which lie side by side."""
        first = self.counted(index[-1])
        assert first is not None and all(map(self.is_scalar, index[:-1])), "the elements of lanes are no neighbours"
        return (*index[:-1], first)

    # --- expressions --------------------------------------------------------------------------------------------

    def expr(self, expr: Expr) -> Expr:
        """An expression whose operands are atoms; a vector where it differs between lanes."""
        match expr:
            case Ref(var=var) if var in self.first and var not in self.vars:
                self.vars[var] = self.numbers(self.first[var])
                return self.vars[var]
            case Ref(var=var):
                return self.vars.get(var, expr)
            case Load(memory=Array() as array) if array in self.held:
                return self.held[array]
            case Load(index=index, type=type_) if not all(map(self.is_scalar, index)):
                return replace(expr, index=self.neighbours(index), type=self.wide(type_))
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

    def numbers(self, first: Expr) -> Ref:
        """The vector that counts with the lanes."""
        type_ = self.wide(first.type)
        lanes = self.lane if first.type == self.lane.type.scalar else self.bind(Cast(self.lane, type_, saturate=False))
        numbers = self.bind(Apply("add", (self.bind(self.spread(first, type_)), lanes), type_))
        assert isinstance(numbers, Ref)
        return numbers

    def operand(self, atom: Expr, wanted: Type) -> Expr:
        return self.bind(self.spread(atom, wanted))

    def spread(self, expr: Expr, wanted: Type) -> Expr:
        """A scalar in all lanes."""
        return Cast(expr, wanted, saturate=False) if expr.type.lanes < wanted.lanes else expr
