"""The kernel whose groups compute tiles part by part, with the values for later parts in local memory."""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir import nodes as ir
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.extents import extent, shown_extents
from gpuop.ir.kernel import Kernel
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import BOOL, INT, Shape, Type
from gpuop.ir.visit import walk
from gpuop.passes.coarsening_factor import elements, is_own
from gpuop.passes.instantiate import Instance
from gpuop.passes.loops import numbered
from gpuop.passes.schedules.common.grid_walk import accesses
from gpuop.passes.schedules.gpu.tile_chain import TilePart, distance
from gpuop.passes.schedules.gpu.tile_regions import THREADS, Coordinates, Frame, Region, TilePoint, Tiles
from gpuop.passes.schedules.gpu.tile_windows import StripWindow, StripWindows


class TileKernel:
    """Builds the kernel.

    Attributes:
        interior: the test whether a group needs no points outside of the grid; None where every group may need some.
    """

    def __init__(self, kernel: Kernel, tiles: Tiles) -> None:
        self.source, self.tiles = kernel, tiles
        self.frame = Frame(kernel, tiles)
        self.groups = {axis: -(-kernel.domain.extent(axis) // n) for axis, n in self.frame.size.items()}
        self.interior: ir.Expr | None = None

    def kernel(self) -> Kernel:
        source, tiles, axes = self.source, self.tiles, self.frame.axes
        shape = [*source.domain.shape[: -len(axes)], *(self.groups[axis] for axis in axes)]
        shape[-1] *= THREADS
        shown, what = "x".join(shown_extents(source)), "words" if source.packed else "points"
        head: list[ir.Stmt] = [ir.Comment(f"{tiles.rows}x{tiles.columns} of {shown} {what}")]
        for axis in axes:
            b = collector(head, hint=f"first_{axis}", temporary=False)
            self.frame.first[axis] = b.apply("mul", ir.Index("group", axis), self.frame.size[axis])
        self.interior = self._interior(head)
        body: list[ir.Stmt] = []
        for part, region in zip(tiles.chain.parts, tiles.regions, strict=True):
            body += [ir.Barrier("local")] if body else []
            body += self._part(part, region)
        tables = dict.fromkeys(stmt for part in tiles.chain.parts for stmt in part.kernel.shared("constant"))
        domain = Domain(Shape(*shape), source.domain.elements)
        statements = (*tables, *map(ir.Declare, tiles.arrays.values()), *head, *body)
        group, points = Shape(1, 1, THREADS), source.domain.shape
        before = (1,) * (len(points) - len(axes))
        per_thread = Shape(*before, *(self.frame.size[axis] for axis in axes))
        together = Shape(*(1 for _ in points[:-1]), THREADS)
        tiled = replace(source, domain=domain, body=statements, group=group, points=points, intermediates=())
        return replace(tiled, per_thread=per_thread, together=together) if source.named else tiled

    def _interior(self, out: list[ir.Stmt]) -> ir.Expr | None:
        tests: list[ir.Expr] = []
        b = collector(out)
        for axis, (low, high) in self._reach().items():
            size, group = self.frame.size[axis], ir.Index("group", axis)
            begin, end = -(-low // size), (self.source.domain.extent(axis) - high) // size
            if begin >= end and not self.source.is_open(axis):
                return None
            tests += [b.apply("ge", group, begin)] if begin > 0 else []
            if self.source.is_open(axis):
                tests.append(
                    b.apply("le", b.apply("add", self.frame.first[axis], size + high), extent(self.source, axis))
                )
            else:
                tests += [b.apply("lt", group, end)] if end < self.groups[axis] else []
        test: ir.Expr = constant(True, BOOL)
        for each in tests:
            test = b.apply("and", test, each)
        binding = out.pop() if tests else None
        if not isinstance(binding, ir.Let):
            return test
        var = ir.Var("interior", Type(BOOL))
        out.append(replace(binding, var=var))
        return ir.Ref(var)

    def _reach(self) -> dict[str, tuple[int, int]]:
        """The number of points before and behind a tile that a group in the interior accesses, by axis."""
        far = dict.fromkeys(self.frame.axes, (0, 0))
        for part, region in zip(self.tiles.chain.parts, self.tiles.regions, strict=True):
            windows = StripWindows(self.frame, part, region, True)
            for axis, (least, most) in far.items():
                (low, high), (before, behind) = windows.reach(axis), region.computed.along(axis)
                far[axis] = max(least, before + low), max(most, behind + high)
        return far

    # --- parts --------------------------------------------------------------------------------------------------

    def _part(self, part: TilePart, region: Region) -> ir.Block:
        edge = (*self._strips(part, region, False), *_outside(self.frame, part, region))
        if self.interior is None:
            return edge
        inner = self._strips(part, region, True)
        return inner if isinstance(self.interior, ir.Const) else (ir.If(self.interior, inner, edge),)

    def _strips(self, part: TilePart, region: Region, inner: bool) -> ir.Block:
        """All strips of a part: in each iteration a thread computes one."""
        count = region.count[0] * region.count[1]
        tile = self.tiles.columns if self.tiles.is_aligned(part, region) else None

        def turn(k: ir.Expr, out: list[ir.Stmt]) -> None:
            b = collector(out, hint="strip", temporary=False)
            strip = b.apply("add", collector(out).apply("mul", k, THREADS), ir.Index("local", "column"))
            body: list[ir.Stmt] = []
            self._strip(part, region, _first(region, k, strip, (tile, bool(self.source.named)), body), inner, body)
            if count % THREADS:
                out.append(ir.If(collector(out).apply("lt", strip, count), tuple(body)))
            else:
                out += body

        return numbered("turn", 0, -(-count // THREADS), turn, unroll=1)

    def _strip(self, part: TilePart, region: Region, first: Coordinates, inner: bool, out: list[ir.Stmt]) -> None:
        rows, columns = region.strip
        windows = StripWindows(self.frame, part, region, inner)
        stored = self._stored(part, columns) if inner else {}
        out += map(ir.Declare, stored.values())
        windows.load({axis: first[axis] for axis in self.frame.axes}, out)
        unroll = (
            None if inner or windows.by_element else 1
        )  # arrays are in registers only where all indices are constants

        def row(k: ir.Expr, out: list[ir.Stmt]) -> None:
            down = collector(out, hint="down").apply("add", first["row"], k)

            def point(lane: ir.Expr, out: list[ir.Stmt]) -> None:
                at = {"row": down, "column": collector(out, hint="across").apply("add", first["column"], lane)}
                here = {axis: at[axis] for axis in self.frame.axes}
                place = self.frame.place(part, region, here, inner, collector(out, hint="at"))
                place = replace(place, strip=(k, lane))
                out += PointBody(self.frame, part, place, windows, stored).copy()

            out += numbered("lane", 0, columns, point, unroll)
            if stored:
                here = {axis: {"row": down, "column": first["column"]}[axis] for axis in self.frame.axes}
                grid = self.frame.place(part, region, here, True, collector(out, hint="at")).grid
                out += accesses(stored, self.frame.point(grid), False)

        out += numbered("k", 0, rows, row, unroll)

    def _stored(self, part: TilePart, columns: int) -> Lanes:
        """The arrays of values that a thread writes in one access: unconditional writes, to rows that are aligned."""
        if part.rule is not None or columns == 1 or not self.tiles.wide:
            return {}
        writes = [stmt for stmt in walk(part.kernel.body) if isinstance(stmt, ir.Write)]
        sure = [stmt for stmt in writes if stmt in part.kernel.body and not isinstance(stmt.element, ir.Ref)]
        odd = {stmt.field for stmt in writes if stmt not in sure}
        places = ((s.field, e) for s in sure if s.field not in odd for e in elements(s.field, s.element))
        return {place: ir.Array(f"{place[0].hint}_lanes", Type(place[0].type.storage), (columns,)) for place in places}


def _first(
    region: Region, turn: ir.Expr, strip: ir.Expr, first: tuple[int | None, bool], out: list[ir.Stmt]
) -> Coordinates:
    """The first point of a strip, from the start of the region.

    Args:
        first: columns of the tile, if its strips are numbered before those of the halo, so that warps read whole lines of
            memory; and whether extents are arguments.
    """
    tile, is_open = first
    (rows, columns), (down, across) = region.strip, region.count
    b, (top, left) = collector(out), (collector(out, hint=hint, temporary=False) for hint in ("top", "left"))
    if tile is not None:
        number, column = _inner_first(b, strip, region, tile // columns, is_open)
    elif THREADS % across:
        number, column = b.apply("div", strip, across), b.apply("mod", strip, across)
    else:  # a thread has the same columns in every iteration
        local = ir.Index("local", "column")
        number = b.apply("add", b.apply("mul", turn, THREADS // across), b.apply("div", local, across))
        column = b.apply("mod", local, across)
    return {
        "row": top.apply("mul", number, rows) if down > 1 else constant(0, INT),
        "column": left.apply("mul", column, columns),
    }


def _inner_first(b: Builder, strip: ir.Expr, region: Region, inner: int, is_open: bool) -> tuple[ir.Expr, ir.Expr]:
    """The row and the column of a strip, counted in strips; `inner` strips of a row lie in the tile and have the first numbers."""
    down, across = region.count
    before, beside = region.computed.columns[0] // region.strip[1], across - inner
    more = b.apply("sub", strip, down * inner)
    if is_open:  # so that rows are near the grid, whatever its extents
        more = b.apply("max", more, 0)
    outer = b.apply("mod", more, beside)
    outer = b.apply("choose", b.apply("lt", outer, before), outer, b.apply("add", outer, inner))
    test = b.apply("lt", strip, down * inner)
    row = b.apply("choose", test, b.apply("div", strip, inner), b.apply("div", more, beside))
    return row, b.apply("choose", test, b.apply("add", b.apply("mod", strip, inner), before), outer)


Lanes = dict[tuple[ir.FieldParam, ir.Expr], ir.Array]


class PointBody(Instance):
    """Copies the body of a part at one point, with local memory and registers instead of fields.

    Args:
        windows: the register windows of the strip.
        stored: the arrays of values that are written in one access.
    """

    def __init__(self, frame: Frame, part: TilePart, at: TilePoint, windows: StripWindows, stored: Lanes) -> None:
        super().__init__(part.kernel)
        self.frame, self.part, self.at = frame, part, at
        self.windows, self.stored = windows, stored
        self.pending: list[ir.Stmt] = []  # statements that go before the one that is being copied

    @property
    def b(self) -> Builder:
        return collector(self.pending, hint="at")

    def stmt(self, stmt: ir.Stmt) -> ir.Block:
        outer, self.pending = self.pending, []
        copied = super().stmt(stmt)
        before, self.pending = self.pending, outer
        return (*before, *copied)

    def position(self, index: ir.Index) -> ir.Expr:
        if index.kind == "global_size" and index.axis != "element":
            return extent(self.frame.source, index.axis)
        return self.b.apply("add", self.at.real[index.axis], index.offset) if index.axis in self.at.real else index

    def expr(self, expr: ir.Expr) -> ir.Expr:
        match expr:
            case ir.Apply(op="lt" | "ge" as op, args=(ir.Index() as at, ir.Const(value=bound))):
                return constant(False, BOOL) if self._is_beyond(op, at, int(bound)) else super().expr(expr)
            case ir.Read(field=field) if is_own(field) and field.type.field_shape == self.frame.source.domain.shape:
                return self._read(expr)
        return super().expr(expr)

    def _is_beyond(self, op: str, at: ir.Index, bound: int) -> bool:
        """Return whether an edge test is known to be false: a group in the interior reads nothing beyond that edge."""
        if not self.windows.inner or at.kind != "global" or at.axis not in self.at.real:
            return False
        low, high = self.part.span(self.frame.source.domain.axes.index(at.axis) - len(self.frame.source.domain.axes))
        beyond = self.frame.source.domain.extent(at.axis) - 1
        return at.offset - low >= bound if op == "lt" else beyond - high + at.offset < bound

    # --- reads --------------------------------------------------------------------------------------------------

    def _read(self, read: ir.Read) -> ir.Expr:
        away = distance(read) if read.field in self.part.near else None
        if away is not None:
            value = self._from_registers(read, away)
            if value is not None:
                return value
        if read.field in self.frame.tiles.arrays:
            return self._element(self._from_local(read, away), read)
        return self._from_field(read, away)

    def _from_registers(self, read: ir.Read, away: tuple[int, ...]) -> ir.Expr | None:
        """The value in registers; None where no window has it."""
        if read.field in self.frame.tiles.arrays:
            window = self.windows.by_element.get((read.field, None))
            return None if window is None else self._element(self._from_window(window, away), read)
        windows = [self.windows.by_element.get((read.field, e)) for e in elements(read.field, read.element)]
        loads = [self._from_window(window, away) for window in windows if window is not None]
        if not loads or len(loads) < len(windows):
            return None
        return loads[0] if len(loads) == 1 else ir.Pack(tuple(map(self.b.bind, loads)), read.type)

    def _from_window(self, window: StripWindow, away: tuple[int, ...]) -> ir.Expr:
        (row, lane), b, array = self.at.strip, self.b, window.array
        down, along = (away[-2] if len(away) > 1 else 0) - window.rows[0], away[-1] - window.columns[0]
        return ir.Load(array, (b.apply("add", row, down), b.apply("add", lane, along)), array.type)

    def _from_local(self, read: ir.Read, away: tuple[int, ...] | None) -> ir.Expr:
        """The value in local memory."""
        array, region = self.frame.tiles.arrays[read.field], self.frame.tiles.of[read.field]
        index: dict[str, ir.Expr] = {"row": constant(0, INT)}
        for n, axis in enumerate(self.frame.axes, -len(self.frame.axes)):
            before, _ = region.computed.along(axis)
            if away is not None:
                index[axis] = self.b.apply("add", self.at.tile[axis], away[n] + before)
            elif read.point is not None:
                first = self.b.apply("sub", self.frame.first[axis], before)
                index[axis] = self.b.apply("sub", self.expr(read.point[n]), first)
        return ir.Load(array, (index["row"], index["column"]), array.type)

    def _element(self, value: ir.Expr, read: ir.Read) -> ir.Expr:
        """The element that is read of a tensor. One with a computed index is selected: registers have no addresses."""
        if read.element is None or value.type.lanes == 1:
            return value
        b = self.b
        tensor = b.bind(value)
        if isinstance(read.element, ir.Const):
            return ir.Lane(tensor, int(read.element.value), read.type)
        *others, last = (b.bind(ir.Lane(tensor, k, read.type)) for k in range(value.type.lanes))
        at, result = self.expr(read.element), last
        for k, lane in reversed(list(enumerate(others))):
            result = b.apply("choose", b.apply("le", at, k), lane, result)
        return result

    def _from_field(self, read: ir.Read, away: tuple[int, ...] | None) -> ir.Expr:
        """The value in the field."""
        inner, virtual = self.windows.inner, self.part.rule is not None and self.frame.tiles.chain.virtual
        element = None if read.element is None else self.expr(read.element)
        border, fill, point = read.border, read.fill, read.point
        if point is None:
            border, fill = ("wrap" if virtual else "unchecked"), None
            where = self.frame.point(self.at.real)
        else:
            where = tuple(map(self.expr, point))
        if inner and away is not None and not any(away[:-2]):
            border, fill = "unchecked", None
        return ir.Read(read.field, read.type, where, element, border, fill)

    # --- writes -------------------------------------------------------------------------------------------------

    def written(self, write: ir.Write) -> ir.Block:
        value, b = self.expr(write.value), self.b
        array = self.frame.tiles.arrays.get(write.field)
        if array is not None:
            return self._stored(array, value, write)
        element = None if write.element is None else self.expr(write.element)
        lanes = [self.stored.get((write.field, e)) for e in elements(write.field, element)]
        arrays = [each for each in lanes if each is not None]
        if len(arrays) < len(lanes):
            return (ir.Write(write.field, value, self.frame.point(self.at.grid), element, write.loc),)
        values = b.lanes(value)
        return tuple(ir.Store(a, (self.at.strip[1],), v, write.loc) for a, v in zip(arrays, values, strict=True))

    def _stored(self, array: ir.Array, value: ir.Expr, write: ir.Write) -> ir.Block:
        """Store the value in local memory; outside of the grid the fill value of the border takes its place."""
        if self.at.inside and self.part.rule is not None and self.part.rule[1] is not None:
            test = self.at.inside[0]
            for more in self.at.inside[1:]:
                test = self.b.apply("and", test, more)
            value = self.b.apply("choose", test, value, self.part.rule[1])
        value = self.b.cast(value, array.type, saturate=False)  # a number spreads over a vector
        index = (self.at.region.get("row", constant(0, INT)), self.at.region["column"])
        return (ir.Store(array, index, value, write.loc),)


def _outside(frame: Frame, part: TilePart, region: Region) -> ir.Block:
    """Statements that correct the points of a tile outside of the grid, for a group at an edge whose threads have stored all.

    Strips with windows compute these points like inner ones, but a border means the value of another point, which is copied. Fill
    values are stored at once, and under "wrap" the grid is periodic: neither needs a correction.
    """
    needs_copies = part.rule is not None and part.rule[1] is None and not frame.tiles.chain.virtual
    around = any((*region.needed.rows, *region.needed.columns))
    if not needs_copies or not around or not StripWindows(frame, part, region, False).by_element:
        return ()
    rows, columns = region.shape

    def iteration(k: ir.Expr, out: list[ir.Stmt]) -> None:
        b = collector(out, hint="n")
        n = b.apply("add", b.apply("mul", k, THREADS), ir.Index("local", "column"))
        at = {"row": b.apply("div", n, columns), "column": b.apply("mod", n, columns)}
        body: list[ir.Stmt] = []
        _correct(frame, part, region, {axis: at[axis] for axis in frame.axes}, body)
        more = rows * columns % THREADS
        out += [ir.If(collector(out).apply("lt", n, rows * columns), tuple(body))] if more else body

    return (ir.Barrier("local"), *numbered("turn", 0, -(-rows * columns // THREADS), iteration, unroll=1))


def _correct(frame: Frame, part: TilePart, region: Region, at: Coordinates, out: list[ir.Stmt]) -> None:
    """Correct a point of the region if it is outside of the grid."""
    point, copies = frame.place(part, region, at, False, collector(out, hint="at")), list[ir.Stmt]()
    b = collector(out)
    beyond = [b.apply("ne", point.grid[axis], point.real[axis]) for axis in frame.axes]
    test = beyond[0] if len(beyond) == 1 else b.apply("or", *beyond)
    b = collector(copies, hint="at")
    before = {"row": region.computed.rows[0], "column": region.computed.columns[0]}
    there = {axis: b.apply("add", point.tile[axis], before[axis]) for axis in frame.axes}
    for param in part.kernel.written:
        array = frame.tiles.arrays[param]
        value = b.bind(ir.Load(array, _index(there), array.type))
        copies.append(ir.Store(array, _index(at), value))
    out.append(ir.If(test, (ir.Comment("outside"), *copies)))


def _index(at: Coordinates) -> tuple[ir.Expr, ir.Expr]:
    return at.get("row", constant(0, INT)), at["column"]
