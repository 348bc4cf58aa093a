"""Saturation bounds of sums that are only compared with small numbers: all greater values give the same results.

Whether eight bytes add up to 3 can be read from their saturated sum, which is a byte and keeps the lanes of vectors.
"""

from __future__ import annotations

from collections import Counter

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Const, Expr, Let, Ref, Var
from gpuop.ir.ops import MIRRORED
from gpuop.ir.visit import expressions, walk
from gpuop.passes.ranges import Ranges, fits

# distance of the bound from the number of the comparison
ALIKE_FROM = {"lt": 0, "ge": 0, "le": 1, "gt": 1, "eq": 1, "ne": 1}


def ceilings(kernel: Kernel) -> dict[Var, int]:
    """The bound of each integer: all readers give the same result for it and for any greater value.

    A reader is a comparison with a constant, or a sum of values that are never negative and has such a bound itself.
    """
    lets = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Let)]
    sums = _sums(kernel)
    unread = Counter(e.var for e in expressions(kernel.body) if isinstance(e, Ref))  # readers that come later
    bounds: dict[Var, int] = {}
    for stmt in reversed(lets):
        atoms, ceiling = _asked(stmt.value)
        if stmt.var in sums and stmt.var in bounds and not unread[stmt.var]:
            assert isinstance(stmt.value, Apply)
            atoms, ceiling = stmt.value.args, bounds[stmt.var]
        for atom in atoms:
            if isinstance(atom, Ref):
                unread[atom.var] -= 1
                bounds[atom.var] = max(bounds.get(atom.var, 0), ceiling)
    return {var: ceiling for var, ceiling in bounds.items() if var in sums and not unread[var]}


def _sums(kernel: Kernel) -> set[Var]:
    """The sums of values that are never negative, without overflow."""
    ranges, sums = Ranges(kernel), set()
    for stmt in walk(kernel.body):
        match stmt:
            case Let(var=var, value=Apply(op="add", args=args) as value) if var.type.integer and not var.mutable:
                if fits(ranges.exact(value), var.type.dtype) and all(ranges.range(a)[0] >= 0 for a in args):
                    sums.add(var)
        ranges.meet(stmt)
    return sums


def _asked(expr: Expr) -> tuple[tuple[Expr, ...], int]:
    """The variables that are compared with a constant, and the values from which on the result is the same."""
    match expr:
        case Apply(op=op, args=(Ref() as atom, Const(value=value))) if op in MIRRORED and atom.type.integer:
            return (atom,), int(value) + ALIKE_FROM[op]
        case Apply(op=op, args=(Const(value=value), Ref() as atom)) if op in MIRRORED and atom.type.integer:
            return (atom,), int(value) + ALIKE_FROM[MIRRORED[op]]
    return (), 0
