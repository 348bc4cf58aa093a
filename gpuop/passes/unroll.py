"""Expand loops with constant bounds that the user wants unrolled, so that offsets in them become constants.

Hints to compilers are given as they are, where what they ask for is no huge text: to compile that takes longer than it saves.
"""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.build import constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Block, For, Stmt
from gpuop.ir.size import MOST_STATEMENTS, copies, size
from gpuop.ir.types import INT
from gpuop.ir.visit import Copier, blocks, leaving, loop_values, map_blocks, walk

MOST_EXPANDED = MOST_STATEMENTS // 4  # of a loop that is expanded
MOST_HINTED = MOST_STATEMENTS // 8  # that the hints of a kernel add


def unroll(kernel: Kernel) -> Kernel:
    return replace(kernel, body=_block(kernel.body))


def _block(block: Block) -> Block:
    out: list[Stmt] = []
    for stmt in block:
        inner = map_blocks(stmt, _block)
        known = _values_to_expand(inner) if isinstance(inner, For) and inner.unroll == 0 else None
        if known is None or not isinstance(inner, For):
            out.append(inner)
            continue
        for turn in known:
            out += Copier(inner.body, {inner.var: constant(turn, INT)}).copy()
    return tuple(out)


def _values_to_expand(loop: For) -> range | None:
    """The values of the counter, when they are known, no turn is left early, and their text is not too long."""
    known = loop_values(loop)
    if known is None or len(known) * size(loop.body) > MOST_EXPANDED or any(True for _ in leaving(loop.body)):
        return None
    return known


def drop_hints(kernel: Kernel) -> Kernel:
    """Leave out the hints of a kernel that ask for too much together, as loops in loops do: those of outer loops, or all."""
    for body in (kernel.body, _unhinted(kernel.body, True), _unhinted(kernel.body, False)):
        if size(body, hinted=True) - size(body) <= MOST_HINTED:
            return replace(kernel, body=body)
    return kernel


def _unhinted(block: Block, inner: bool) -> Block:
    """The block without hints; with those of loops that have no hints within if `inner` ones are kept."""
    out: list[Stmt] = []
    for stmt in block:
        unhinted = map_blocks(stmt, lambda each: _unhinted(each, inner)) if blocks(stmt) else stmt
        if isinstance(unhinted, For) and not (inner and all(copies(within) == 1 for within in walk(unhinted.body))):
            unhinted = replace(unhinted, unroll=1)
        out.append(unhinted)
    return tuple(out)
