"""A kernel for a window of its grid: positions are those in the whole grid, reads stay in the window.

whole grid   0 ········ origin ──────── window ──────── ·········· extent
in window               0    first ─ wanted ─ last    extent of the window
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeAlias

from gpuop.base.records import dataclass
from gpuop.fusion.windows.halo_inference import Margin
from gpuop.fusion.windows.index_halo import IndexHalo, group_of
from gpuop.fusion.windows.partial_updates import combining_monoids
from gpuop.ir.axis_limit import check_position
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.dead_code import without_dead_code
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Atomic, Block, Const, Effect, Expr, FieldParam, If, Index, Let, Read, Ref, Stmt, Var, While
from gpuop.ir.types import BOOL, INT, FieldType, Shape, Type
from gpuop.ir.visit import Copier, fields_read, map_blocks, map_values, with_operands

NUMBER = FieldType((), (), "int32")
Name: TypeAlias = tuple[str, int]  # the kind of a window's number, "origin", "first" or "last"; and its axis


@dataclass(frozen=True)
class WindowExtents:
    """The extents of a window of a grid.

    Attributes:
        whole: the extents of the grid.
        window: the extents of the window.
        cut: the axes along which the window is not the whole grid.
        periodic: those of them that are periodic.
        partial: the axes along which not the whole grid is wanted, though windows may have it.
    """

    whole: Shape
    window: Shape
    cut: frozenset[int]
    periodic: frozenset[int]
    partial: frozenset[int]


@dataclass(frozen=True)
class WindowedKernel:
    """A kernel and the numbers that it takes by value as its last inputs, in this order."""

    kernel: Kernel
    numbers: tuple[Name, ...]


def window_kernel(
    kernel: Kernel, extents: WindowExtents, cut: Collection[FieldParam], margin: Margin
) -> WindowedKernel:
    """Make the kernel of a window.

    Args:
        cut: the inputs that come in windows. All outputs do, except those that threads update: they hold the window's part.
        margin: the halo of its results around the wanted points.
    """
    updates = combining_monoids(kernel)
    own = [param for param in kernel.written if param not in updates]
    fields = {param: _part(param, extents.window) for param in (*cut, *own)}
    copier = _WindowCopier(kernel, extents, fields, margin)
    body = copier.block(kernel.body)
    domain = replace(kernel.domain, shape=extents.window)
    outputs = tuple(
        replace(
            o,
            param=fields.get(o.param, o.param),
            fill=0 if o.param in updates and not updates[o.param].idempotent else o.fill,
            over=None if o.over is None else fields.get(o.over, o.over),
        )
        for o in kernel.outputs
    )
    result = without_dead_code(
        replace(
            kernel,
            domain=domain,
            body=(*copier.head, *body),
            inputs=tuple(fields.get(p, p) for p in kernel.inputs),
            outputs=outputs,
            dynamic=frozenset(fields.get(p, p) for p in kernel.dynamic),
        )
    )
    used = fields_read(result.body)
    numbers = tuple(name for name, param in copier.numbers.items() if param in used)
    inputs = (*result.inputs, *(copier.numbers[name] for name in numbers))
    return WindowedKernel(replace(result, inputs=inputs), numbers)


def _part(param: FieldParam, window: Shape) -> FieldParam:
    return replace(param, type=param.type.replace(field_shape=window))


class _WindowCopier(Copier):
    """Copies a body. Values that depend on positions are computed twice: in the whole grid, and in the window for reads.

    Attributes:
        numbers: the window's numbers, by name.
        head: the statements that compute numbers and positions.
        place, groups: positions in the whole grid, and those of work-groups, by axis.
        local: for variables that are a position plus a constant or a counter, the variables of the window.
    """

    def __init__(
        self, kernel: Kernel, extents: WindowExtents, fields: Mapping[FieldParam, FieldParam], margin: Margin
    ) -> None:
        super().__init__(kernel.body, fields=dict(fields))
        self.kernel, self.extents, self.margin = kernel, extents, margin
        self.near = IndexHalo(kernel)
        self.axes = kernel.domain.axes
        self.numbers: dict[Name, FieldParam] = {}
        self.bounded: dict[Name, Expr] = {}
        self.head: list[Stmt] = []
        self.pending: list[Stmt] = []
        self.place: dict[int, Expr] = {}
        self.groups: dict[int, Expr] = {}
        self.local: dict[Var, Var] = {}
        self.within: Expr | None = None

    # --- positions --------------------------------------------------------------------------------------------------

    def _number(self, what: str, axis: int) -> Expr:
        """A number of the window, clamped to its range, which the kernel knows."""
        name = what, axis
        if name not in self.numbers:
            param = self.numbers[name] = FieldParam(f"{what}_{self.axes[axis]}", NUMBER, by_value=True)
            b = collector(self.head)
            if what == "origin":
                check_position(self.kernel.name, self.extents.whole[axis], self.kernel.loc)
            most = self.extents.whole[axis] - 1 if what == "origin" else self.extents.window[axis]
            self.bounded[name] = b.apply("max", b.apply("min", b.bind(Read(param, Type(INT))), most), 0)
        return self.bounded[name]

    def _position(self, axis: int) -> Expr:
        """The thread's position in the whole grid."""
        if axis not in self.place:
            origin, b = self._number("origin", axis), collector(self.head)
            at = b.apply("add", Index("global", self.axes[axis]), origin)
            if axis in self.extents.periodic:
                at = b.apply("mod", at, self.extents.whole[axis])
            self.place[axis] = at
        return self.place[axis]

    def _group(self, axis: int, size: int) -> Expr:
        """The number of the thread's work-group in the whole grid."""
        if axis not in self.groups:
            origin, b = self._number("origin", axis), collector(self.head)
            at = b.apply("add", Index("group", self.axes[axis]), b.apply("div", origin, size))
            if axis in self.extents.periodic:
                at = b.apply("mod", at, self.extents.whole[axis] // size)
            self.groups[axis] = at
        return self.groups[axis]

    def _is_within(self) -> Expr:
        """The condition that the thread's point is wanted."""
        if self.within is None:
            self.within = self._between([(0, 0)] * len(self.axes), self.extents.partial)
        return self.within

    def _between(self, margin: Collection[tuple[int, int]], axes: frozenset[int]) -> Expr:
        result: Expr = constant(True, BOOL)
        for axis, (before, after) in enumerate(margin):
            if axis in axes:
                first, last = self._number("first", axis), self._number("last", axis)
                b = collector(self.head)
                at = self._first(axis, b)
                inside = b.apply(
                    "and",
                    b.apply("ge", at, b.apply("sub", first, before)),
                    b.apply("lt", at, b.apply("add", last, after)),
                )
                result = inside if isinstance(result, Const) else b.apply("and", result, inside)
        return result

    def _first(self, axis: int, b: Builder) -> Expr:
        """The thread's position in the window, or the first one of its work-group, which is wanted wholly or not at all."""
        name, size = self.axes[axis], group_of(self.kernel, self.axes[axis])
        return Index("global", name) if size == 1 else b.apply("mul", Index("group", name), size)

    # --- statements -------------------------------------------------------------------------------------------------

    def stmt(self, stmt: Stmt) -> Block:
        above, self.pending = self.pending, []
        self.near.meet(stmt)
        local = self._local(stmt) if isinstance(stmt, Let) else ()
        result = map_values(stmt, self.expr)
        before, self.pending = self.pending, above
        result = self.renamed(map_blocks(result, self.block))
        if isinstance(result, While):
            result = self._while(result)
        observable = result.effect & Effect.HOST or (
            isinstance(result, Atomic) and isinstance(result.memory, FieldParam)
        )
        if observable and self.extents.partial:
            result = If(self._is_within(), (result,), (), result.loc)
        return (*local, *before, result)

    def _while(self, loop: While) -> Stmt:
        """End the loop for points outside of the halo: their inputs are arbitrary, and the loop might not end."""
        if not self.extents.cut:
            return loop
        out: list[Stmt] = []
        cond = collector(out, loop.loc).apply("and", loop.cond, self._between(self.margin, self.extents.cut))
        return replace(loop, head=(*loop.head, *out), cond=cond)

    def _local(self, stmt: Let) -> Block:
        """The statement for the window, of a variable that is a position plus an offset."""
        near = self.near.offsets.get(stmt.var)
        axis = None if near is None else self.axes.index(near.axis)
        if axis is None or axis not in self.extents.cut or stmt.var.mutable or not self._adds(stmt.value):
            return ()
        self.local[stmt.var] = Var(stmt.var.hint, stmt.var.type, temporary=stmt.var.temporary)
        return (replace(stmt, var=self.local[stmt.var], value=self._in_window(stmt.value)),)

    def _adds(self, value: Expr) -> bool:
        """Return whether a value is a position, or one plus or minus values without a position."""
        match value:
            case Index(kind=kind):
                return kind == "global"
            case Ref(var=var):
                return var in self.local
        is_sum = getattr(value, "op", "") in ("add", "sub") and value.type == Type(INT)
        return is_sum and any(self._adds(a) for a in value.args if isinstance(a, (Index, Ref)))  # type: ignore[union-attr]

    def _in_window(self, expr: Expr) -> Expr:
        if isinstance(expr, Index):
            return expr if expr.kind == "global" else self.expr(expr)
        if isinstance(expr, Ref) and expr.var in self.local:
            return Ref(self.local[expr.var])
        return self.expr(expr) if isinstance(expr, Ref) else with_operands(expr, self._in_window)

    # --- expressions ------------------------------------------------------------------------------------------------

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Index) and expr.axis in self.axes:
            return self._index(expr)
        if isinstance(expr, Read):
            return self._read(expr)
        return super().expr(expr)

    def _index(self, index: Index) -> Expr:
        axis = self.axes.index(index.axis)
        size = group_of(self.kernel, index.axis)
        if index.kind == "global_size":
            return constant(self.extents.whole[axis], INT)
        if axis not in self.extents.cut or index.kind in ("local", "local_size"):
            return index
        if index.kind == "group_count":
            return constant(-(-self.extents.whole[axis] // size), INT)
        at = self._position(axis) if index.kind == "global" else self._group(axis, size)
        return self._builder.apply("add", at, index.offset) if index.offset else at

    @property
    def _builder(self) -> Builder:
        return collector(self.pending)

    def _read(self, read: Read) -> Expr:
        """A read: windows at positions in the window, other fields at positions in the whole grid."""
        element = None if read.element is None else self.expr(read.element)
        read = replace(read, element=element)
        if read.field not in self.fields:
            if read.point is None and read.field.type.field_shape and not read.field.by_value:
                own = tuple(Index("global", axis) for axis in self.axes)
                return replace(read, point=tuple(map(self.expr, own)), border="unchecked")
            return replace(read, point=None if read.point is None else tuple(map(self.expr, read.point)))
        point = None if read.point is None else tuple(self._coordinate(a, e) for a, e in enumerate(read.point))
        border = "clamp" if read.border == "unchecked" and self.extents.cut else read.border
        return replace(read, field=self.fields[read.field], point=point, border=border)

    def _coordinate(self, axis: int, at: Expr) -> Expr:
        """A coordinate of a window."""
        if axis not in self.extents.cut:
            return self.expr(at)
        is_index = isinstance(at, Index) and at.kind == "global"
        if is_index or (isinstance(at, Ref) and at.var in self.local):
            return self._in_window(at)
        b = self._builder
        if axis in self.extents.periodic:
            return b.apply("add", b.apply("sub", self.expr(at), self._position(axis)), Index("global", self.axes[axis]))
        return b.apply("sub", self.expr(at), self._number("origin", axis))
