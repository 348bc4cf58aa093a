"""Pointwise kernels of arrays whose points' elements alternate in memory, on grids of fewer axes.

Where each element is computed from that element alone, elements count as points of a row, so nothing is taken apart. Where arrays
have no gaps and threads use no positions, the grid is one row, in which accesses are aligned whatever the columns.

    6 columns of 3 elements     r g b r g b r g b r g b r g b r g b      18 columns
"""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir import nodes as ir
from gpuop.ir.axis_limit import MOST_COUNTED
from gpuop.ir.kernel import Kernel
from gpuop.ir.layout import Layout, row_major
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import FieldType, Shape
from gpuop.ir.visit import Copier, expressions
from gpuop.passes.coarsening_factor import is_own, others_points
from gpuop.passes.flat_grid import output_of
from gpuop.passes.scalarize import by_element


def flat_points(kernel: Kernel) -> Kernel:
    if _refused(kernel):
        return kernel
    own = _own(kernel)
    single = by_element(kernel) if _all_alternate(kernel, own) else None
    contiguous = all(_is_contiguous(kernel, field) for field in own)
    count = own[0].type.planes if single is not None else 1
    is_row = contiguous and kernel.domain.shape.points * count <= MOST_COUNTED
    if not is_row and single is None:
        return kernel
    shape = kernel.domain.shape
    shape = Shape(shape.points * count) if is_row else Shape(*shape[:-1], shape[-1] * count)
    fields = {field: _field(field, shape, single is not None) for field in own}
    source = kernel if single is None else single
    layouts = {field: _layout(kernel.layout(field), single is not None, is_row) for field, _ in kernel.layouts}
    return replace(
        source,
        inputs=tuple(fields.get(field, field) for field in source.inputs),
        outputs=tuple(output_of(o, fields) for o in source.outputs),
        body=_Flat(source.body, fields, single is not None).copy(),
        domain=Domain(shape),
        layouts=tuple((fields[field], layout) for field, layout in layouts.items()),
    )


def _refused(kernel: Kernel) -> bool:
    """Return whether a kernel has no such array, or its threads do more than to compute their own points."""
    if kernel.target is None or kernel.layouts_in_rows or kernel.named or kernel.dynamic or kernel.intermediates:
        return True
    placed = any(isinstance(e, ir.Index) and e.axis in ir.GRID_AXES for e in expressions(kernel.body))
    beside = any(field not in _own(kernel) for field, _ in kernel.layouts)
    return placed or beside or kernel.domain.elements > 1 or kernel.whole or bool(others_points(kernel))


def _own(kernel: Kernel) -> list[ir.FieldParam]:
    shape = kernel.domain.shape
    return [f for f in (*kernel.inputs, *kernel.written) if is_own(f) and f.type.field_shape == shape]


def _all_alternate(kernel: Kernel, own: list[ir.FieldParam]) -> bool:
    """Return whether all fields of the grid alternate, with as many elements, and no other field has several."""
    others = [field for field in kernel.inputs if field not in own]
    alike = len({field.type.planes for field in own}) == 1
    return alike and all(kernel.layout(f).alternates(f.type) for f in own) and all(f.type.planes == 1 for f in others)


def _is_contiguous(kernel: Kernel, field: ir.FieldParam) -> bool:
    """Return whether the points of a field lie one behind another."""
    layout = kernel.layout(field)
    return layout.point == tuple(n * layout.point[-1] for n in row_major(field.type.field_shape))


def _field(field: ir.FieldParam, shape: Shape, single: bool) -> ir.FieldParam:
    kind = field.type
    new = FieldType(shape, (), kind.storage.name) if single else FieldType(shape, kind.tensor_shape, kind.dtype)
    return ir.FieldParam(field.hint, new)


def _layout(layout: Layout, single: bool, is_row: bool) -> Layout:
    along = 1 if single else layout.point[-1]
    point = (along,) if is_row else (*layout.point[:-1], along)
    return replace(layout, point=point, element=0 if single else layout.element)  # there is one element


class _Flat(Copier):
    """Copies a body with other fields; a thread's own element is a point of these if `single`."""

    def __init__(self, body: ir.Block, fields: dict[ir.FieldParam, ir.FieldParam], single: bool) -> None:
        super().__init__(body, fields=fields)
        self.single = single

    def expr(self, expr: ir.Expr) -> ir.Expr:
        copied = super().expr(expr)
        return replace(copied, element=None) if self.single and isinstance(copied, ir.Read) else copied

    def stmt(self, stmt: ir.Stmt) -> ir.Block:
        (copied,) = super().stmt(stmt)
        return (replace(copied, element=None) if self.single and isinstance(copied, ir.Write) else copied,)
