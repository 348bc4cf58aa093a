"""Flattening of a grid and its fields to one axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.nodes import FieldParam
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import FieldType, Shape
from gpuop.ir.visit import Copier, updated
from gpuop.passes.coarsening_factor import is_own


def flat(kernel: Kernel) -> Kernel:
    """A kernel that uses no positions, on a grid of one axis."""
    # fields that are updated at explicit coordinates keep their axes
    own = [f for f in (*kernel.inputs, *kernel.written) if is_own(f) and f.type.field_shape == kernel.domain.shape]
    fields = {field: flat_field(field) for field in own if field not in updated(kernel.body)}
    return replace(
        kernel,
        inputs=tuple(fields.get(field, field) for field in kernel.inputs),
        outputs=tuple(output_of(o, fields) for o in kernel.outputs),
        body=Copier(kernel.body, fields=fields).copy(),
        domain=Domain(Shape(kernel.domain.shape.points), kernel.domain.elements),
        dynamic=frozenset(fields.get(field, field) for field in kernel.dynamic),
        extents=tuple(sorted({*kernel.extents, kernel.domain.shape.points})) if kernel.extents else (),
    )


def output_of(output: Output, fields: Mapping[FieldParam, FieldParam]) -> Output:
    """An output with its fields replaced."""
    over, begins = (each and fields.get(each, each) for each in (output.over, output.initial))
    return replace(output, param=fields.get(output.param, output.param), over=over, initial=begins)


def flat_field(field: FieldParam) -> FieldParam:
    kind = field.type
    return FieldParam(field.hint, FieldType(kind.field_shape.points, kind.tensor_shape, kind.dtype))
