"""Thread coarsening: a thread handles several points, its lanes.

It loads all of them, runs the body for each in a loop, and stores all. With four lanes:

    wide, vector   thread  0 0 0 0 1 1 1 1 2 2 2 2 ...             neighbours, accessed at once
    spaced         thread  0 1 2 ... 255 0 1 2 ... 255 0 1 2 ...   points of a thread are WIDTH apart
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpuop.base.errors import Loc
from gpuop.ir import nodes as ir
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.extents import extent, shown_extents
from gpuop.ir.kernel import Kernel
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import INT, Shape, Type
from gpuop.ir.visit import expressions
from gpuop.passes.coarsening_factor import Place, PointsPerThread, elements, is_own, places, points_per_thread
from gpuop.passes.flat_grid import flat_field, output_of
from gpuop.passes.instantiate import Instance
from gpuop.passes.loops import counted, counter

WIDTH = 256  # threads of a work-group, where the lanes of a thread are a work-group apart
COLUMN = ir.Index("global", "column")


def widen(kernel: Kernel) -> Kernel:
    thread = points_per_thread(kernel)
    return kernel if thread.count == 1 else Coarsening(kernel, thread).kernel()


class Coarsening:
    """Builds the kernel of coarsened threads."""

    def __init__(self, kernel: Kernel, thread: PointsPerThread) -> None:
        self.source = kernel
        self.thread = thread
        fields = [field for field in (*kernel.inputs, *kernel.written) if is_own(field) and thread.flat]
        self.fields = {field: flat_field(field) for field in fields}
        self.points = kernel.domain.shape.points if thread.flat else kernel.domain.extent("column")
        read, written = places(kernel)
        self.loaded = {place: self.array(place) for place in read}
        self.stored = {place: self.array(place) for place in written}
        self.rows = () if thread.flat else tuple(ir.Index("global", axis) for axis in kernel.domain.axes[:-1])
        self.first = ir.Var("first", Type(INT))
        self.left = ir.Var("left", Type(INT))

    def array(self, place: Place) -> ir.Array:
        """The private array that holds the lanes of an element."""
        field, element = place
        part = f"_{int(element.value)}" if isinstance(element, ir.Const) and field.type.planes > 1 else ""
        return ir.Array(f"{field.hint}_lanes{part}", Type(field.type.storage), (self.thread.count,))

    def kernel(self) -> Kernel:
        """The kernel of fewer threads."""
        source, spaced = self.source, self.thread.form == "spaced"
        per_thread = self.thread.count
        columns = -(-self.points // (WIDTH * per_thread)) * WIDTH if spaced else -(-self.points // per_thread)
        shape = Shape(columns) if self.thread.flat else Shape(*source.domain.shape[:-1], columns)
        arrays = [*self.loaded.values(), *self.stored.values()]
        head: list[ir.Stmt] = [*source.shared("constant"), *map(ir.Declare, arrays)]
        title = f"{per_thread} points of {'x'.join(shown_extents(source))}, {'256 apart' if spaced else 'neighbours'}"
        head += [ir.Comment(title), ir.Let(self.first, self.first_point(collector(head)))]
        if self.partial:
            points = extent(source, "column") if source.named else constant(self.points, INT)
            head.append(ir.Let(self.left, ir.Apply("sub", (points, ir.Ref(self.first)), COLUMN.type)))
        return replace(
            source,
            inputs=tuple(self.fields.get(field, field) for field in source.inputs),
            outputs=tuple(output_of(o, self.fields) for o in source.outputs),
            domain=Domain(shape, source.domain.elements),
            body=(*head, *self.computed()),
            points=source.domain.shape,
            group=Shape(1, 1, WIDTH) if spaced else None,
            per_thread=Shape(*(1 for _ in self.rows), per_thread),
        )

    def computed(self) -> ir.Block:
        """The loads, the loop over lanes, and the stores."""
        move = self.spaced if self.thread.form == "spaced" else self.either if self.open_end else self.wide
        return (*move(self.loaded, True), self.loop(self.body), *move(self.stored, False))

    def other_point(self, read: ir.Read, lane: ir.Expr, b: Builder) -> ir.Expr | None:
        """The value of a read of another point, if the thread has loaded it; None where it has not."""
        return None

    @property
    def partial(self) -> bool:
        """Return whether the last vector may have fewer lanes than others."""
        remainder = self.points % self.thread.count if not self.source.named else 1
        return self.thread.form == "vector" and remainder > 0 and not self.overlaps

    @property
    def open_end(self) -> bool:
        """Return whether the last thread may have fewer points, and wide accesses must be aligned: where extents are arguments,
        and in a row of points whose elements alternate.
        """
        fewer = not self.source.layouts_in_rows and self.points % self.thread.count > 0
        return (bool(self.source.named) or fewer) and self.thread.form == "wide"

    @property
    def overlaps(self) -> bool:
        """Return whether the last vector begins earlier and overlaps the one before it, as it has whole accesses alone."""
        alternating = not self.source.layouts_in_rows and self.points % self.thread.count > 0
        return (
            (bool(self.source.named) or alternating) and self.thread.form == "vector" and not self.source.shared_memory
        )

    def first_point(self, b: Builder) -> ir.Expr:
        count = self.thread.count
        if self.thread.form != "spaced":
            first = ir.Apply("mul", (COLUMN, constant(count, INT)), COLUMN.type)
            if not self.overlaps:
                return first
            return ir.Apply("min", (b.bind(first), b.bind(extent(self.source, "column", count))), COLUMN.type)
        group = b.apply("mul", ir.Index("group", "column"), WIDTH * count)
        return ir.Apply("add", (group, ir.Index("local", "column")), COLUMN.type)

    def loop(self, body: Callable[[ir.Var, list[ir.Stmt]], ir.Block]) -> ir.For:
        lane, count = counter("lane"), self.thread.count
        return counted(lane, 0, count, body(lane, []), unroll=count, lanes=True)

    def point(self, lane: ir.Var, out: list[ir.Stmt]) -> ir.Expr:
        """The coordinate of a lane along the axis."""
        step = WIDTH if self.thread.form == "spaced" else 1
        along = collector(out).apply("mul", ir.Ref(lane), step)
        return collector(out, hint="point", temporary=False).apply("add", ir.Ref(self.first), along)

    # --- memory -------------------------------------------------------------------------------------------------

    def wide(self, arrays: dict[Place, ir.Array], loads: bool) -> list[ir.Stmt]:
        """Accesses to all lanes at once; the last vector may have fewer, and unaligned arrays of users get single accesses."""
        left = ir.Ref(self.left) if self.partial else None
        anywhere = self.thread.form == "vector" or self.thread.flat or bool(self.source.named)
        each = {
            (field, e): a
            for (field, e), a in arrays.items()
            if not (anywhere or self.source.layout(field).aligned(self.thread.count)) or self.alternates(field)
        }
        at_once: list[ir.Stmt] = [
            ir.Wide(self.fields.get(field, field), array, loads, (*self.rows, ir.Ref(self.first)), element, left)
            for (field, element), array in arrays.items()
            if (field, element) not in each
        ]
        return at_once + self.spaced(each, loads)

    def alternates(self, field: ir.FieldParam) -> bool:
        return self.thread.form == "vector" and not self.source.layout(field).in_rows()

    def either(self, arrays: dict[Place, ir.Array], loads: bool) -> list[ir.Stmt]:
        """Accesses at once, if all points exist; single accesses to fields of several planes of any extents, unaligned ones."""
        out: list[ir.Stmt] = []
        fixed = not self.source.named
        single = {(field, e): a for (field, e), a in arrays.items() if fixed or field.type.planes == 1}
        others = {place: a for place, a in arrays.items() if place not in single}
        if single:
            b = collector(out)
            whole = b.apply("le", ir.Ref(self.first), b.bind(extent(self.source, "column", self.thread.count)))
            out.append(ir.If(whole, tuple(self.wide(single, loads)), tuple(self.spaced(single, loads))))
        return out + self.spaced(others, loads)

    def spaced(self, arrays: dict[Place, ir.Array], loads: bool) -> list[ir.Stmt]:
        """Accesses one by one; lanes behind the last point load that point, and store nothing."""

        def body(lane: ir.Var, out: list[ir.Stmt]) -> ir.Block:
            point, b = self.point(lane, out), collector(out)
            whole: dict[ir.FieldParam, list[ir.Expr]] = {}
            for (field, element), array in arrays.items():
                there, planar = (*self.rows, point), None if field.type.planes == 1 else element
                if loads:
                    value = b.bind(ir.Read(self.fields.get(field, field), array.type, there, planar))
                    out.append(ir.Store(array, (ir.Ref(lane),), value))
                    continue
                value = b.bind(ir.Load(array, (ir.Ref(lane),), array.type))
                if self.alternates(field):
                    whole.setdefault(field, []).append(value)
                else:
                    out.append(ir.Write(self.fields.get(field, field), value, there, planar))
            out += (ir.Write(field, b.pack(values), (*self.rows, point)) for field, values in whole.items())
            return tuple(out)

        return [self.loop(body)] if arrays else []

    # --- the body -----------------------------------------------------------------------------------------------

    def body(self, lane: ir.Var, out: list[ir.Stmt]) -> ir.Block:
        """The body of the user for one lane."""
        copied = _Body(self, lane, self.positions(lane, out)).copy()
        return (*out, *copied)

    def positions(self, lane: ir.Var, out: list[ir.Stmt]) -> dict[ir.Index, ir.Expr]:
        """The expressions that replace the thread's position and the extents of the grid."""
        indices = [e for e in expressions(self.source.body) if isinstance(e, ir.Index) and e.axis in ir.GRID_AXES]
        by_index: dict[ir.Index, ir.Expr] = {e: extent(self.source, e.axis) for e in indices if e.kind == "global_size"}
        if len(by_index) == len(set(indices)):
            return by_index
        point, b = self.point(lane, out), collector(out)
        if self.thread.form == "spaced":
            point = b.apply("min", point, self.points - 1)
        at = _coordinates(b, point, self.source.domain) if self.thread.flat else {"column": point}
        return by_index | {
            e: b.apply("add", at[e.axis], e.offset) for e in indices if e not in by_index and e.axis in at
        }


class _Body(Instance):
    """Copies the body with arrays instead of fields."""

    def __init__(self, widening: Coarsening, lane: ir.Var, positions: dict[ir.Index, ir.Expr]) -> None:
        super().__init__(widening.source, positions)
        self.widening, self.lane = widening, (ir.Ref(lane),)

    def loaded(self, read: ir.Read, loc: Loc | None, out: list[ir.Stmt]) -> ir.Expr | None:
        if not is_own(read.field):
            return None
        b = collector(out, loc)
        if read.point is not None:
            return self.widening.other_point(read, *self.lane, b)
        arrays = [self.widening.loaded[read.field, e] for e in elements(read.field, read.element)]
        loads = [ir.Load(array, self.lane, array.type) for array in arrays]
        return loads[0] if len(loads) == 1 else ir.Pack(tuple(map(b.bind, loads)), read.type)

    def written(self, write: ir.Write) -> ir.Block:
        out: list[ir.Stmt] = []
        arrays = [self.widening.stored[write.field, e] for e in elements(write.field, write.element)]
        values = collector(out, write.loc).lanes(self.expr(write.value))
        stores = [ir.Store(a, self.lane, v, write.loc) for a, v in zip(arrays, values, strict=True)]
        return (*out, *stores)


def _coordinates(b: Builder, point: ir.Expr, domain: Domain) -> dict[str, ir.Expr]:
    """The coordinates of a point of the flat grid, by axis."""
    at: dict[str, ir.Expr] = {}
    for axis in reversed(domain.axes):
        outermost = axis == domain.axes[0]
        at[axis] = point if outermost else b.apply("mod", point, domain.extent(axis))
        point = point if outermost else b.apply("div", point, domain.extent(axis))
    return at
