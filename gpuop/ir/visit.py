"""Traversal: children of expressions and statements, rewriting with sharing, and copies with fresh symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from gpuop.ir import nodes as ir
from gpuop.ir.children import CHILDREN, none

MapExpr = Callable[[ir.Expr], ir.Expr]
Symbol = ir.Var | ir.Array | ir.FieldParam
Node = TypeVar("Node", ir.Expr, ir.Stmt)
# Most nodes have no blocks, and most operands none of their own: walks pass these by.
NESTING = frozenset(cls for cls, children in CHILDREN.items() if children.blocks is not none)
COMPOSED = frozenset(cls for cls, children in CHILDREN.items() if children.values is not none)


def operands(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    """The direct operands of an expression."""
    return CHILDREN[type(expr)].values(expr)


def with_operands(expr: ir.Expr, f: MapExpr) -> ir.Expr:
    """The expression with its direct operands mapped; the same object where nothing changed."""
    done: ir.Expr = CHILDREN[type(expr)].map_values(expr, f)
    return done


def values(stmt: ir.Stmt) -> tuple[ir.Expr, ...]:
    """The expressions that a statement evaluates itself, not those of its blocks."""
    return CHILDREN[type(stmt)].values(stmt)


def blocks(stmt: ir.Stmt) -> tuple[ir.Block, ...]:
    """The blocks of a statement, in the order of the text."""
    return CHILDREN[type(stmt)].blocks(stmt)


def map_values(stmt: ir.Stmt, f: MapExpr) -> ir.Stmt:
    """The statement with the expressions of `values` mapped; the same object where nothing changed."""
    done: ir.Stmt = CHILDREN[type(stmt)].map_values(stmt, f)
    return done


def map_blocks(stmt: ir.Stmt, f: Callable[[ir.Block], ir.Block]) -> ir.Stmt:
    """The statement with its blocks mapped; the same object where nothing changed."""
    done: ir.Stmt = CHILDREN[type(stmt)].map_blocks(stmt, f)
    return done


def walk(block: ir.Block) -> Iterator[ir.Stmt]:
    """Every statement, in order, blocks included."""
    pending = list(reversed(block))
    while pending:
        stmt = pending.pop()
        yield stmt
        if type(stmt) in NESTING:
            for inner in reversed(blocks(stmt)):
                pending += reversed(inner)


def walk_expr(expr: ir.Expr) -> Iterator[ir.Expr]:
    """An expression, then its operands in order, theirs included."""
    return _expressions([expr])


def expressions(block: ir.Block) -> Iterator[ir.Expr]:
    """Every expression of a block, operands included."""
    for stmt in walk(block):
        if type(stmt) in COMPOSED:
            yield from _expressions([*reversed(values(stmt))])


def _expressions(pending: list[ir.Expr]) -> Iterator[ir.Expr]:
    """The expressions of a stack and their operands, each before those."""
    while pending:
        expr = pending.pop()
        yield expr
        if type(expr) in COMPOSED:
            pending += reversed(CHILDREN[type(expr)].values(expr))


def used_by(stmt: ir.Stmt) -> set[ir.Var]:
    """The variables in the expressions that a statement evaluates itself."""
    used, pending = set[ir.Var](), list(values(stmt))
    while pending:
        expr = pending.pop()
        if isinstance(expr, ir.Ref):
            used.add(expr.var)
        elif type(expr) in COMPOSED:
            pending += operands(expr)
    return used


def fields_read(block: ir.Block) -> set[ir.FieldParam]:
    return {e.field for e in expressions(block) if isinstance(e, (ir.Read, ir.Argument))}


def updated(block: ir.Block) -> set[ir.Array | ir.FieldParam]:
    """The memory that atomic operations change; their results count, so it stays even if nobody needs it."""
    return {stmt.memory for stmt in walk(block) if isinstance(stmt, ir.Atomic)}


def effects(block: ir.Block) -> ir.Effect:
    """Side effects of the statements of a block, besides assignments to variables and memory of the own thread."""
    result = ir.Effect.NONE
    for stmt in walk(block):
        if stmt.effect is not ir.Effect.NONE:
            result |= stmt.effect
    return result


def bound(block: ir.Block) -> set[ir.Var | ir.Array]:
    """The variables and arrays that a block makes."""
    return {symbol for stmt in walk(block) if (symbol := bound_by(stmt)) is not None}


def bound_by(stmt: ir.Stmt) -> ir.Var | ir.Array | None:
    """Symbols that a statement itself defines, without its blocks."""
    match stmt:
        case ir.Let() | ir.For() | ir.Atomic() | ir.Collective():
            return stmt.var
        case ir.Declare():
            return stmt.array
        case ir.Assign() | ir.Write() | ir.Store() | ir.Wide() | ir.Barrier() | ir.Print() | ir.Assert() | ir.Comment():
            return None
        case ir.If() | ir.While() | ir.Break() | ir.Continue():
            return None
        case _:
            ir.assert_never(stmt)


def changed(block: ir.Block) -> set[ir.Var | ir.Array]:
    """The variables and arrays whose values a block changes."""
    result = {symbol for stmt in walk(block) if (symbol := written_by(stmt)) is not None}
    return {symbol for symbol in result if not isinstance(symbol, ir.FieldParam)}


def written_by(stmt: ir.Stmt) -> Symbol | None:
    """Existing variable or memory that a statement itself changes, without its blocks."""
    match stmt:
        case ir.Assign():
            return stmt.var
        case ir.Store() | ir.Atomic():
            return stmt.memory
        case ir.Write():
            return stmt.field
        case ir.Wide():
            return stmt.array if stmt.loads else stmt.field
        case ir.Let() | ir.Declare() | ir.Barrier() | ir.Collective() | ir.Print() | ir.Assert() | ir.Comment():
            return None
        case ir.If() | ir.For() | ir.While() | ir.Break() | ir.Continue():
            return None
        case _:
            ir.assert_never(stmt)


def loaded(block: ir.Block) -> set[ir.Array]:
    """The arrays whose elements a block uses."""
    memories = {e.memory for e in expressions(block) if isinstance(e, ir.Load)}
    memories |= {memory for stmt in walk(block) if (memory := read_by(stmt)) is not None}
    return {memory for memory in memories if isinstance(memory, ir.Array)}


def read_by(stmt: ir.Stmt) -> ir.Array | ir.FieldParam | None:
    """The memory that a statement reads other than by expressions."""
    match stmt:
        case ir.Atomic():
            return stmt.memory
        case ir.Wide():
            return stmt.field if stmt.loads else stmt.array
        case ir.Let() | ir.Assign() | ir.Declare() | ir.Write() | ir.Store() | ir.Barrier() | ir.Collective():
            return None
        case ir.Print() | ir.Assert() | ir.Comment():
            return None
        case ir.If() | ir.For() | ir.While() | ir.Break() | ir.Continue():
            return None
        case _:
            ir.assert_never(stmt)


def loop_values(loop: ir.For) -> range | None:
    """The values of a loop's counter, where its bounds are constants."""
    bounds = [int(b.value) for b in (loop.start, loop.stop, loop.step) if isinstance(b, ir.Const)]
    return range(*bounds) if len(bounds) == 3 else None


def times(stmt: ir.Stmt) -> int | None:
    """Number of executions of the blocks of a statement; None if unknown."""
    if isinstance(stmt, ir.While):
        return None
    if not isinstance(stmt, ir.For):
        return 1
    numbers = loop_values(stmt)
    return None if numbers is None else len(numbers)


def leaving(body: ir.Block) -> Iterator[ir.Break | ir.Continue]:
    """The breaks and continues that belong to a loop with this body, not to an inner one."""
    for stmt in body:
        if isinstance(stmt, (ir.Break, ir.Continue)):
            yield stmt
        elif isinstance(stmt, ir.If):
            for inner in blocks(stmt):
                yield from leaving(inner)


def changes(cond: ir.Expr, turn: ir.Block) -> bool:
    """Return whether a loop condition may differ after an iteration, through its assignments or through other threads."""
    assigned = {stmt.var for stmt in walk(turn) if isinstance(stmt, ir.Assign)}
    definitions = {stmt.var: stmt.value for stmt in turn if isinstance(stmt, ir.Let)}
    waiting, visited = [cond], set[ir.Var]()
    while waiting:
        for e in walk_expr(waiting.pop()):
            if isinstance(e, ir.Load) and not isinstance(e.memory, ir.FieldParam) and e.memory.written:
                return True
            if isinstance(e, ir.Ref) and e.var not in visited:
                if e.var in assigned:
                    return True
                visited.add(e.var)
                waiting += [definitions[e.var]] if e.var in definitions else []
    of_others = {stmt.var for stmt in walk(turn) if isinstance(stmt, (ir.Atomic, ir.Collective))}
    return not visited.isdisjoint(of_others)


class Copier:
    """Copies a block with fresh symbols for those it binds; the others stay.

    `exprs` substitutes variables by atoms, `fields` fields by fields. A subclass may override `stmt` and `expr`.
    """

    def __init__(
        self,
        block: ir.Block,
        exprs: dict[ir.Var, ir.Expr] | None = None,
        fields: dict[ir.FieldParam, ir.FieldParam] | None = None,
    ) -> None:
        self.source = block
        self.exprs = dict(exprs or {})
        self.fields = dict(fields or {})
        self.vars: dict[ir.Var, ir.Var] = {}
        self.arrays: dict[ir.Array, ir.Array] = {}
        for symbol in bound(block):
            if isinstance(symbol, ir.Var):
                self.vars[symbol] = ir.Var(symbol.hint, symbol.type, symbol.mutable, symbol.temporary)
            else:
                self.arrays[symbol] = replace(symbol)

    def copy(self) -> ir.Block:
        return self.block(self.source)

    def expr(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Ref):
            if expr.var in self.exprs:
                return self.exprs[expr.var]
            return ir.Ref(self.vars[expr.var]) if expr.var in self.vars else expr
        return self.renamed(with_operands(expr, self.expr))

    def symbol(self, symbol: Symbol) -> Symbol:
        if isinstance(symbol, ir.Var):
            return self.vars.get(symbol, symbol)
        return self.arrays.get(symbol, symbol) if isinstance(symbol, ir.Array) else self.fields.get(symbol, symbol)

    def renamed(self, node: Node) -> Node:
        """A node with the copy's symbols in the place of its own."""
        done: Node = CHILDREN[type(node)].map_symbols(node, self.symbol)
        return done

    def block(self, block: ir.Block) -> ir.Block:
        return tuple(copy for stmt in block for copy in self.stmt(stmt))

    def stmt(self, stmt: ir.Stmt) -> ir.Block:
        return (self.renamed(map_blocks(map_values(stmt, self.expr), self.block)),)
