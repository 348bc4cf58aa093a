"""Traversal: children of expressions and statements, rewriting with sharing, and copies with fresh symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from gpuop.ir.children import CHILDREN, none
from gpuop.ir.nodes import (
    Array,
    Assert,
    Assign,
    Atomic,
    Barrier,
    Block,
    Break,
    Collective,
    Comment,
    Const,
    Continue,
    Declare,
    Effect,
    Expr,
    FieldParam,
    For,
    If,
    Let,
    Load,
    Print,
    Read,
    Ref,
    Stmt,
    Store,
    Var,
    While,
    Wide,
    Write,
    assert_never,
)

MapExpr = Callable[[Expr], Expr]
Symbol = Var | Array | FieldParam
Node = TypeVar("Node", Expr, Stmt)
# Most nodes have no blocks, and most operands none of their own: walks pass these by.
NESTING = frozenset(cls for cls, children in CHILDREN.items() if children.blocks is not none)
COMPOSED = frozenset(cls for cls, children in CHILDREN.items() if children.values is not none)


def operands(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression."""
    return CHILDREN[type(expr)].values(expr)


def with_operands(expr: Expr, f: MapExpr) -> Expr:
    """The expression with its direct operands mapped; the same object where nothing changed."""
    done: Expr = CHILDREN[type(expr)].map_values(expr, f)
    return done


def values(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions that a statement evaluates itself, not those of its blocks."""
    return CHILDREN[type(stmt)].values(stmt)


def blocks(stmt: Stmt) -> tuple[Block, ...]:
    """The blocks of a statement, in the order of the text."""
    return CHILDREN[type(stmt)].blocks(stmt)


def map_values(stmt: Stmt, f: MapExpr) -> Stmt:
    """The statement with the expressions of `values` mapped; the same object where nothing changed."""
    done: Stmt = CHILDREN[type(stmt)].map_values(stmt, f)
    return done


def map_blocks(stmt: Stmt, f: Callable[[Block], Block]) -> Stmt:
    """The statement with its blocks mapped; the same object where nothing changed."""
    done: Stmt = CHILDREN[type(stmt)].map_blocks(stmt, f)
    return done


def walk(block: Block) -> Iterator[Stmt]:
    """Every statement, in order, blocks included."""
    pending = list(reversed(block))
    while pending:
        stmt = pending.pop()
        yield stmt
        if type(stmt) in NESTING:
            for inner in reversed(blocks(stmt)):
                pending += reversed(inner)


def walk_expr(expr: Expr) -> Iterator[Expr]:
    """An expression, then its operands in order, theirs included."""
    return _expressions([expr])


def expressions(block: Block) -> Iterator[Expr]:
    """Every expression of a block, operands included."""
    for stmt in walk(block):
        if type(stmt) in COMPOSED:
            yield from _expressions([*reversed(values(stmt))])


def _expressions(pending: list[Expr]) -> Iterator[Expr]:
    """The expressions of a stack and their operands, each before those."""
    while pending:
        expr = pending.pop()
        yield expr
        if type(expr) in COMPOSED:
            pending += reversed(CHILDREN[type(expr)].values(expr))


def fields_read(block: Block) -> set[FieldParam]:
    return {e.field for e in expressions(block) if isinstance(e, Read)}


def updated(block: Block) -> set[Array | FieldParam]:
    """The memory that atomic operations change; what they read counts, so it is there even where nobody wants it."""
    return {stmt.memory for stmt in walk(block) if isinstance(stmt, Atomic)}


def effects(block: Block) -> Effect:
    """What the statements of a block do besides giving values to variables and memory of their own thread's."""
    found = Effect.NONE
    for stmt in walk(block):
        if stmt.effect is not Effect.NONE:
            found |= stmt.effect
    return found


def bound(block: Block) -> set[Var | Array]:
    """The variables and arrays that a block makes."""
    return {symbol for stmt in walk(block) if (symbol := bound_by(stmt)) is not None}


def bound_by(stmt: Stmt) -> Var | Array | None:
    """What a statement makes itself, not in its blocks."""
    match stmt:
        case Let() | For() | Atomic() | Collective():
            return stmt.var
        case Declare():
            return stmt.array
        case Assign() | Write() | Store() | Wide() | Barrier() | Print() | Assert() | Comment():
            return None
        case If() | While() | Break() | Continue():
            return None
        case _:
            assert_never(stmt)


def changed(block: Block) -> set[Var | Array]:
    """The variables and arrays whose values a block changes."""
    found = {symbol for stmt in walk(block) if (symbol := written_by(stmt)) is not None}
    return {symbol for symbol in found if not isinstance(symbol, FieldParam)}


def written_by(stmt: Stmt) -> Symbol | None:
    """What already exists and a statement changes itself, not in its blocks: a variable or memory."""
    match stmt:
        case Assign():
            return stmt.var
        case Store() | Atomic():
            return stmt.memory
        case Write():
            return stmt.field
        case Wide():
            return stmt.array if stmt.loads else stmt.field
        case Let() | Declare() | Barrier() | Collective() | Print() | Assert() | Comment():
            return None
        case If() | For() | While() | Break() | Continue():
            return None
        case _:
            assert_never(stmt)


def loaded(block: Block) -> set[Array]:
    """The arrays whose elements a block uses."""
    found = {e.memory for e in expressions(block) if isinstance(e, Load)}
    found |= {memory for stmt in walk(block) if (memory := read_by(stmt)) is not None}
    return {memory for memory in found if isinstance(memory, Array)}


def read_by(stmt: Stmt) -> Array | FieldParam | None:
    """The memory that a statement reads other than by expressions."""
    match stmt:
        case Atomic():
            return stmt.memory
        case Wide():
            return stmt.field if stmt.loads else stmt.array
        case Let() | Assign() | Declare() | Write() | Store() | Barrier() | Collective():
            return None
        case Print() | Assert() | Comment():
            return None
        case If() | For() | While() | Break() | Continue():
            return None
        case _:
            assert_never(stmt)


def loop_values(loop: For) -> range | None:
    """The values of a loop's counter, where its bounds are constants."""
    bounds = [int(b.value) for b in (loop.start, loop.stop, loop.step) if isinstance(b, Const)]
    return range(*bounds) if len(bounds) == 3 else None


def times(stmt: Stmt) -> int | None:
    """How often the blocks of a statement run; None where that is not known."""
    if isinstance(stmt, While):
        return None
    if not isinstance(stmt, For):
        return 1
    known = loop_values(stmt)
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
    of_others = {stmt.var for stmt in walk(turn) if isinstance(stmt, (Atomic, Collective))}
    return not seen.isdisjoint(of_others)


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
        for symbol in bound(block):
            if isinstance(symbol, Var):
                self.vars[symbol] = Var(symbol.hint, symbol.type, symbol.mutable, symbol.temporary)
            else:
                self.arrays[symbol] = replace(symbol)

    def copy(self) -> Block:
        return self.block(self.source)

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Ref):
            if expr.var in self.exprs:
                return self.exprs[expr.var]
            return Ref(self.vars[expr.var]) if expr.var in self.vars else expr
        return self.renamed(with_operands(expr, self.expr))

    def symbol(self, symbol: Symbol) -> Symbol:
        if isinstance(symbol, Var):
            return self.vars.get(symbol, symbol)
        return self.arrays.get(symbol, symbol) if isinstance(symbol, Array) else self.fields.get(symbol, symbol)

    def renamed(self, node: Node) -> Node:
        """A node with the copy's symbols in the place of its own."""
        done: Node = CHILDREN[type(node)].map_symbols(node, self.symbol)
        return done

    def block(self, block: Block) -> Block:
        return tuple(copy for stmt in block for copy in self.stmt(stmt))

    def stmt(self, stmt: Stmt) -> Block:
        return (self.renamed(map_blocks(map_values(stmt, self.expr), self.block)),)
