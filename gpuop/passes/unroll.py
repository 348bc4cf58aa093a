"""Unrolling of loops with constant bounds where the user asks for it, so that offsets in them become constants.

Unroll hints are passed on to compilers, unless they ask for huge texts, whose compilation takes longer than it saves.
"""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.analysis.size import MOST_STATEMENTS, size
from gpuop.ir.build import constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Block, For, Stmt, While
from gpuop.ir.types import INT
from gpuop.ir.visit import Copier, leaving, loop_values, map_blocks, walk
from gpuop.passes.rewrite import rewrite_statements

MOST_EXPANDED = MOST_STATEMENTS // 4  # statements of an unrolled loop
MOST_HINTED = MOST_STATEMENTS // 8  # statements that the hints of a kernel add


def unroll(kernel: Kernel) -> Kernel:
    return replace(kernel, body=rewrite_statements(kernel.body, _expanded))


def _expanded(loop: Stmt) -> Block:
    values = loop_values(loop) if isinstance(loop, For) and loop.unroll == 0 else None
    if not isinstance(loop, For) or values is None or any(leaving(loop.body)):  # an iteration may end early
        return (loop,)
    if len(values) * size(loop.body) > MOST_EXPANDED:
        return (loop,)
    return tuple(stmt for value in values for stmt in Copier(loop.body, {loop.var: constant(value, INT)}).copy())


def drop_hints(kernel: Kernel) -> Kernel:
    """Drop hints of loops around loops, at which the Intel compiler may crash, and all hints where they ask for too much."""
    kernel = replace(kernel, body=_unhinted(kernel.body, around=True))
    growth = size(kernel.body, hinted=True) - size(kernel.body)
    return kernel if growth <= MOST_HINTED else replace(kernel, body=_unhinted(kernel.body, around=False))


def _unhinted(block: Block, around: bool) -> Block:
    """A block without hints, or only without those of loops around loops."""
    out: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, For) and stmt.unroll != 1:
            inner = around and not any(isinstance(each, (For, While)) for each in walk(stmt.body))
            stmt = stmt if inner else replace(stmt, unroll=1)
        out.append(map_blocks(stmt, lambda body: _unhinted(body, around)))
    return tuple(out)
