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
    Collective,
    Comment,
    Const,
    Continue,
    Declare,
    Expr,
    FieldParam,
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
from gpuop.ir.target_expressions import TargetConst
from gpuop.ir.types import INT, Type
from gpuop.ir.visit import loop_values, map_blocks, walk
from gpuop.passes.lane_numbers import Counting, LaneNumbers


def vectorize(kernel: Kernel) -> Kernel:
    if kernel.target is None or kernel.target.vector_length == 1:
        return kernel
    if not any(isinstance(stmt, For) and stmt.lanes for stmt in walk(kernel.body)):
        return kernel
    held = {stmt.array for stmt in walk(kernel.body) if isinstance(stmt, Wide)}
    return without_dead_code(replace(kernel, body=_Vectors(held).outside(kernel.body)))


class _Vectors:
    """Rewrites a kernel whose loops over lanes are marked.

    Attributes:
        count: the lanes of the loop that is being rewritten.
        lane: the vector of their numbers.
        held: the vectors in the place of arrays that have an element for each lane.
        vars: the vectors in the place of variables that differ between lanes.
        counting: the integers that are known in all lanes if they are in the first one: where elements lie in memory.
    """

    def __init__(self, held: set[Array]) -> None:
        self.count = 1
        self.lane = Ref(Var("lane", Type(INT)))
        self.held = {array: Ref(Var(array.hint, Type(array.type.dtype, array.elements))) for array in held}
        self.vars: dict[Var, Ref] = {}
        self.counting = Counting(self.vars)
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
                    self.lane = Ref(replace(var, type=self.wide(var.type)))
                    self.counting.of[var] = LaneNumbers(numbers[0], tuple(k - turns[0] for k in turns))
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
        done, self.out = self.out, outer
        for var in self.vars.keys() - vectors.keys():
            del self.vars[var]
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
            case Barrier() | Collective() | Print() | Assert():
                raise AssertionError(f"a {type(stmt).__name__} is an obstacle to several points a thread")
            case _:
                assert_never(stmt)

    def store(self, stmt: Store, value: Expr) -> None:
        if value.type.lanes == 1 and all(map(self.counting.same, stmt.index)):
            self.out.append(replace(stmt, value=self.bind(value)))
            return
        value = self.spread(value, self.wide(value.type.scalar))
        if isinstance(stmt.memory, Array) and stmt.memory in self.held:
            self.out.append(Let(self.held[stmt.memory].var, value, stmt.loc))
        else:
            index, ahead = self.places(stmt.index)
            assert not ahead, "the elements that lanes store are no neighbours"
            self.out.append(replace(stmt, index=index, value=self.bind(value)))

    def let(self, stmt: Let, var: Var, value: Expr) -> None:
        found = None if var.mutable else self.counting.find(value)
        if found is not None:
            self.counting.of[var] = found.moved(lambda e: self.bind(e, var))
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

    def places(self, index: tuple[Expr, ...]) -> tuple[tuple[Expr, ...], tuple[int, ...]]:
        """Where the element of the first lane is, and how far ahead the others are if they are no neighbours."""
        found = self.counting.find(index[-1])
        assert found is not None and all(map(self.counting.same, index[:-1])), "the elements of lanes lie anywhere"
        assert not found.are_limited, "the elements of lanes are the same"
        return (*index[:-1], found.first), () if found.are_neighbours else found.ahead

    def several(self, load: Load) -> Expr:
        """The elements of all lanes: of a row at once; those in a column of an array one by one; of a field from anywhere."""
        wide = self.wide(load.type)
        if isinstance(load.memory, FieldParam) and (limits := self.limits(load.index[0])):
            return replace(load, index=limits, type=wide)
        if isinstance(load.memory, FieldParam) and self.counting.find(load.index[-1]) is None:
            return replace(load, index=tuple(map(self.expr, load.index)), type=wide)
        if isinstance(load.memory, FieldParam) or all(map(self.counting.same, load.index[:-1])):
            index, ahead = self.places(load.index)
            return replace(load, index=index, type=wide, ahead=ahead)
        rows = [self.counting.find(at) for at in load.index]
        lanes = [self.bind(replace(load, index=self.place(load.index, rows, k))) for k in range(self.count)]
        return Pack(tuple(lanes), wide)

    def limits(self, at: Expr) -> tuple[Expr, ...]:
        """Where the first one of limited places is, how many there are from it on, and how far on the least one is."""
        found = self.counting.find(at)
        if found is None or not found.are_limited:
            return ()
        first, last, type_ = found.first, found.last, found.first.type
        left: Expr = constant(self.count, type_.dtype)
        if last is not None:
            left = self.bind(Apply("sub", (last, first), type_))
            left = self.bind(Apply("add", (left, constant(1, type_.dtype)), type_))
        if found.least is None:
            return first, left
        return first, left, self.bind(Apply("sub", (found.least, first), type_))

    def place(self, index: tuple[Expr, ...], found: list[LaneNumbers | None], lane: int) -> tuple[Expr, ...]:
        """Where the element of a lane is."""
        pairs = zip(index, found, strict=True)
        return tuple(at if known is None else self.bind(known.in_lane(lane)) for at, known in pairs)

    # --- expressions --------------------------------------------------------------------------------------------

    def expr(self, expr: Expr) -> Expr:
        """An expression whose operands are atoms; a vector where it differs between lanes."""
        match expr:
            case Ref(var=var) if var in self.counting.of and var not in self.vars:
                self.vars[var] = self.numbers(self.counting.of[var])
                return self.vars[var]
            case Ref(var=var):
                return self.vars.get(var, expr)
            case Load(memory=Array() as array) if array in self.held:
                return self.held[array]
            case Load(index=index) if not all(map(self.counting.same, index)):
                return self.several(expr)
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

    def numbers(self, found: LaneNumbers) -> Ref:
        """The vector of what an integer is in each lane."""
        first, type_ = found.first, self.wide(found.first.type)
        lanes: Expr = self.lane
        if not found.are_neighbours:
            lanes = self.bind(Pack(tuple(constant(k, first.type.dtype) for k in found.ahead), type_))
        elif type_ != self.lane.type:
            lanes = self.bind(Cast(self.lane, type_, saturate=False))
        numbers = self.bind(Apply("add", (self.bind(self.spread(first, type_)), lanes), type_))
        for op, limit in (("max", found.least), ("min", found.last)):
            if limit is not None:
                numbers = self.bind(Apply(op, (numbers, self.bind(self.spread(limit, type_))), type_))
        assert isinstance(numbers, Ref)
        return numbers

    def operand(self, atom: Expr, wanted: Type) -> Expr:
        return self.bind(self.spread(atom, wanted))

    def spread(self, expr: Expr, wanted: Type) -> Expr:
        """A scalar in all lanes."""
        return Cast(expr, wanted, saturate=False) if expr.type.lanes < wanted.lanes else expr
