"""Rewriting of the statements and the bindings of a kernel, for passes that replace one by several others."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpuop.ir.build import Builder, collector
from gpuop.ir.nodes import Assign, Block, Expr, Let, Stmt
from gpuop.ir.visit import map_blocks

Rule = Callable[[Builder, Expr], Expr | None]


def rewrite_statements(body: Block, rule: Callable[[Stmt], Iterable[Stmt]]) -> Block:
    """Replace every statement, those of inner blocks first, by the statements that a rule returns for it."""
    out: list[Stmt] = []
    for stmt in body:
        out += rule(map_blocks(stmt, lambda inner: rewrite_statements(inner, rule)))
    return tuple(out)


def rewrite_bindings(body: Block, rule: Rule) -> Block:
    """Apply a rule to the value of every binding; it may bind further values, and returns None for no change."""
    out: list[Stmt] = []
    for stmt in body:
        stmt = map_blocks(stmt, lambda inner: rewrite_bindings(inner, rule))
        if isinstance(stmt, (Let, Assign)):
            value = rule(collector(out, stmt.loc), stmt.value)
            if value is not None:
                stmt = Let(stmt.var, value, stmt.loc) if isinstance(stmt, Let) else Assign(stmt.var, value, stmt.loc)
        out.append(stmt)
    return tuple(out)
