"""Outputs that threads update by atomic operations: windows give parts of them, which are combined by the same operation."""

from __future__ import annotations

from gpuop.ir.dead_code import without_dead_code
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Atomic, FieldParam, Write
from gpuop.ir.visit import updated, walk

SUMS = {"sub": "add"}  # what combines parts, where it is another operation
COUNTED = {"add", "xor"}  # where what an output holds at first must not count in each part
COMBINED = COUNTED | {"min", "max", "and", "or"}


def combined(kernel: Kernel) -> dict[FieldParam, str]:
    """The outputs that threads only update, with what combines parts of them; none where `uncombined` has a reason."""
    return {} if uncombined(kernel) else {field: next(iter(ops)) for field, ops in _updates(kernel).items()}


def uncombined(kernel: Kernel) -> str:
    """Why what a kernel updates cannot be combined of windows; empty where it can."""
    for stmt in _atomics(kernel):
        name = getattr(stmt.memory, "hint", "")
        if stmt.op == "read" or (stmt.var is not None and stmt.op in COMBINED):
            return f"uses what `{name}` holds while other threads update it: let no thread need the result of an update"
        if stmt.op not in COMBINED | SUMS.keys():
            return (
                f"updates `{name}` by `_atomic_{stmt.op}`, whose order matters: sums, extremes and bits can be combined"
            )
    written = {stmt.field for stmt in walk(kernel.body) if isinstance(stmt, Write)}
    for field, ops in _updates(kernel).items():
        if len(ops) > 1:
            each = " and ".join(sorted(ops))
            return f"updates `{field.hint}` by {each}, whose order matters: give each of them an output of its own"
        if field in written:
            return (
                f"writes `{field.hint}` and updates it, whose order matters: give what is written an output of its own"
            )
    return ""


def _atomics(kernel: Kernel) -> list[Atomic]:
    if not any(isinstance(memory, FieldParam) for memory in updated(kernel.body)):
        return []
    body = without_dead_code(kernel).body
    return [stmt for stmt in walk(body) if isinstance(stmt, Atomic) and isinstance(stmt.memory, FieldParam)]


def _updates(kernel: Kernel) -> dict[FieldParam, set[str]]:
    found: dict[FieldParam, set[str]] = {}
    for stmt in _atomics(kernel):
        assert isinstance(stmt.memory, FieldParam)
        found.setdefault(stmt.memory, set()).add(SUMS.get(stmt.op, stmt.op))
    return found
