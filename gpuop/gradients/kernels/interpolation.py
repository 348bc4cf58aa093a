"""Interpolations of `_sampleTensor`, whose slope at a whole coordinate is that between it and the next point.

Their text takes the lower point there, so that an infinite neighbour does not count; read as it stands, it has slope 0.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from gpuop.ir import nodes as ir
from gpuop.ir.types import BOOL
from gpuop.ir.visit import Symbol, walk


def between_points(body: ir.Block, smooth: Collection[Symbol]) -> tuple[dict[ir.Var, ir.Var], set[ir.Var]]:
    """The interpolations of a kernel at active coordinates.

    Returns:
        The variables of upper points, each with that of the lower one; and the results, whose third operand is the blend.
    """
    statements = [stmt for stmt in walk(body) if isinstance(stmt, ir.Let)]
    lets = {stmt.var: stmt.value for stmt in statements}
    above: dict[ir.Var, ir.Var] = {}
    whole: dict[ir.Expr, ir.Expr] = {}  # the tests for whole coordinates, and the lower points
    for first, second in pairwise(statements):
        coordinate = _operand(first.value, "floor")
        if isinstance(coordinate, ir.Ref) and coordinate.var in smooth and _operand(second.value, "ceil") == coordinate:
            above[second.var] = first.var
            test = ir.Apply("eq", (ir.Ref(first.var), coordinate), coordinate.type.of(BOOL))
            whole |= {ir.Ref(var): ir.Ref(first.var) for var, value in lets.items() if value == test}
    tests = {var: _test_of_blend(value, lets) for var, value in lets.items()}
    blends = {var: whole[test] for var, test in tests.items() if test is not None and test in whole}
    used = set(blends.values())
    return {high: low for high, low in above.items() if ir.Ref(low) in used}, set(blends)


def _operand(value: ir.Expr, op: str) -> ir.Expr | None:
    return value.args[0] if isinstance(value, ir.Apply) and value.op == op else None


def _test_of_blend(value: ir.Expr, lets: dict[ir.Var, ir.Expr]) -> ir.Expr | None:
    """The condition of a choice between a value, and that and a share of a difference; None of others."""
    match value:
        case ir.Apply(op="choose", args=(test, low, ir.Ref(var=blend))):
            mixed = lets.get(blend)
            if isinstance(mixed, ir.Apply) and mixed.op in ("add", "fma") and low in mixed.args:
                return test
    return None
