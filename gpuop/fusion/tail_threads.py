"""Tail threads: threads outside of the grid, which complete the work-groups of one operator and run fused operators too.

Writes at their own points are dropped, and reads there give the nearest point; nothing else may depend on their position.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpuop.base.errors import Loc
from gpuop.base.finalizers import WeakKeys
from gpuop.fusion.program import Op
from gpuop.ir import nodes as ir
from gpuop.ir.kernel import Kernel
from gpuop.ir.target_expressions import TargetConst
from gpuop.ir.visit import values, walk, walk_expr

Hazard = tuple[str, Loc | None]

_hazards: WeakKeys[Op, Hazard | None] = WeakKeys()


def unfit(ops: Iterable[Op]) -> str | None:
    """The reason why operators cannot share a kernel, if one of them runs in whole work-groups; None if they can."""
    ops = tuple(ops)
    whole = next((op for op in ops if op.fusible.whole), None)
    if whole is None:
        return None
    for op in ops:
        if op.fusible.whole:
            continue
        if op not in _hazards:
            _hazards[op] = _hazard(op.fusible)
        if (result := _hazards[op]) is not None:
            hazard, loc = result
            return (
                f"`{whole.kernel.name}` runs whole work-groups, and `{op.kernel.name}` {hazard} "
                f"({op.line(loc) or 'the library'}), which tail threads must not"
            )
    return None


def _hazard(kernel: Kernel) -> Hazard | None:
    """The first statement that tail threads must not run, and its line."""
    for stmt in walk(kernel.body):
        inside = (_expression(e) for value in values(stmt) for e in walk_expr(value))
        hazard = _statement(stmt) or next(filter(None, inside), "")
        if hazard:
            return hazard, getattr(stmt, "loc", None)
    return None


def _statement(stmt: ir.Stmt) -> str:  # noqa: C901 - a case for each kind of node
    match stmt:
        case ir.Write(point=point) if point is not None:
            return "writes at computed places"
        case ir.Atomic():
            return "updates memory atomically"
        case ir.Barrier():
            return "waits for its own work-groups"
        case ir.Collective():
            return "works on values of its work-groups"
        case ir.Declare(array=array) if array.space == "local":
            return "has local memory"
        case _ if stmt.effect:
            return f"{type(stmt).__name__.lower()}s"
        case ir.While():
            return "loops until a condition holds"
        case ir.For(step=step) if not isinstance(step, ir.Const):
            return "loops by a computed step"
        case ir.Store(memory=ir.Array(), index=index) if not _is_constant(index):
            return "writes arrays at computed places"
        case (
            ir.Let()
            | ir.Assign()
            | ir.Write()
            | ir.Store()
            | ir.Declare()
            | ir.If()
            | ir.For()
            | ir.Break()
            | ir.Continue()
            | ir.Comment()
        ):
            return ""
        case ir.Print() | ir.Assert():
            raise AssertionError("it has an effect")
        case ir.Wide():
            raise AssertionError("recorded forms are asked about")
        case _:
            ir.assert_never(stmt)


def _expression(expr: ir.Expr) -> str:
    match expr:
        case ir.Read(point=point, border="unchecked") if point is not None:
            return 'reads under border="unchecked"'
        case ir.Load(index=index) if not _is_constant(index):
            return "reads arrays at computed places"
        case ir.Const() | TargetConst() | ir.Ref() | ir.Index() | ir.Stride() | ir.Argument():
            return ""
        case ir.Apply() | ir.Cast() | ir.Bits() | ir.Lane() | ir.Pack() | ir.Read() | ir.Load():
            return ""
        case _:
            ir.assert_never(expr)


def _is_constant(index: tuple[ir.Expr, ...]) -> bool:
    return all(isinstance(i, ir.Const) for i in index)
