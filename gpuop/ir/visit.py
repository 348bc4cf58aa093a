"""Traversal: children of expressions and statements, rewriting with sharing, and copies with fresh symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from gpuop.ir.nodes import (
    Apply,
    Array,
    Assert,
    Assign,
    Atomic,
    Bits,
    Block,
    Break,
    Cast,
    Const,
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
    Print,
    Read,
    Ref,
    Stmt,
    Store,
    Var,
    While,
    Wide,
    Write,
)

MapExpr = Callable[[Expr], Expr]


def operands(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression."""
    match expr:
        case Apply(args=args) | Pack(args=args):
            return args
        case Cast(arg=arg) | Bits(arg=arg) | Lane(arg=arg):
            return (arg,)
        case Read(point=point, element=element):
            return (point or ()) + (() if element is None else (element,))
        case Load(index=index):
            return index
    return ()


def with_operands(expr: Expr, f: MapExpr) -> Expr:
    """The expression with its direct operands mapped; the same object where nothing changed."""
    old = operands(expr)
    new = tuple(f(e) for e in old)
    if all(a is b for a, b in zip(old, new, strict=True)):
        return expr
    match expr:
        case Apply() | Pack():
            return replace(expr, args=new)
        case Cast() | Bits() | Lane():
            return replace(expr, arg=new[0])
        case Read(point=point, element=element):
            n = len(point or ())
            return replace(expr, point=None if point is None else new[:n], element=None if element is None else new[n])
        case Load():
            return replace(expr, index=new)
    raise AssertionError(expr)


def values(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions that a statement evaluates itself, not those of its blocks."""
    match stmt:
        case Let(value=value) | Assign(value=value):
            return (value,)
        case Write(value=value, point=point, element=element):
            return (value, *(point or ()), *(() if element is None else (element,)))
        case Store(index=index, value=value):
            return (*index, value)
        case If(cond=cond) | While(cond=cond) | Assert(cond=cond):
            return (cond,)
        case Atomic(index=index, args=args, element=element):
            return (*index, *args, *(() if element is None else (element,)))
        case Wide(index=index, element=element, left=left):
            return (*index, *(e for e in (element, left) if e is not None))
        case Print(args=args):
            return args
        case For(start=start, stop=stop, step=step):
            return (start, stop, step)
    return ()


def blocks(stmt: Stmt) -> tuple[Block, ...]:
    match stmt:
        case If(then=then, orelse=orelse):
            return (then, orelse)
        case For(body=body):
            return (body,)
        case While(head=head, body=body):
            return (head, body)
    return ()


def map_values(stmt: Stmt, f: MapExpr) -> Stmt:
    """The statement with the expressions of `values` mapped."""
    match stmt:
        case Let(value=value) | Assign(value=value):
            return replace(stmt, value=f(value))
        case Write(value=value, point=point, element=element):
            moved = None if point is None else tuple(f(e) for e in point)
            return replace(stmt, value=f(value), point=moved, element=None if element is None else f(element))
        case Store(index=index, value=value):
            return replace(stmt, index=tuple(f(e) for e in index), value=f(value))
        case If(cond=cond) | While(cond=cond) | Assert(cond=cond):
            return replace(stmt, cond=f(cond))
        case Atomic(index=index, args=args, element=element):
            where, given = tuple(map(f, index)), tuple(map(f, args))
            return replace(stmt, index=where, args=given, element=None if element is None else f(element))
        case Wide(index=index, element=element, left=left):
            there, most = (None if e is None else f(e) for e in (element, left))
            return replace(stmt, index=tuple(map(f, index)), element=there, left=most)
        case Print(args=args):
            return replace(stmt, args=tuple(map(f, args)))
        case For(start=start, stop=stop, step=step):
            return replace(stmt, start=f(start), stop=f(stop), step=f(step))
    return stmt


def map_blocks(stmt: Stmt, f: Callable[[Block], Block]) -> Stmt:
    match stmt:
        case If(then=then, orelse=orelse):
            return replace(stmt, then=f(then), orelse=f(orelse))
        case For(body=body):
            return replace(stmt, body=f(body))
        case While(head=head, body=body):
            return replace(stmt, head=f(head), body=f(body))
    return stmt


def walk(block: Block) -> Iterator[Stmt]:
    """Every statement, in order, blocks included."""
    for stmt in block:
        yield stmt
        for inner in blocks(stmt):
            yield from walk(inner)


def walk_expr(expr: Expr) -> Iterator[Expr]:
    yield expr
    for operand in operands(expr):
        yield from walk_expr(operand)


def expressions(block: Block) -> Iterator[Expr]:
    """Every expression of a block, operands included."""
    for stmt in walk(block):
        for value in values(stmt):
            yield from walk_expr(value)


def fields_read(block: Block) -> set[FieldParam]:
    return {e.field for e in expressions(block) if isinstance(e, Read)}


def updated(block: Block) -> set[Array | FieldParam]:
    """The memory that atomic operations change; what they read counts, so it is there even where nobody wants it."""
    return {stmt.memory for stmt in walk(block) if isinstance(stmt, Atomic)}


def bound(block: Block) -> set[Var | Array]:
    """The variables and arrays that a block makes."""
    found: set[Var | Array] = set()
    for stmt in walk(block):
        match stmt:
            case Let(var=symbol) | For(var=symbol) | Declare(array=symbol) | Atomic(var=Var() as symbol):
                found.add(symbol)
    return found


def changed(block: Block) -> set[Var | Array]:
    """The variables and arrays whose values a block changes."""
    found: set[Var | Array] = set()
    for stmt in walk(block):
        match stmt:
            case Assign(var=symbol) | Store(memory=Array() as symbol) | Atomic(memory=Array() as symbol):
                found.add(symbol)
    return found


def turns(loop: For) -> range | None:
    """The values of a loop's counter, where its bounds are constants."""
    bounds = [int(b.value) for b in (loop.start, loop.stop, loop.step) if isinstance(b, Const)]
    return range(*bounds) if len(bounds) == 3 else None


def times(stmt: Stmt) -> int | None:
    """How often the blocks of a statement run; None where that is not known."""
    if isinstance(stmt, While):
        return None
    if not isinstance(stmt, For):
        return 1
    known = turns(stmt)
    return None if known is None else len(known)


def leaving(body: Block) -> Iterator[Break | Continue]:
    """The breaks and continues that belong to a loop with this body, not to an inner one."""
    for stmt in body:
        if isinstance(stmt, (Break, Continue)):
            yield stmt
        elif isinstance(stmt, If):
            for inner in blocks(stmt):
                yield from leaving(inner)


def changes(cond: Expr, turn: Block) -> bool:
    """Whether a loop's condition may come out otherwise after a turn, by what the turn assigns or what other threads do."""
    assigned = {stmt.var for stmt in walk(turn) if isinstance(stmt, Assign)}
    made = {stmt.var: stmt.value for stmt in turn if isinstance(stmt, Let)}
    waiting, seen = [cond], set[Var]()
    while waiting:
        for e in walk_expr(waiting.pop()):
            if isinstance(e, Load) and not isinstance(e.memory, FieldParam) and e.memory.written:
                return True
            if isinstance(e, Ref) and e.var not in seen:
                if e.var in assigned:
                    return True
                seen.add(e.var)
                waiting += [made[e.var]] if e.var in made else []
    atomics = {stmt.var for stmt in walk(turn) if isinstance(stmt, Atomic)}
    return not seen.isdisjoint(atomics)


class Copier:
    """Copies a block with fresh symbols for those it binds; the others stay.

    `exprs` substitutes variables by atoms, `fields` fields by fields. A subclass may override `stmt` and `expr`.
    """

    def __init__(
        self, block: Block, exprs: dict[Var, Expr] | None = None, fields: dict[FieldParam, FieldParam] | None = None
    ) -> None:
        self.source = block
        self.exprs = dict(exprs or {})
        self.fields = dict(fields or {})
        self.vars: dict[Var, Var] = {}
        self.arrays: dict[Array, Array] = {}
        for stmt in walk(block):
            match stmt:
                case Let(var=var) | For(var=var) | Atomic(var=Var() as var):
                    self.vars[var] = Var(var.hint, var.type, var.mutable)
                case Declare(array=array):
                    self.arrays[array] = replace(array)

    def copy(self) -> Block:
        return self.block(self.source)

    def expr(self, expr: Expr) -> Expr:
        match expr:
            case Ref(var=var):
                if var in self.exprs:
                    return self.exprs[var]
                return Ref(self.vars[var]) if var in self.vars else expr
            case Read(field=field):
                copied = with_operands(expr, self.expr)
                assert isinstance(copied, Read)
                return replace(copied, field=self.fields.get(field, field))
            case Load(memory=Array() as memory):
                copied = with_operands(expr, self.expr)
                assert isinstance(copied, Load)
                return replace(copied, memory=self.arrays.get(memory, memory))
        return with_operands(expr, self.expr)

    def block(self, block: Block) -> Block:
        return tuple(copy for stmt in block for copy in self.stmt(stmt))

    def stmt(self, stmt: Stmt) -> Block:
        stmt = map_blocks(map_values(stmt, self.expr), self.block)
        match stmt:
            case Let(var=var) | Assign(var=var) | For(var=var):
                return (replace(stmt, var=self.vars.get(var, var)),)
            case Declare(array=array):
                return (replace(stmt, array=self.arrays.get(array, array)),)
            case Store(memory=Array() as memory):
                return (replace(stmt, memory=self.arrays.get(memory, memory)),)
            case Write(field=field):
                return (replace(stmt, field=self.fields.get(field, field)),)
            case Atomic(memory=memory, var=var):
                moved = (
                    self.arrays.get(memory, memory) if isinstance(memory, Array) else self.fields.get(memory, memory)
                )
                return (replace(stmt, memory=moved, var=None if var is None else self.vars.get(var, var)),)
        return (stmt,)
