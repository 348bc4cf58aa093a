"""Scalarization: kernels of small tensors become kernels of tensor elements, for consumers that read single elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpuop.ir import nodes as ir
from gpuop.ir.kernel import Kernel
from gpuop.ir.target_expressions import TargetConst
from gpuop.ir.thread_grid import Domain
from gpuop.ir.visit import Copier, expressions, walk

ELEMENT = ir.Index("global", "element")


def by_element(kernel: Kernel) -> Kernel | None:
    """The (pure) kernel with a thread for each element of its tensors; None where an element depends on others.

    All operators work component by component, so only statements that take vectors apart prevent this.
    """
    lanes = kernel.outputs[0].param.type.planes
    takes_apart = any(
        e.element is not None if isinstance(e, ir.Read) else isinstance(e, (ir.Lane, ir.Pack, ir.Load, TargetConst))
        for e in expressions(kernel.body)
    )
    odd = any(
        stmt.var.type.lanes not in (1, lanes) for stmt in walk(kernel.body) if isinstance(stmt, (ir.Let, ir.Assign))
    )
    if kernel.domain.elements > 1 or lanes == 1 or takes_apart or odd:
        return None
    return replace(kernel, body=_Scalars(kernel.body).copy(), domain=Domain(kernel.domain.shape, lanes))


class _Scalars(Copier):
    """Copies a body with a component instead of each vector."""

    def __init__(self, block: ir.Block) -> None:
        super().__init__(block)
        for var, copied in self.vars.items():
            self.vars[var] = replace(copied, type=copied.type.scalar)

    def expr(self, expr: ir.Expr) -> ir.Expr:
        copied = super().expr(expr)
        if isinstance(copied, ir.Read):
            element = ELEMENT if copied.type.lanes > 1 else None
            return replace(copied, type=copied.type.scalar, element=element)
        if isinstance(copied, (ir.Apply, ir.Bits)):
            return replace(copied, type=copied.type.scalar)
        if isinstance(copied, ir.Cast):
            single = replace(copied, type=copied.type.scalar)
            return single.arg if single.arg.type == single.type else single
        return copied

    def stmt(self, stmt: ir.Stmt) -> ir.Block:
        (copied,) = super().stmt(stmt)
        return (replace(copied, element=ELEMENT),) if isinstance(copied, ir.Write) else (copied,)


def element_reads(kernel: Kernel, field: ir.FieldParam) -> Iterator[bool]:
    """Yield, for each read of a field, whether the index of its element is computed."""
    for expr in expressions(kernel.body):
        if isinstance(expr, ir.Read) and expr.field is field:
            yield expr.element is not None and not isinstance(expr.element, ir.Const)
