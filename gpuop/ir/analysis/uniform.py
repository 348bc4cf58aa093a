"""Uniformity: values that are equal for all threads of a work-group, or of the grid. Barriers may stand only under uniform
conditions.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuop.ir import nodes as ir
from gpuop.ir.target_expressions import Extent, TargetConst
from gpuop.ir.thread_grid import Domain
from gpuop.ir.visit import blocks, leaving, operands, values


class Uniformity:
    """An analysis of a kernel's body, to its fixed point.

    Args:
        grid: ask about all threads of the grid, instead of those of one work-group.

    Attributes:
        varying: variables and arrays whose values may differ between threads.
        divergent: statements that not all threads may reach together, with the condition or loop that separates them.
    """

    def __init__(self, body: ir.Block, domain: Domain, group: Sequence[Extent], grid: bool = False) -> None:
        sizes: Sequence[Extent] = [domain.extent(axis) for axis in ir.GRID_AXES] if grid else group
        self.several = {axis for axis, size in zip(ir.AXES, sizes, strict=False) if size != 1}
        if grid and domain.elements > 1:
            self.several.add("element")
        self.grid = grid
        self.positions = {"global", "local", "group"} if grid else {"global", "local"}
        self.varying: set[ir.Var | ir.Array] = set()
        self.divergent: dict[int, ir.Stmt] = {}
        before = -1
        while before != len(self.varying) + len(self.divergent):
            before = len(self.varying) + len(self.divergent)
            self._block(body, None)

    def varies(self, expr: ir.Expr) -> bool:
        match expr:
            case ir.Index(kind=kind, axis=axis):
                return kind in self.positions and axis in self.several
            case ir.Ref(var=var):
                return var in self.varying
            case ir.Load(memory=ir.Array(space="private") as array) if array in self.varying:
                return True
            case ir.Read(point=None, field=field) if field.type.field_shape:
                return True
            case ir.Const() | TargetConst() | ir.Stride() | ir.Argument():
                return False
            case ir.Apply() | ir.Cast() | ir.Bits() | ir.Lane() | ir.Pack() | ir.Read() | ir.Load():
                return any(map(self.varies, operands(expr)))
            case _:
                ir.assert_never(expr)

    def cause(self, stmt: ir.Stmt) -> ir.Stmt | None:
        """The statement that may keep some threads from this one; None if all reach it together."""
        return self.divergent.get(id(stmt))

    def _block(self, block: ir.Block, cause: ir.Stmt | None) -> None:
        for stmt in block:
            if cause is not None:
                self.divergent[id(stmt)] = cause
            self._stmt(stmt, cause)

    def _stmt(self, stmt: ir.Stmt, cause: ir.Stmt | None) -> None:  # noqa: C901 - a case for each kind of node
        differs = cause is not None or any(map(self.varies, values(stmt)))
        match stmt:
            case ir.Let(var=var, value=value) if self.varies(value):
                self.varying.add(var)
            case ir.Assign(var=var) if differs:
                self.varying.add(var)
            case ir.Store(memory=ir.Array() as array) if differs:
                self.varying.add(array)
            case ir.Atomic(memory=memory, var=var):
                self.varying |= {s for s in (memory, var) if isinstance(s, (ir.Var, ir.Array))}
            case ir.Collective(var=var) if not self._is_common(stmt):
                self.varying.add(var)
            case ir.If():
                self._each(stmt, cause or (stmt if differs else None))
            case ir.For(var=counter):
                left = cause or self._left(stmt) or (stmt if differs else None)
                if left is not None:
                    self.varying.add(counter)
                self._each(stmt, left)
            case ir.While():
                self._each(stmt, cause or self._left(stmt) or (stmt if self.varies(stmt.cond) else None))
            case ir.Let() | ir.Assign() | ir.Store() | ir.Declare() | ir.Write() | ir.Collective():
                pass
            case ir.Barrier() | ir.Print() | ir.Assert() | ir.Comment():
                pass
            case ir.Break() | ir.Continue():
                pass  # `_left` looks for them from the loop
            case ir.Wide():
                raise AssertionError("uniformity is a question about the recorded form")
            case _:
                ir.assert_never(stmt)

    def _is_common(self, stmt: ir.Collective) -> bool:
        """Return whether all threads get the same value from a collective."""
        everywhere = not stmt.over or self.several <= {stmt.over}
        return stmt.kind in ("reduce", "ballot", "select", "broadcast") and everywhere and not self.grid

    def _each(self, stmt: ir.Stmt, cause: ir.Stmt | None) -> None:
        for block in blocks(stmt):
            self._block(block, cause)

    def _left(self, loop: ir.For | ir.While) -> ir.Stmt | None:
        """The break or continue that not all threads take together: from then on they are in different iterations."""
        return next((self.divergent[id(s)] for s in leaving(blocks(loop)[-1]) if id(s) in self.divergent), None)
