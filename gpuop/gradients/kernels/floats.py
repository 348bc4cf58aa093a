"""bfloat16 in derivatives: fields of float32 in its place, so that shares are added in float32, and rounded at the end."""

from __future__ import annotations

from collections.abc import Iterable

from gpuop.base.lru import BoundedCache
from gpuop.dsl.fields.field import Field
from gpuop.ir.bfloat16 import BFLOAT16
from gpuop.ir.kernel import Kernel
from gpuop.ir.text import identity
from gpuop.ir.values import Call, Node
from gpuop.ops.elementwise.algebra import astype
from gpuop.passes.bfloat16_bits import bfloat16_as_float, has_bfloat16

MOST_KERNELS = 1024
_kernels: BoundedCache[Kernel, tuple[Kernel, str]] = BoundedCache(MOST_KERNELS)


def in_floats(call: Call, kernel: Kernel) -> tuple[Call, Kernel]:
    """A call of a kernel, on floats in the place of bfloat16; writes round to these no more, whose slope is taken to be 1."""
    if not has_bfloat16(kernel):
        return call, kernel
    wide, name = _kernels.find(kernel, lambda: _widened(kernel))
    return Call(wide, name, tuple(as_floats(call.inputs)), call.loc), wide


def _widened(kernel: Kernel) -> tuple[Kernel, str]:
    wide = bfloat16_as_float(kernel)
    return wide, identity(wide)


def as_floats(nodes: Iterable[Node]) -> list[Node]:
    """Values, those of bfloat16 as float32."""
    return [as_float(Field.of(node)).node if node.type.dtype == BFLOAT16 else node for node in nodes]


def as_float(field: Field) -> Field:
    """A field, as float32 if it is one of bfloat16."""
    return astype(field, "float32") if field.dtype == BFLOAT16 else field


def rounded_as(field: Field, like: Node) -> Field:
    """A derivative in the dtype of the value that it belongs to, if that is bfloat16."""
    return astype(field, BFLOAT16) if like.type.dtype == BFLOAT16 else field
