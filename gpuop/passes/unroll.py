"""Expand loops with constant bounds that the user wants unrolled, so that offsets in them become constants."""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.build import constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Block, Break, Const, Continue, For, If, Stmt
from gpuop.ir.types import INT
from gpuop.ir.visit import Copier, blocks, map_blocks

MAX_TURNS = 1024


def unroll(kernel: Kernel) -> Kernel:
    return replace(kernel, body=_block(kernel.body))


def _block(block: Block) -> Block:
    out: list[Stmt] = []
    for stmt in block:
        inner = map_blocks(stmt, _block)
        turns = _turns(inner) if isinstance(inner, For) and inner.unroll == 0 else None
        if turns is None or not isinstance(inner, For):
            out.append(inner)
            continue
        for turn in turns:
            out += Copier(inner.body, {inner.var: constant(turn, INT)}).copy()
    return tuple(out)


def _turns(loop: For) -> range | None:
    """The values of the counter, when they are known and no turn is left early."""
    bounds = [b.value for b in (loop.start, loop.stop, loop.step) if isinstance(b, Const)]
    if len(bounds) < 3 or _leaves(loop.body):
        return None
    turns = range(*map(int, bounds))
    return turns if len(turns) <= MAX_TURNS else None


def _leaves(block: Block) -> bool:
    """Whether a break or continue of this loop, not of an inner one, is in the block."""
    return any(
        isinstance(stmt, (Break, Continue)) or (isinstance(stmt, If) and any(map(_leaves, blocks(stmt))))
        for stmt in block
    )
