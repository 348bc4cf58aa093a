"""Outputs that threads update by atomic operations: windows give parts of them, which are combined by the same operation."""

from __future__ import annotations

from gpuop.ir.kernel import Kernel
from gpuop.ir.monoids import Monoid, joined_by, output_atomics
from gpuop.ir.nodes import FieldParam, Write
from gpuop.ir.visit import walk


def combined(kernel: Kernel) -> dict[FieldParam, Monoid]:
    """The outputs that threads only update, with what combines parts of them; none where `uncombined` has a reason."""
    if uncombined(kernel):
        return {}
    joins = ((field, joined_by(stmt.op)) for stmt, field in output_atomics(kernel))
    return {field: monoid for field, monoid in joins if monoid is not None}


def uncombined(kernel: Kernel) -> str:
    """Why what a kernel updates cannot be combined of windows; empty where it can."""
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
