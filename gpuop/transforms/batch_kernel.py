"""A recorded kernel over a batch: the same body for each entry of one more leading axis of its grid.

Axes are named from the last one on, so positions in a grid of up to two axes are the same, and the batch is the axis before them.
Grids of three axes have no room for one more: layers of all entries are one axis, as those of fields with more dimensions are, and
the body has its own layer by a remainder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuop.base.errors import SemanticError
from gpuop.ir import nodes as ir
from gpuop.ir.axis_limit import check_axes
from gpuop.ir.borders import Coordinate, inside
from gpuop.ir.borders import place as nearest
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.dead_code import without_dead_code
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import INT, MOST_GRID, FieldType, Shape, Type
from gpuop.ir.verify import Form, verify
from gpuop.ir.visit import Copier

LAYER = ir.Index("global", "layer")


def batched_type(kind: FieldType, count: int) -> FieldType:
    """The type of so many fields of a type, along a new first axis."""
    names = ["", *kind.names] if kind.names else ()
    result = FieldType((count, *kind.field_shape), kind.tensor_shape, kind.dtype)
    return result.labelled(names) if names else result


def batched_param(param: ir.FieldParam, count: int) -> ir.FieldParam:
    """The field of a kernel for so many of it."""
    kind = batched_type(param.type, count).folded
    check_axes(kind)
    return ir.FieldParam(param.hint, kind)


def batched_kernel(kernel: Kernel, inputs: Sequence[bool], count: int) -> Kernel:
    """The kernel for so many entries at once.

    Args:
        inputs: whether each of its inputs is another field for each entry. Those that outputs start from are.

    Raises:
        SemanticError: its work-groups would have points of several entries.
    """
    fields = {p: batched_param(p, count) for p, own in zip(kernel.inputs, inputs, strict=True) if own}
    fields |= {p: batched_param(p, count) for p in kernel.written}
    body = _Entries(kernel, fields, count).copy()
    outputs = tuple(_output(output, fields) for output in kernel.outputs)
    result = replace(
        kernel,
        inputs=tuple(fields.get(p, p) for p in kernel.inputs),
        outputs=outputs,
        domain=_domain(kernel, count),
        body=body,
        dynamic=frozenset(fields.get(p, p) for p in kernel.dynamic),
    )
    return verify(without_dead_code(result), Form.RECORDED)


def _output(output: Output, fields: dict[ir.FieldParam, ir.FieldParam]) -> Output:
    """An output of the batch; what entries share is not overwritten."""
    over = fields.get(output.over) if output.over is not None else None
    initial = fields[output.initial] if output.initial is not None else None
    return replace(output, param=fields[output.param], over=over, initial=initial)


def _domain(kernel: Kernel, count: int) -> Domain:
    grid = kernel.domain.shape
    shape = Shape(count * grid[0], *grid[1:]) if len(grid) == MOST_GRID else Shape(count, *grid)
    return Domain(shape, kernel.domain.elements)


class _Entries(Copier):
    """Copier of a body into one whose threads are those of all entries."""

    def __init__(self, kernel: Kernel, fields: dict[ir.FieldParam, ir.FieldParam], count: int) -> None:
        super().__init__(kernel.body, fields=fields)
        self.kernel, self.folds = kernel, len(kernel.domain.shape) == MOST_GRID
        self.layers = kernel.domain.extent("layer")
        self.before: list[ir.Stmt] = []  # what the statement that is copied needs
        self._check_groups()
        if self.folds:
            self.entry: ir.Expr = ir.Ref(ir.Var("entry", Type(INT)))
            self.layer: ir.Expr = ir.Ref(ir.Var("layer", Type(INT)))
        else:
            self.entry = ir.Index("global", Domain(Shape(count, *kernel.domain.shape)).axes[0])

    def _check_groups(self) -> None:
        """Refuse work-groups that are of several entries, or of others than they were."""
        kernel, axis = self.kernel, MOST_GRID - len(self.kernel.domain.shape) - 1
        if kernel.group is None:
            return
        size = kernel.group[max(axis, 0)]
        whole = isinstance(size, int) and self.layers % size == 0 if self.folds else size == 1
        if not whole or (kernel.domain.elements > 1 and kernel.group[0] != 1):
            name = ir.GRID_AXES[max(axis, 0)]
            raise SemanticError(
                f"operator `{kernel.name}` has work-groups of {size} {name}s, which would lie in several entries of the batch of "
                f"`gp.vmap`: give work-groups of one {name} by `_localThreads`, or loop over the entries",
                kernel.loc,
            )

    def copy(self) -> ir.Block:
        body = super().copy()
        if not self.folds:
            return body
        assert isinstance(self.entry, ir.Ref) and isinstance(self.layer, ir.Ref)
        out: list[ir.Stmt] = []
        layers = constant(max(self.layers, 1), INT)
        out.append(ir.Let(self.entry.var, ir.Apply("div", (LAYER, layers), Type(INT))))
        out.append(ir.Let(self.layer.var, ir.Apply("mod", (LAYER, layers), Type(INT))))
        return (*out, *body)

    # --- statements and expressions ---------------------------------------------------------------------------------

    def stmt(self, stmt: ir.Stmt) -> ir.Block:
        outer, self.before = self.before, []
        copied: ir.Stmt
        match stmt:
            case ir.Write(field=field, point=point) if point is not None:
                at = self.place(field, point, "fill")
                element = None if stmt.element is None else self.expr(stmt.element)
                copied = self.renamed(replace(stmt, value=self.expr(stmt.value), point=at, element=element))
            case ir.Atomic(memory=ir.FieldParam() as field, index=index, op=op):
                at = self.place(field, index, "clamp" if op == "read" else "fill")
                args = tuple(map(self.expr, stmt.args))
                element = None if stmt.element is None else self.expr(stmt.element)
                copied = self.renamed(replace(stmt, index=at, args=args, element=element))
            case _:
                (copied,) = super().stmt(stmt)
        result, self.before = (*self.before, copied), outer
        return result

    def expr(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Read):
            point, border = self.read_place(expr)
            return (
                super().expr(replace(expr, point=None, border=border))
                if point is None
                else self.at(expr, point, border)
            )
        return self.position(expr) if self.folds and isinstance(expr, ir.Index) else super().expr(expr)

    def at(self, read: ir.Read, point: tuple[ir.Expr, ...], border: str) -> ir.Expr:
        """A read at a point of the batch."""
        copied = super().expr(replace(read, point=None, border=border))
        assert isinstance(copied, ir.Read)
        return replace(copied, point=point)

    # --- places ---------------------------------------------------------------------------------------------------

    def read_place(self, read: ir.Read) -> tuple[tuple[ir.Expr, ...] | None, str]:
        """The point of a read, and its border; None is the own point of the batch, or the only one that there is."""
        field, grid = read.field, self.kernel.domain.shape
        if read.point is not None:
            return self.place(field, read.point, read.border), read.border
        if field in self.fields:
            return (None if field.type.field_shape or not grid else (self.entry,)), read.border
        if not field.type.field_shape:
            return None, read.border
        own = (self.expr(ir.Index("global", axis)) for axis in self.kernel.domain.axes)
        return tuple(own), "unchecked" if self.folds else read.border

    def place(self, field: ir.FieldParam, point: tuple[ir.Expr, ...], border: str) -> tuple[ir.Expr, ...]:
        """A point of this entry of a field, or of one that entries share."""
        at, grid = tuple(map(self.expr, point)), field.type.field_shape
        if field not in self.fields:
            return at
        if len(grid) < MOST_GRID:
            return (self.entry, *at)
        return (self.layer_of(point[0], at[0], grid[0], border), *at[1:])

    def layer_of(self, recorded: ir.Expr, at: ir.Expr, layers: int, border: str) -> ir.Expr:
        """The layer among those of all entries; outside of the field it is outside of all, or where the border says."""
        if self.folds and recorded == LAYER and layers == self.layers:
            return LAYER
        b, (low, high) = self.builder, self.range(recorded)
        along = Coordinate(at, constant(layers, INT), layers, low, high)
        first = b.apply("mul", self.entry, layers)
        if border != "fill":
            return b.apply("add", first, nearest(b, along, border))
        test, there = inside(b, along), b.apply("add", first, at)
        return there if test is None else b.apply("choose", test, there, -1)

    def range(self, recorded: ir.Expr) -> tuple[int | None, int | None]:
        """The least and the greatest value of a coordinate, where they are known."""
        if isinstance(recorded, ir.Const):
            return int(recorded.value), int(recorded.value)
        return self.kernel.bounds(recorded) if isinstance(recorded, ir.Index) else (None, None)

    def position(self, index: ir.Index) -> ir.Expr:
        """A position or an extent along layers, in this entry."""
        if index.axis != "layer" or index.kind.startswith("local"):
            return index
        if index.kind == "global":
            return self.builder.apply("add", self.layer, index.offset) if index.offset else self.layer
        if index.kind == "global_size":
            return constant(self.layers, INT)
        groups = self.layers // int(self.kernel.work_group[0])
        return (
            constant(groups, INT) if index.kind == "group_count" else self.builder.apply("mod", index, max(groups, 1))
        )

    @property
    def builder(self) -> Builder:
        """A builder of what the statement that is copied needs."""
        return collector(self.before)
