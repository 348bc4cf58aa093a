"""Dead code: what neither the outputs of a kernel nor its other effects need."""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.nodes import (
    Array,
    Assign,
    Atomic,
    Block,
    Declare,
    FieldParam,
    For,
    If,
    Let,
    Ref,
    Stmt,
    Store,
    Var,
    While,
    Write,
)
from gpuop.ir.visit import blocks, loaded, map_blocks, values, walk_expr


def restricted(kernel: Kernel, outputs: tuple[Output, ...]) -> Kernel:
    """The kernel with only some of what it writes, and what these need."""
    kept = {output.param for output in outputs}
    return without_dead_code(replace(kernel, outputs=outputs, body=_writing(kernel.body, kept)))


def _writing(block: Block, kept: set[FieldParam]) -> Block:
    """The block without writes of other fields."""
    left = (stmt for stmt in block if not isinstance(stmt, Write) or stmt.field in kept)
    return tuple(map_blocks(stmt, lambda inner: _writing(inner, kept)) for stmt in left)


def without_dead_code(kernel: Kernel) -> Kernel:
    """The kernel with only what its outputs and other effects need."""
    return replace(kernel, body=_live(kernel.body, set(), loaded(kernel.body)))


def _live(block: Block, live: set[Var], arrays: set[Array]) -> Block:
    """The statements that matter, given what is used after the block; `live` grows by what they use.

    A statement stays unless it is one of those that are known to do nothing else than what nobody wants.
    """
    out: list[Stmt] = []
    for stmt in reversed(block):
        match stmt:
            case Let(var=var) | Assign(var=var) if var not in live:
                continue
            case Declare(array=array) | Store(memory=Array() as array) if array not in arrays:
                continue
            case Atomic(var=Var() as var) if var not in live:
                stmt = replace(stmt, var=None)
        if isinstance(stmt, While):
            live.update(e.var for e in walk_expr(stmt.cond) if isinstance(e, Ref))
        stmt, before, known = _turn(stmt, live, arrays), stmt, -1
        while isinstance(stmt, (For, While)) and known != len(live):  # a turn may use what the one before it assigned
            known, stmt = len(live), _turn(before, live, arrays)
        if isinstance(stmt, (If, For)) and not any(blocks(stmt)):
            continue
        live.update(e.var for value in values(stmt) for e in walk_expr(value) if isinstance(e, Ref))
        out.append(stmt)
    return tuple(reversed(out))


def _turn(stmt: Stmt, live: set[Var], arrays: set[Array]) -> Stmt:
    return map_blocks(stmt, lambda inner: _live(inner, live, arrays))
