"""Removal of unused loads: a vector in local memory is recorded as loads of all components, though one may be used."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from gpuop.ir.build import constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Block, Expr, Lane, Let, Pack, Ref, Stmt, Var
from gpuop.ir.visit import map_blocks, operands, values, walk

Used = defaultdict[Var, set[int]]  # the used lanes of each variable


def without_unused(kernel: Kernel) -> Kernel:
    """Return the kernel without bindings that no effect depends on; all effects, and their lines, stay."""
    used: Used = defaultdict(set)
    stmts = list(walk(kernel.body))
    for stmt in stmts:
        if not _binds(stmt):
            for value in values(stmt):
                _mark(value, set(range(value.type.lanes)), used)
    for stmt in reversed(stmts):  # values come after their operands
        if isinstance(stmt, Let) and _binds(stmt) and stmt.var in used:
            _mark(stmt.value, used[stmt.var], used)
    return replace(kernel, body=_used_only(kernel.body, used))


def _binds(stmt: Stmt) -> bool:
    """Return whether a statement only names a value."""
    return isinstance(stmt, Let) and not stmt.var.mutable


def _mark(expr: Expr, lanes: set[int], used: Used) -> None:
    match expr:
        case Ref(var=var):
            used[var] |= lanes
        case Lane(arg=arg, lane=lane):
            _mark(arg, {lane}, used)
        case Pack(args=args):
            for lane in lanes:
                _mark(args[lane], {0}, used)
        case _:
            for operand in operands(expr):
                _mark(operand, set(range(operand.type.lanes)), used)


def _used_only(block: Block, used: Used) -> Block:
    out: list[Stmt] = []
    for stmt in block:
        match stmt:
            case Let(var=var) if _binds(stmt) and var not in used:
                continue
            case Let(var=var, value=Pack(args=args, type=type_)) if _binds(stmt):
                nothing = constant(0, type_.dtype)
                some = tuple(arg if lane in used[var] else nothing for lane, arg in enumerate(args))
                out.append(replace(stmt, value=Pack(some, type_)))
            case _:
                out.append(map_blocks(stmt, lambda inner: _used_only(inner, used)))
    return tuple(out)
