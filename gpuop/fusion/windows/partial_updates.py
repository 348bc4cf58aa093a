"""Outputs with atomic updates: windows give parts of them, which the same operation combines."""

from __future__ import annotations

from gpuop.ir.kernel import Kernel
from gpuop.ir.monoids import Monoid, joined_by, output_atomics
from gpuop.ir.nodes import FieldParam, Write
from gpuop.ir.visit import walk


def combining_monoids(kernel: Kernel) -> dict[FieldParam, Monoid]:
    """The outputs that threads only update, with the monoid that combines parts; none if `combining_refusal` has a reason."""
    if combining_refusal(kernel):
        return {}
    joins = ((field, joined_by(stmt.op)) for stmt, field in output_atomics(kernel))
    return {field: monoid for field, monoid in joins if monoid is not None}


def combining_refusal(kernel: Kernel) -> str:
    """The reason why the updates of windows cannot be combined; empty if they can."""
    joins: dict[FieldParam, set[str]] = {}
    for stmt, field in output_atomics(kernel):
        monoid = joined_by(stmt.op)
        if stmt.op == "read" or (stmt.var is not None and monoid is not None):
            return f"uses what `{field.hint}` holds while other threads update it: let no thread need the result of an update"
        if monoid is None:
            return f"updates `{field.hint}` by `_atomic_{stmt.op}`, whose order matters: sums, extremes and bits can be combined"
        joins.setdefault(field, set()).add(monoid.name)
    written = {stmt.field for stmt in walk(kernel.body) if isinstance(stmt, Write)}
    for field, names in joins.items():
        if len(names) > 1:
            each = " and ".join(sorted(names))
            return f"updates `{field.hint}` by {each}, whose order matters: give each of them an output of its own"
        if field in written:
            return (
                f"writes `{field.hint}` and updates it, whose order matters: give what is written an output of its own"
            )
    return ""
