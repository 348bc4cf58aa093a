"""Tangents of the collective operations of a work-group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpuop.ir import nodes as ir
from gpuop.ir.build import collector, constant
from gpuop.ir.types import Type
from gpuop.ir.visit import Copier

MOVING = ("broadcast", "shuffle", "up", "down", "xor")
# The tangent of a body whose variables are active, and of its result.
OfBody = Callable[[ir.Block, ir.Expr, dict[ir.Var, ir.Var]], tuple[ir.Block, ir.Expr]]


def collective_tangent(
    stmt: ir.Collective, var: ir.Var, value: ir.Expr, outside: ir.Expr | None, of_body: OfBody
) -> ir.Block | None:
    """The statements that bind the tangent of a collective's result, from that of its value; None if there is no rule.

    Args:
        outside: the tangent of the value before the first thread.
    """
    zero = constant(0, var.type.dtype)
    if stmt.kind in MOVING or (stmt.combination is not None and stmt.combination.name == "add"):
        out: list[ir.Stmt] = []
        before = collector(out).cast(zero, var.type) if outside is None else outside
        return (*out, replace(stmt, var=var, value=value, outside=None if stmt.outside is None else before))
    if stmt.kind == "select":
        return _of_winner(stmt, var, value)
    if var.type.lanes > 1 or stmt.combination is None:
        return None
    return _of_pairs(stmt, stmt.combination, var, value, zero if outside is None else outside, of_body)


def _of_winner(stmt: ir.Collective, var: ir.Var, value: ir.Expr) -> ir.Block:
    """The mean tangent of the threads whose value is the result."""
    out: list[ir.Stmt] = []
    b = collector(out, stmt.loc)
    wins = b.apply("eq", stmt.value, ir.Ref(stmt.var))
    sums = []
    for term in (value, constant(1, var.type.dtype)):
        total, left, right = (ir.Var(name, var.type, temporary=True) for name in ("total", "a", "b"))
        added = ir.Var("t", var.type, temporary=True)
        body = (ir.Let(added, ir.Apply("add", (ir.Ref(left), ir.Ref(right)), var.type)),)
        combination = ir.Combination(left, right, body, ir.Ref(added), "add")
        chosen = b.apply("choose", wins, term, constant(0, var.type.dtype))
        out.append(
            ir.Collective("reduce", total, chosen, stmt.over, combination=combination, word=stmt.word, loc=stmt.loc)
        )
        sums.append(ir.Ref(total))
    out.append(ir.Let(var, b.apply("div", *sums), stmt.loc))
    return tuple(out)


def _of_pairs(
    stmt: ir.Collective, combination: ir.Combination, var: ir.Var, value: ir.Expr, outside: ir.Expr, of_body: OfBody
) -> ir.Block:
    """A collective of pairs, a value and its tangent, which are combined together."""
    out: list[ir.Stmt] = []
    b = collector(out, stmt.loc)
    pair = Type(var.type.dtype, 2)
    paired = ir.Var("pair", pair, temporary=True)
    before = None if stmt.outside is None else b.pack([stmt.outside, outside])
    together = replace(
        stmt,
        var=paired,
        value=b.pack([stmt.value, value]),
        outside=before,
        combination=_on_pairs(combination, pair, of_body),
    )
    return (*out, together, ir.Let(var, ir.Lane(ir.Ref(paired), 1, var.type), stmt.loc))


def _on_pairs(combination: ir.Combination, pair: Type, of_body: OfBody) -> ir.Combination:
    out: list[ir.Stmt] = []
    b = collector(out)
    sides = [ir.Var(name, pair, temporary=True) for name in ("a", "b")]
    own, tangents = {}, {}
    for side, old in zip(sides, (combination.left, combination.right), strict=True):
        own[old], tangents[old] = (ir.Var("t", old.type, temporary=True) for _ in range(2))
        out += [ir.Let(new[old], ir.Lane(ir.Ref(side), k, old.type)) for k, new in enumerate((own, tangents))]
    copier = Copier(combination.body, {old: ir.Ref(new) for old, new in own.items()})
    body, result = copier.copy(), copier.expr(combination.result)
    block, tangent = of_body(body, result, {own[old]: tangents[old] for old in own})
    out += block
    both = b.pack([result, tangent])
    return ir.Combination(sides[0], sides[1], tuple(out), both)
