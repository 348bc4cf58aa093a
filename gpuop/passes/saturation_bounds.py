"""Sums that are only compared with small numbers: above these, one value is as good as another.

Whether eight bytes are 3 together, their saturated sum tells as well, and vectors have as many lanes of it as of bytes.
"""

from __future__ import annotations

from collections import Counter

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Const, Expr, Let, Ref, Var
from gpuop.ir.ops import MIRRORED
from gpuop.ir.visit import expressions, walk
from gpuop.passes.ranges import Ranges, fits

ALIKE_FROM = {"lt": 0, "ge": 0, "le": 1, "gt": 1, "eq": 1, "ne": 1}  # beyond the number that a value is compared with


def ceilings(kernel: Kernel) -> dict[Var, int]:
    """For integers: the least value that all readers take for any greater one, where they do.

    A reader is a comparison with a constant, or a sum of values that are never negative, of which that is true again.
    """
    lets = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Let)]
    sums = _sums(kernel)
    unread = Counter(e.var for e in expressions(kernel.body) if isinstance(e, Ref))  # as far as readers were met
    found: dict[Var, int] = {}
    for stmt in reversed(lets):
        atoms, ceiling = _asked(stmt.value)
        if stmt.var in sums and stmt.var in found and not unread[stmt.var]:
            assert isinstance(stmt.value, Apply)
            atoms, ceiling = stmt.value.args, found[stmt.var]
        for atom in atoms:
            if isinstance(atom, Ref):
                unread[atom.var] -= 1
                found[atom.var] = max(found.get(atom.var, 0), ceiling)
    return {var: ceiling for var, ceiling in found.items() if var in sums and not unread[var]}


def _sums(kernel: Kernel) -> set[Var]:
    """The sums of what is never negative that do not wrap."""
    ranges, sums = Ranges(kernel), set()
    for stmt in walk(kernel.body):
        match stmt:
            case Let(var=var, value=Apply(op="add", args=args) as value) if var.type.integer and not var.mutable:
                if fits(ranges.exact(value), var.type.dtype) and all(ranges.range(a)[0] >= 0 for a in args):
                    sums.add(var)
        ranges.meet(stmt)
    return sums


def _asked(expr: Expr) -> tuple[tuple[Expr, ...], int]:
    """What is compared with a constant, and from where on the answer is the same."""
    match expr:
        case Apply(op=op, args=(Ref() as atom, Const(value=value))) if op in MIRRORED and atom.type.integer:
            return (atom,), int(value) + ALIKE_FROM[op]
        case Apply(op=op, args=(Const(value=value), Ref() as atom)) if op in MIRRORED and atom.type.integer:
            return (atom,), int(value) + ALIKE_FROM[MIRRORED[op]]
    return (), 0
