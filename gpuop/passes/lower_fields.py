"""Lowering of fields: tensors become scalars, points become flat offsets. Fields are planar, a plane for each tensor element."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from gpuop.base.errors import Loc
from gpuop.ir import nodes as ir
from gpuop.ir.borders import Coordinate, inside, place
from gpuop.ir.build import Builder, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.target_expressions import TargetConst
from gpuop.ir.types import INT, LONG, Type
from gpuop.ir.visit import map_values, operands
from gpuop.passes.alternating_points import AlternatingPoints
from gpuop.passes.ranges import Ranges

COMPONENTS = "xyzw"
EXTENTS = {"layer": "layers", "row": "rows", "column": "columns"}


def lower_fields(kernel: Kernel) -> Kernel:
    return replace(kernel, body=_Lowering(kernel).block(kernel.body))


class _Lowering:
    def __init__(self, kernel: Kernel) -> None:
        self.lanes_of: dict[ir.Var, list[ir.Expr]] = {}
        self.arrays: dict[ir.Array, ir.Array] = {}
        self.out: list[ir.Stmt] = []
        self.operations: list[dict[ir.Expr, ir.Expr]] = []  # for each enclosing block, the variables of operations
        self.points: list[AlternatingPoints] = []  # of each enclosing block
        self.name = "t", True  # the name of the next bindings, and whether they are temporary
        self.loc: Loc | None = None
        self.b = Builder(self.bind)
        self.at = Addresses(kernel, self.b)

    def bind(self, expr: ir.Expr) -> ir.Expr:
        """The variable of an expression; equal operations, frequent in addresses, share one."""
        if not isinstance(expr, (ir.Apply, ir.Cast)) or any(
            isinstance(e, ir.Ref) and e.var.mutable for e in operands(expr)
        ):
            return self.bound(expr)
        for operations in self.operations:
            if expr in operations:
                return operations[expr]
        self.operations[-1][expr] = result = self.bound(expr)
        return result

    def bound(self, expr: ir.Expr) -> ir.Expr:
        hint, temporary = self.name
        var = ir.Var(hint, expr.type, temporary=temporary)
        let = ir.Let(var, expr, self.loc)
        self.out.append(let)
        self.at.ranges.meet(let)
        return ir.Ref(var)

    @contextmanager
    def named(self, hint: str, temporary: bool = True) -> Iterator[None]:
        before, self.name = self.name, (hint, temporary)
        yield
        self.name = before

    def block(self, block: ir.Block) -> ir.Block:
        outer, self.out = self.out, []
        self.operations.append({})
        self.points.append(AlternatingPoints())
        for stmt in block:
            self.loc = stmt.loc
            self.stmt(stmt)
        body, self.out = tuple(self.out), outer
        self.operations.pop()
        assert not self.points.pop().stored, "some elements of points are not stored"
        return body

    # --- statements ---------------------------------------------------------------------------------------------

    def stmt(self, stmt: ir.Stmt) -> None:  # noqa: C901 - a case for each kind of node
        match stmt:
            case ir.Let(var=var, value=value):
                self.let(var, value)
            case ir.Assign(var=var, value=value):
                self.assign(var, self.lanes(value))
            case ir.Declare(array=array):
                lanes = (array.type.lanes,) if array.type.lanes > 1 else ()
                self.arrays[array] = replace(array, type=array.type.scalar, shape=(*array.shape, *lanes))
                self.out.append(replace(stmt, array=self.arrays[array]))
            case ir.Atomic():
                self.atomic(stmt)
            case ir.Collective(var=var):
                self.lanes_of[var] = [ir.Ref(var)]
                self.out.append(map_values(stmt, self.scalar))
            case ir.Wide():
                self.wide(stmt)
            case ir.Store():
                self.store_array(stmt)
            case ir.Write():
                self.write(stmt)
            case ir.If() | ir.For() | ir.While():
                self.nested(stmt)
            case ir.Barrier() | ir.Print() | ir.Assert() | ir.Break() | ir.Continue() | ir.Comment():
                self.out.append(map_values(stmt, self.scalar))
            case _:
                ir.assert_never(stmt)

    def nested(self, stmt: ir.If | ir.For | ir.While) -> None:
        match stmt:
            case ir.If(cond=cond, then=then, orelse=orelse):
                self.out.append(replace(stmt, cond=self.scalar(cond), then=self.block(then), orelse=self.block(orelse)))
            case ir.For(var=var, start=start, stop=stop, step=step, body=body):
                bounds = [self.scalar(e) for e in (start, stop, step)]
                self.lanes_of[var] = [ir.Ref(var)]
                loop = replace(stmt, start=bounds[0], stop=bounds[1], step=bounds[2])
                self.at.ranges.meet(loop)
                self.out.append(replace(loop, body=self.block(body)))
            case ir.While(head=head, cond=cond, body=body):
                lowered = self.block(head)
                self.out.append(replace(stmt, head=lowered, cond=self.scalar(cond), body=self.block(body)))
            case _:
                ir.assert_never(stmt)

    def let(self, var: ir.Var, value: ir.Expr) -> None:
        with self.named(var.hint, var.temporary):
            lanes = self.lanes(value)
        if not var.mutable:
            # a copy of a variable must stay a copy, other atoms stand for themselves
            self.lanes_of[var] = [self.bind(e) if isinstance(e, ir.Ref) and e.var.mutable else e for e in lanes]
            return
        names = [var.hint] if len(lanes) == 1 else [f"{var.hint}_{c}" for c in COMPONENTS]
        self.lanes_of[var] = []
        for name, lane in zip(names, lanes, strict=False):
            fresh = ir.Var(name, lane.type, mutable=True, temporary=var.temporary)
            self.out.append(ir.Let(fresh, lane, self.loc))
            self.lanes_of[var].append(ir.Ref(fresh))

    def assign(self, var: ir.Var, lanes: list[ir.Expr]) -> None:
        targets = [e.var for e in self.lanes_of[var] if isinstance(e, ir.Ref)]
        if len(targets) > 1:  # v @= v.yx: read all before writing any
            lanes = [
                self.bind(e) if isinstance(e, ir.Ref) and e.var in targets and e.var is not t else e
                for t, e in zip(targets, lanes, strict=True)
            ]
        self.out += [ir.Assign(t, e, self.loc) for t, e in zip(targets, lanes, strict=True)]

    def atomic(self, stmt: ir.Atomic) -> None:
        """An atomic operation outside of its field does nothing, and returns 0."""
        args, index = tuple(map(self.scalar, stmt.args)), tuple(map(self.scalar, stmt.index))
        memory, test = stmt.memory, None
        if isinstance(memory, ir.FieldParam):
            with self.named("at"):
                test, offsets = self.at.target(memory, index, self.optional(stmt.element))
            index = tuple(offsets)
        else:
            memory = self.arrays[memory]
        var = stmt.var
        inner = var if test is None or var is None else replace(var)
        operation = replace(stmt, memory=memory, index=index, args=args, element=None, var=inner)
        if var is not None:
            self.lanes_of[var] = [ir.Ref(var)]
        if test is None:
            self.out.append(operation)
        elif var is None or inner is None:
            self.out.append(ir.If(test, (operation,), (), self.loc))
        else:
            result = ir.Var(var.hint, var.type, mutable=True)
            self.lanes_of[var] = [ir.Ref(result)]
            self.out.append(ir.Let(result, constant(0, var.type.dtype), self.loc))
            self.out.append(ir.If(test, (operation, ir.Assign(result, ir.Ref(inner), self.loc)), (), self.loc))

    def wide(self, stmt: ir.Wide) -> None:
        """A wide access; its elements are all inside of the field."""
        if self.at.kernel.layout(stmt.field).period > 1:
            self.alternating(stmt)
            return
        (plane,) = self.at.planes(stmt.field, self.optional(stmt.element))
        with self.named("at"):
            at = self.at.offset(stmt.field, [self.scalar(i) for i in stmt.index])
            offset = self.at.plane(stmt.field, at, plane, clamped=False)
        array, left = self.arrays[stmt.array], self.optional(stmt.left)
        self.out.append(replace(stmt, array=array, index=(offset,), element=None, left=left))

    def alternating(self, stmt: ir.Wide) -> None:
        """A wide access to an element of points whose elements alternate in memory; stores wait for all elements."""
        assert isinstance(stmt.element, ir.Const)
        field, period = stmt.field, self.at.kernel.layout(stmt.field).period
        with self.named("at"):
            at = self.at.offset(field, [self.scalar(i) for i in stmt.index])
        points = self.points[-1]
        move = points.load if stmt.loads else points.store
        key, lanes = (field, at, stmt.array.elements), self.arrays[stmt.array]
        self.out += move(key, lanes, int(stmt.element.value), period)

    # --- expressions --------------------------------------------------------------------------------------------

    def scalar(self, expr: ir.Expr) -> ir.Expr:
        (lane,) = self.lanes(expr)
        return lane

    def optional(self, expr: ir.Expr | None) -> ir.Expr | None:
        return None if expr is None else self.scalar(expr)

    def point(self, point: tuple[ir.Expr, ...] | None) -> tuple[ir.Expr, ...] | None:
        return None if point is None else tuple(map(self.scalar, point))

    def lanes(self, expr: ir.Expr) -> list[ir.Expr]:
        """The scalars of an expression, one for each component."""
        match expr:
            case ir.Ref(var=var):
                return self.lanes_of[var]
            case ir.Apply(op=op, args=args, type=type_):
                columns = [self.lanes(a) for a in args]
                return [self.b.apply(op, *(c[i] for c in columns)) for i in range(type_.lanes)]
            case ir.Cast(arg=arg, type=type_, saturate=saturate):
                cast = [self.b.cast(e, type_.scalar, saturate) for e in self.lanes(arg)]
                return cast * type_.lanes if len(cast) < type_.lanes else cast
            case ir.Bits(arg=arg, type=type_):
                return [self.b.bits(e, type_.scalar) for e in self.lanes(arg)]
            case ir.Lane(arg=arg, lane=lane):
                return [self.lanes(arg)[lane]]
            case ir.Pack(args=args):
                return [lane for a in args for lane in self.lanes(a)]
            case ir.Load():
                return self.load_array(expr)
            case ir.Read():
                return self.read(expr)
            case ir.Const() | TargetConst() | ir.Index() | ir.Stride() | ir.Argument():
                return [expr]
            case _:
                ir.assert_never(expr)

    def load_array(self, load: ir.Load) -> list[ir.Expr]:
        memory = load.memory
        assert isinstance(memory, ir.Array)  # fields are loaded from once they have been lowered
        array, at = self.arrays[memory], tuple(map(self.scalar, load.index))
        if memory.type.lanes == 1:
            return [self.bind(ir.Load(array, at, array.type))]
        return [self.bind(ir.Load(array, (*at, constant(k, INT)), array.type)) for k in range(memory.type.lanes)]

    def store_array(self, store: ir.Store) -> None:
        memory, lanes = store.memory, self.lanes(store.value)
        assert isinstance(memory, ir.Array)  # fields are stored to once they have been lowered
        array, at = self.arrays[memory], tuple(map(self.scalar, store.index))
        for k, value in enumerate(lanes):
            self.out.append(ir.Store(array, at if len(lanes) == 1 else (*at, constant(k, INT)), value, self.loc))

    # --- fields -------------------------------------------------------------------------------------------------

    def read(self, read: ir.Read) -> list[ir.Expr]:
        field, kind = read.field, Type(read.field.type.storage)
        if field.by_value:
            return self.read_argument(read)
        planes = self.at.planes(field, self.optional(read.element))
        with self.named("at"):
            coordinates = self.at.coordinates(field, self.point(read.point))
            border = "clamp" if read.point is None else read.border
            point = self.at.offset(field, [place(self.b, c, border) for c in coordinates])
            offsets = [self.at.plane(field, point, plane, clamped=True) for plane in planes]
            outside = self.b.all_of([inside(self.b, c) for c in coordinates]) if border == "fill" else None
        loads = [self.bind(ir.Load(field, (offset,), kind)) for offset in offsets]
        if outside is None:
            return loads
        assert read.fill is not None
        return [self.b.apply("choose", outside, load, read.fill) for load in loads]

    def read_argument(self, read: ir.Read) -> list[ir.Expr]:
        kind = Type(read.field.type.storage)
        planes: list[ir.Expr] = [ir.Argument(read.field, k, kind) for k in range(read.field.type.planes)]
        if read.element is None:
            return planes
        element, value = self.scalar(read.element), planes[0]
        for k, plane in enumerate(planes[1:], 1):
            value = self.b.apply("choose", self.b.apply("eq", element, k), plane, value)
        return [value]

    def write(self, write: ir.Write) -> None:
        field, lanes = write.field, self.lanes(write.value)
        with self.named("at"):
            test, offsets = self.at.target(field, self.point(write.point), self.optional(write.element))
        pairs = zip(offsets, lanes, strict=True)
        stores = tuple(ir.Store(field, (offset,), value, self.loc) for offset, value in pairs)
        self.out += stores if test is None else (ir.If(test, stores, (), self.loc),)


class Addresses:
    """Builds the arithmetic of addresses; operands are scalars.

    Attributes:
        ranges: the ranges of variables; bindings must be added in order.
    """

    def __init__(self, kernel: Kernel, b: Builder) -> None:
        self.kernel = kernel
        self.b = b
        self.ranges = Ranges(kernel)

    def planes(self, field: ir.FieldParam, element: ir.Expr | None) -> list[ir.Expr]:
        return [element] if element is not None else [constant(k, INT) for k in range(field.type.planes)]

    def target(
        self, field: ir.FieldParam, point: tuple[ir.Expr, ...] | None, element: ir.Expr | None
    ) -> tuple[ir.Expr | None, list[ir.Expr]]:
        """The target of a write: a test that it lies inside of the field (None: always), and an offset for each plane."""
        planes = self.planes(field, element)
        coordinates = self.coordinates(field, point)
        tests = [inside(self.b, c) for c in coordinates]
        if element is not None and not isinstance(element, ir.Const):
            tests.append(inside(self.b, self.element(field, element)))
        at = self.offset(field, [c.at for c in coordinates])
        return self.b.all_of(tests), [self.plane(field, at, plane, clamped=False) for plane in planes]

    def coordinates(self, field: ir.FieldParam, point: tuple[ir.Expr, ...] | None) -> list[Coordinate]:
        grid = field.type.field_shape
        axes = ir.GRID_AXES[3 - len(grid) :]
        indices = point if point is not None else [ir.Index("global", axis) for axis in axes]
        out = []
        for axis, at, n in zip(axes, indices, grid, strict=True):
            low, high = (0, n - 1) if point is None and not self.kernel.whole else self.ranges.range(at)
            out.append(Coordinate(at, ir.Stride(field, EXTENTS[axis], n, Type(INT)), n, low, high))
        return out

    def element(self, field: ir.FieldParam, at: ir.Expr) -> Coordinate:
        low, high = self.ranges.range(at)
        count = field.type.planes
        return Coordinate(at, ir.Stride(field, "tensorElements", count, Type(INT)), count, low, high)

    def offset(self, field: ir.FieldParam, point: list[ir.Expr]) -> ir.Expr:
        """The offset of a point within a plane."""
        grid, kind, layout = field.type.field_shape, self.index_type(field), self.kernel.layout(field)
        total: ir.Expr = constant(0, kind.dtype)
        for n, (at, axis) in enumerate(zip(point, ir.GRID_AXES[3 - len(grid) :], strict=True)):
            term = self.b.cast(at, kind)
            step = layout.point[n]
            if axis != "column" or step != 1:
                term = self.b.apply("mul", term, self.stride(field, f"{axis}Stride", step))
            total = term if n == 0 else self.b.apply("add", total, term)
        return total

    def plane(self, field: ir.FieldParam, point: ir.Expr, plane: ir.Expr, clamped: bool) -> ir.Expr:
        if field.type.planes == 1 and isinstance(plane, ir.Const):
            return point
        if clamped and not isinstance(plane, ir.Const):
            plane = place(self.b, self.element(field, plane), "clamp")
        layout = self.kernel.layout(field)
        if layout.row is not None:
            columns = field.type.tensor_shape[-1]
            point = self._along(field, point, self.b.apply("div", plane, columns), "tensorRowStride", layout.row)
            plane = self.b.apply("mod", plane, columns)
        return self._along(field, point, plane, "tensorStride", layout.element)

    def _along(self, field: ir.FieldParam, point: ir.Expr, count: ir.Expr, what: str, step: int) -> ir.Expr:
        """The offset, `count` steps further."""
        if count == constant(0, INT):
            return point
        far = self.b.cast(count, self.index_type(field))
        if step != 1 or not isinstance(count, ir.Const):
            far = self.b.apply("mul", far, self.stride(field, what, step))
        return self.b.apply("add", point, far)

    def stride(self, field: ir.FieldParam, what: str, value: int) -> ir.Stride:
        return ir.Stride(field, what, value, self.index_type(field))

    def index_type(self, field: ir.FieldParam) -> Type:
        """The type of offsets: int, or long in fields that extend over 2³¹ elements or more."""
        return Type(LONG if self.kernel.layout(field).reach(field.type) > 2**31 - 2 else INT)
