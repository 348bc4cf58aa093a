"""Writes of points whose elements alternate in memory: vectors of CPUs store all elements at once."""

from __future__ import annotations

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Write
from gpuop.ir.visit import walk
from gpuop.passes.coarsening_factor import are_whole


def writes_parts(kernel: Kernel) -> bool:
    """Return whether a kernel writes single elements of such points where its target has vectors, which no schedule does."""
    if kernel.target is None or kernel.machine.vector_length == 1:
        return False
    several = {param for param, layout in kernel.layouts if layout.period > 1}
    return not are_whole(stmt for stmt in walk(kernel.body) if isinstance(stmt, Write) and stmt.field in several)
