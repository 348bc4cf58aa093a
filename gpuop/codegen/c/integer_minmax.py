"""Calls for kernels with many integer minima and maxima, which crash the Intel compiler when spelled as usual."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from gpuop.codegen.c.dialect import Dialect
from gpuop.ir.analysis.size import copies
from gpuop.ir.nodes import Apply, Block, Const, Expr, Let, Ref, Var
from gpuop.ir.visit import blocks, expressions, values, walk, walk_expr

CROWD = 64  # extremes; with more, choices whose operands a network shares
# Extremes of two others that nothing else needs: a tree of four times as many values is too much for choices.
FORKS = 64


def calls_of(body: Block, dialect: Dialect) -> Mapping[str, str]:
    """The dialect's calls as this kernel is to have them."""
    extremes = list(expanded(body))
    if len(extremes) <= CROWD:
        return dialect.calls
    uses = Counter(e.var for e in expressions(body) if isinstance(e, Ref))
    own: set[Var] = {s.var for s in walk(body) if isinstance(s, Let) and is_extreme(s.value) and uses[s.var] == 1}
    forks = sum(all(is_extreme(a) or (isinstance(a, Ref) and a.var in own) for a in e.args) for e in extremes)
    return {**dialect.calls, **(dialect.forked if forks > FORKS else dialect.crowded)}


def expanded(block: Block) -> Iterator[Apply]:
    """The extremes of integers in a block, each as often as hints ask compilers to have it."""
    for stmt in block:
        for value in values(stmt):
            yield from (expr for expr in walk_expr(value) if isinstance(expr, Apply) and is_extreme(expr))
        for inner in blocks(stmt):
            operands_first = list(expanded(inner))
            for _ in range(copies(stmt)):
                yield from operands_first


def is_extreme(expr: Expr) -> bool:
    """True for a minimum or maximum of integers."""
    return isinstance(expr, Apply) and expr.op in ("min", "max") and expr.type.integer


def is_clamp(expr: Apply) -> bool:
    """True for a clamp of an integer on one side by a number. No network has one, and the select that replaces extremes is
    miscompiled there: the Intel compiler lost the last iterations of unrolled loops with clamped row indices.
    """
    return is_extreme(expr) and any(isinstance(a, Const) for a in expr.args)
