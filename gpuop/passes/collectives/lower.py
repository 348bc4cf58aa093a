"""Lowering of collective operations: to local memory and barriers, and to shuffles within warps where a target has these."""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import SHUFFLES, Block, Collective, Declare, For, Stmt, While
from gpuop.ir.visit import map_blocks, walk
from gpuop.passes.collectives.exchange import GroupMemory
from gpuop.passes.collectives.operations import GroupOperation


def spell_collectives(kernel: Kernel) -> Kernel:
    """The kernel without collective operations other than shuffles in warps. Its target must be known.

    Raises:
        SemanticError: parts whose size depends on the target do not divide the work-group.
    """
    if is_spelled(kernel):
        return kernel
    memory = GroupMemory(replace(kernel, group=kernel.work_group))
    body = _block(memory, kernel.body, False)
    return replace(memory.kernel, body=(*map(Declare, memory.arrays.values()), *body))


def is_spelled(kernel: Kernel) -> bool:
    return all(stmt.kind in SHUFFLES for stmt in walk(kernel.body) if isinstance(stmt, Collective))


def _block(memory: GroupMemory, block: Block, looping: bool) -> Block:
    out: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, Collective):
            out += GroupOperation(memory, stmt, looping).statements()
        else:
            around = looping or isinstance(stmt, (For, While))
            out.append(map_blocks(stmt, lambda inner, around=around: _block(memory, inner, around)))  # type: ignore[misc]
    return tuple(out)
