"""Recomputation: the body of a producer is inlined where a consumer reads its value, instead of a load from memory."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from gpuop.ir.borders import Coordinate, inside, place
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import GRID_AXES, Block, Const, Expr, FieldParam, Index, Let, Read, Ref, Stmt, Write
from gpuop.ir.types import INT, Type
from gpuop.ir.visit import Copier, effects, expressions, fields_read, walk
from gpuop.passes.scalarize import ELEMENT, by_element, element_reads

Point = tuple[Expr, ...]


def is_pure(kernel: Kernel) -> bool:
    """Return whether any thread may recompute the value of another: one output, written at own points, and no other effect."""
    writes = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Write)]
    element = ELEMENT if kernel.domain.elements > 1 else None
    whole = element is None or all(out.type.planes == kernel.domain.elements for out in kernel.written)
    alone = len(writes) == 1 and writes[0] in kernel.body and writes[0].point is None and writes[0].element == element
    own = kernel.group is None and not kernel.intermediates and not kernel.shared("constant")
    return alone and whole and own and not effects(kernel.body)


def fits(consumer: Kernel, param: FieldParam, producer: Kernel) -> bool:
    """Return whether the (pure) producer computes what the consumer reads: a tensor, or any one of its elements."""
    if any(output.initial is param for output in consumer.outputs):
        return False  # it lies in memory before any thread begins
    if producer.domain.elements > 1:
        reads = (e for e in expressions(consumer.body) if isinstance(e, Read) and e.field is param)
        return all(read.element is not None for read in reads)
    return param.type.planes == 1 or not any(element_reads(consumer, param)) or by_element(producer) is not None


def inline(consumer: Kernel, param: FieldParam, producer: Kernel, dynamic: bool = False) -> Kernel:
    """The consumer with the body of the (pure) producer wherever it reads a parameter.

    Args:
        dynamic: whether extents are not to become constants.
    """
    body = _Inlining(consumer, param, producer, dynamic and producer.domain == consumer.domain).copy()
    fields = fields_read(body)
    inputs = [p for p in (*consumer.inputs, *producer.inputs) if p in fields]
    return replace(consumer, inputs=tuple(dict.fromkeys(inputs)), body=body)


def needs_extents(consumer: Kernel, params: Container[FieldParam], producer: Kernel) -> bool:
    """Return whether a producer on another grid needs extents at the consumer's reads: for borders, or where it asks for them."""
    used = [e for e in expressions(producer.body) if isinstance(e, (Index, Read))]
    if any(e.kind == "global_size" if isinstance(e, Index) else e.point and e.border != "unchecked" for e in used):
        return True
    placed = any(e.point is not None if isinstance(e, Read) else e.axis != "element" for e in used)
    reads = (e for e in expressions(consumer.body) if isinstance(e, Read) and e.field in params)
    return placed and any(read.border != "unchecked" for read in reads)


class _Inlining(Copier):
    def __init__(self, consumer: Kernel, param: FieldParam, producer: Kernel, open_: bool) -> None:
        super().__init__(consumer.body)
        self.consumer, self.param, self.producer, self.open = consumer, param, producer, open_

    def stmt(self, stmt: Stmt) -> Block:
        value = getattr(stmt, "value", None)
        if not isinstance(stmt, Let) or not isinstance(value, Read) or value.field is not self.param:
            return super().stmt(stmt)
        out: list[Stmt] = []
        result = self.evaluated(value, out, collector(out, stmt.loc))
        out.append(Let(self.vars[stmt.var], result, stmt.loc))
        return tuple(out)

    def evaluated(self, read: Read, out: list[Stmt], b: Builder) -> Expr:
        """The recomputed value of a read."""
        point = None if read.point is None else tuple(map(self.expr, read.point))
        element = None if read.element is None else self.expr(read.element)
        computed = element is not None and not isinstance(element, Const)
        producer = (by_element(self.producer) if computed else None) or self.producer
        site = _Site(self.consumer, producer, replace(read, element=element), point, b, self.open)
        out += site.copy()
        value = site.value
        assert value is not None
        if read.border == "fill" and point is not None and read.fill is not None:
            test = b.all_of([inside(b, c) for c in site.coordinates])
            value = value if test is None else b.apply("choose", test, value, read.fill)
        if isinstance(read.element, Const) and value.type.lanes > 1:
            value = b.lane(value, int(read.element.value))
        return value


class _Site(Copier):
    """Copies the body of the producer for one read: its own point is the point that is read."""

    def __init__(self, consumer: Kernel, producer: Kernel, read: Read, point: Point | None, b: Builder, open_: bool):
        super().__init__(producer.body)
        self.producer, self.point, self.element, self.open = producer, point, read.element, open_
        self.border = "clamp" if read.border == "fill" else read.border
        self.value: Expr | None = None
        self.coordinates = _coordinates(consumer, read.field, point or (), open_)
        self.indices: dict[Index, Expr] = {}
        indices = {e for e in expressions(producer.body) if isinstance(e, Index)}
        placed = any(index.axis != "element" for index in indices)
        placed |= any(isinstance(e, Read) and e.point is not None for e in expressions(producer.body))
        if point is not None and placed:  # the producer uses its position or neighbours: the border comes first
            self.point = tuple(place(b, c, self.border) for c in self.coordinates)
            self.border = "unchecked"
        for index in sorted(indices, key=str):
            self.indices[index] = self.index(index, b)

    def index(self, index: Index, b: Builder) -> Expr:
        if index.kind == "global_size" and self.open:
            return index
        if index.kind == "global_size":
            return constant(self.producer.domain.extent(index.axis), INT)
        axes = self.producer.domain.axes
        if index == ELEMENT and self.element is not None:
            return self.element
        if index.kind != "global" or self.point is None or index.axis not in axes:
            return index
        return b.apply("add", self.point[axes.index(index.axis)], index.offset)

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Index):
            return self.indices.get(expr, expr)
        copied = super().expr(expr)
        moves = isinstance(copied, Read) and copied.point is None and copied.field.type.field_shape
        if isinstance(copied, Read) and moves and self.point is not None:
            return replace(copied, point=self.point, border=self.border)
        return copied

    def stmt(self, stmt: Stmt) -> Block:
        (copied,) = super().stmt(stmt)
        if not isinstance(copied, Write):
            return (copied,)
        if isinstance(copied.value, Ref) and copied.value.var.mutable:  # it may be assigned again after the write
            copy = replace(copied.value.var, mutable=False)
            self.value = Ref(copy)
            return (Let(copy, copied.value, copied.loc),)
        self.value = copied.value
        return ()


def _coordinates(kernel: Kernel, field: FieldParam, point: Sequence[Expr], open_: bool) -> list[Coordinate]:
    """The coordinates of a point; extents are those of the kernel's grid if they are `open`."""
    out = []
    axes = GRID_AXES[3 - len(field.type.field_shape) :]
    for at, n, axis in zip(point, field.type.field_shape, axes, strict=False):
        low, high = kernel.bounds(at) if isinstance(at, Index) else (None, None)
        if isinstance(at, Const):
            low = high = int(at.value)
        extent = Index("global_size", axis) if open_ else Const(n, Type(INT))
        out.append(Coordinate(at, extent, n, low, high))
    return out
