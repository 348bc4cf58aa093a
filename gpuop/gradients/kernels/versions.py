"""Static single assignment: every assignment of a variable becomes a value of its own.

Where a branch or a loop assigns a variable, one mutable variable joins the values: it is assigned at the end of the branches, or
of the loop's body, and nowhere else, and a value behind it holds the result.
"""

from __future__ import annotations

from dataclasses import replace

from gpuop.base.errors import Loc
from gpuop.gradients.kernels.loops import without_exits
from gpuop.ir import nodes as ir
from gpuop.ir.analysis.size import MOST_STATEMENTS, size
from gpuop.ir.build import constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import INT
from gpuop.ir.visit import Copier, loop_values, map_blocks, map_values, walk, with_operands
from gpuop.passes.rewrite import rewrite_statements

MOST_UNROLLED = MOST_STATEMENTS // 2
Versions = dict[ir.Var, ir.Expr]


def single_assignment(kernel: Kernel) -> Kernel:
    """The kernel with loops of known bounds unrolled, where that is not too long, and each variable assigned once."""
    body = rewrite_statements(without_exits(kernel.body), _unrolled)
    return replace(kernel, body=tuple(_block(body, {})))


def _unrolled(loop: ir.Stmt) -> ir.Block:
    numbers = loop_values(loop) if isinstance(loop, ir.For) else None
    if not isinstance(loop, ir.For) or numbers is None:
        return (loop,)
    if len(numbers) * size(loop.body) > MOST_UNROLLED:
        return (loop,)
    return tuple(stmt for n in numbers for stmt in Copier(loop.body, {loop.var: constant(n, INT)}).copy())


def _block(block: ir.Block, now: Versions) -> list[ir.Stmt]:
    out: list[ir.Stmt] = []
    for stmt in block:
        stmt = stmt if isinstance(stmt, ir.While) else map_values(stmt, lambda e: _current(e, now))
        match stmt:
            case ir.Let(var=var, value=value) if var.mutable:
                now[var] = _version(var, value, stmt.loc, out)
            case ir.Assign(var=var, value=value):
                now[var] = _version(var, value, stmt.loc, out)
            case ir.If():
                _branches(stmt, now, out)
            case ir.For() | ir.While():
                _loop(stmt, now, out)
            case _:
                out.append(map_blocks(stmt, lambda inner: tuple(_block(inner, dict(now)))))
    return out


def _current(expr: ir.Expr, now: Versions) -> ir.Expr:
    if isinstance(expr, ir.Ref):
        return now.get(expr.var, expr)
    return with_operands(expr, lambda e: _current(e, now))


def _version(var: ir.Var, value: ir.Expr, loc: Loc | None, out: list[ir.Stmt]) -> ir.Expr:
    version = ir.Var(var.hint, var.type, temporary=var.temporary)
    out.append(ir.Let(version, value, loc))
    return ir.Ref(version)


def _assigned(block: ir.Block, now: Versions) -> list[ir.Var]:
    """The variables of now that a block assigns, in the order of the text."""
    variables = (stmt.var for stmt in walk(block) if isinstance(stmt, ir.Assign))
    return [var for var in dict.fromkeys(variables) if var in now]


def _branches(stmt: ir.If, now: Versions, out: list[ir.Stmt]) -> None:
    joins = {var: ir.Var(var.hint, var.type, True, True) for var in _assigned((*stmt.then, *stmt.orelse), now)}
    out += (ir.Let(join, now[var], stmt.loc) for var, join in joins.items())

    def branch(block: ir.Block) -> ir.Block:
        inner = dict(now)
        done = _block(block, inner)
        changed = (var for var in joins if inner[var] is not now[var])
        return (*done, *[ir.Assign(joins[var], inner[var], stmt.loc) for var in changed])

    out.append(replace(stmt, then=branch(stmt.then), orelse=branch(stmt.orelse)))
    for var, join in joins.items():
        now[var] = _version(var, ir.Ref(join), stmt.loc, out)


def _loop(stmt: ir.For | ir.While, now: Versions, out: list[ir.Stmt]) -> None:
    head = stmt.head if isinstance(stmt, ir.While) else ()
    joins = {var: ir.Var(var.hint, var.type, True, True) for var in _assigned((*head, *stmt.body), now)}
    out += (ir.Let(join, now[var], stmt.loc) for var, join in joins.items())
    first: list[ir.Stmt] = []
    inner = now | {var: _version(var, ir.Ref(join), stmt.loc, first) for var, join in joins.items()}
    if isinstance(stmt, ir.While):
        stmt = replace(stmt, head=(*first, *_block(head, inner)), cond=_current(stmt.cond, inner))
        first = []
    body = [*first, *_block(stmt.body, inner)]
    body += (ir.Assign(join, inner[var], stmt.loc) for var, join in joins.items())
    out.append(replace(stmt, body=tuple(body)))
    for var, join in joins.items():
        now[var] = _version(var, ir.Ref(join), stmt.loc, out)
