"""Expand loops with constant bounds that the user wants unrolled, so that offsets in them become constants."""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.build import constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Block, For, Stmt
from gpuop.ir.types import INT
from gpuop.ir.visit import Copier, leaving, map_blocks, turns

MAX_TURNS = 1024


def unroll(kernel: Kernel) -> Kernel:
    return replace(kernel, body=_block(kernel.body))


def _block(block: Block) -> Block:
    out: list[Stmt] = []
    for stmt in block:
        inner = map_blocks(stmt, _block)
        known = _turns(inner) if isinstance(inner, For) and inner.unroll == 0 else None
        if known is None or not isinstance(inner, For):
            out.append(inner)
            continue
        for turn in known:
            out += Copier(inner.body, {inner.var: constant(turn, INT)}).copy()
    return tuple(out)


def _turns(loop: For) -> range | None:
    """The values of the counter, when they are known and no turn is left early."""
    known = turns(loop)
    return (
        known if known is not None and len(known) <= MAX_TURNS and not any(True for _ in leaving(loop.body)) else None
    )
