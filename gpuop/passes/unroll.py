"""Unrolling of loops with constant bounds where the user asks for it, so that offsets in them become constants.

Unroll hints are passed on to compilers, unless they ask for huge texts, whose compilation takes longer than it saves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpuop.ir.analysis.size import MOST_STATEMENTS, size
from gpuop.ir.build import constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Block, For, Stmt, While
from gpuop.ir.types import INT
from gpuop.ir.visit import Copier, leaving, loop_values, map_blocks, walk

MOST_EXPANDED = MOST_STATEMENTS // 4  # statements of an unrolled loop
MOST_HINTED = MOST_STATEMENTS // 8  # statements that the hints of a kernel add


def unroll(kernel: Kernel) -> Kernel:
    return replace(kernel, body=_block(kernel.body))


def _block(block: Block) -> Block:
    out: list[Stmt] = []
    for stmt in block:
        inner = map_blocks(stmt, _block)
        values = _values_to_expand(inner) if isinstance(inner, For) and inner.unroll == 0 else None
        if values is None or not isinstance(inner, For):
            out.append(inner)
            continue
        for turn in values:
            out += Copier(inner.body, {inner.var: constant(turn, INT)}).copy()
    return tuple(out)


def _values_to_expand(loop: For) -> range | None:
    """The values of the counter, if they are known, no iteration ends early, and the text is not too long; else None."""
    values = loop_values(loop)
    if values is None or len(values) * size(loop.body) > MOST_EXPANDED or any(True for _ in leaving(loop.body)):
        return None
    return values


def drop_hints(kernel: Kernel) -> Kernel:
    """Drop hints of loops around loops, at which the Intel compiler may crash, and all hints where they ask for too much."""
    kernel = replace(kernel, body=_unhinted(kernel.body, _is_around_loops))
    asked = size(kernel.body, hinted=True) - size(kernel.body)
    return kernel if asked <= MOST_HINTED else replace(kernel, body=_unhinted(kernel.body, lambda loop: True))


def _is_around_loops(loop: For) -> bool:
    return any(isinstance(stmt, (For, While)) for stmt in walk(loop.body))


def _unhinted(block: Block, without: Callable[[For], bool]) -> Block:
    return tuple(map_blocks(_plain(stmt, without), lambda inner: _unhinted(inner, without)) for stmt in block)


def _plain(stmt: Stmt, without: Callable[[For], bool]) -> Stmt:
    return replace(stmt, unroll=1) if isinstance(stmt, For) and stmt.unroll != 1 and without(stmt) else stmt
