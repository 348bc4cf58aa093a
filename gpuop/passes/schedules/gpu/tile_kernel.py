"""The kernel whose groups compute tiles part by part, with the values for later parts in local memory."""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir import nodes as ir
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import BOOL, INT, Shape, Type
from gpuop.ir.visit import walk
from gpuop.passes.coarsening_factor import elements
from gpuop.passes.schedules.common.grid_walk import numbered
from gpuop.passes.schedules.gpu.tile_body import Lanes, PointBody
from gpuop.passes.schedules.gpu.tile_chain import TilePart
from gpuop.passes.schedules.gpu.tile_edges import outside
from gpuop.passes.schedules.gpu.tile_frame import Coordinates, Frame
from gpuop.passes.schedules.gpu.tile_regions import THREADS, Region, Tiles
from gpuop.passes.schedules.gpu.tile_windows import StripWindows


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
        shown, what = "x".join(map(str, source.domain.shape)), "words" if source.packed else "points"
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
        return replace(
            source,
            domain=Domain(Shape(*shape), source.domain.elements),
            body=(*tables, *map(ir.Declare, tiles.arrays.values()), *head, *body),
            group=Shape(1, 1, THREADS),
            points=source.domain.shape,
            intermediates=(),
        )

    def _interior(self, out: list[ir.Stmt]) -> ir.Expr | None:
        tests: list[tuple[str, str, int]] = []
        for axis, (low, high) in self._reach().items():
            size = self.frame.size[axis]
            begin, end = -(-low // size), (self.source.domain.extent(axis) - high) // size
            if begin >= end:
                return None
            tests += [("ge", axis, begin)] if begin > 0 else []
            tests += [("lt", axis, end)] if end < self.groups[axis] else []
        b = collector(out)
        test: ir.Expr = constant(True, BOOL)
        for op, axis, bound in tests:
            test = b.apply("and", test, b.apply(op, ir.Index("group", axis), bound))
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
            halos = {"row": region.computed.rows, "column": region.computed.columns}
            for axis, (least, most) in far.items():
                low, high = windows.reach(axis)
                far[axis] = max(least, halos[axis][0] + low), max(most, halos[axis][1] + high)
        return far

    # --- parts --------------------------------------------------------------------------------------------------

    def _part(self, part: TilePart, region: Region) -> ir.Block:
        edge = (*self._strips(part, region, False), *_not_unrolled(outside(self.frame, part, region)))
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
            self._strip(part, region, _first(region, k, strip, tile, body), inner, body)
            if count % THREADS:
                out.append(ir.If(collector(out).apply("lt", strip, count), tuple(body)))
            else:
                out += body

        return _not_unrolled(numbered("turn", 0, -(-count // THREADS), turn))

    def _strip(self, part: TilePart, region: Region, first: Coordinates, inner: bool, out: list[ir.Stmt]) -> None:
        rows, columns = region.strip
        windows = StripWindows(self.frame, part, region, inner)
        stored = self._stored(part, columns) if inner else {}
        out += map(ir.Declare, stored.values())
        windows.load({axis: first[axis] for axis in self.frame.axes}, out)
        has_arrays = inner or bool(windows.by_element)

        def row(k: ir.Expr, out: list[ir.Stmt]) -> None:
            down = collector(out, hint="down").apply("add", first["row"], k)

            def point(lane: ir.Expr, out: list[ir.Stmt]) -> None:
                at = {"row": down, "column": collector(out, hint="across").apply("add", first["column"], lane)}
                here = {axis: at[axis] for axis in self.frame.axes}
                place = self.frame.place(part, region, here, inner, collector(out, hint="at"))
                place = replace(place, strip=(k, lane))
                out += PointBody(self.frame, part, place, windows, stored).copy()

            lanes = numbered("lane", 0, columns, point)
            out += lanes if has_arrays else _not_unrolled(lanes)
            if stored:
                here = {axis: {"row": down, "column": first["column"]}[axis] for axis in self.frame.axes}
                grid = self.frame.place(part, region, here, True, collector(out, hint="at")).grid
                out += [ir.Wide(field, a, False, self.frame.point(grid), e) for (field, e), a in stored.items()]

        strips = numbered("k", 0, rows, row)
        out += strips if has_arrays else _not_unrolled(strips)

    def _stored(self, part: TilePart, columns: int) -> Lanes:
        """The arrays of values that a thread writes in one access: unconditional writes, to rows that are aligned."""
        if part.rule is not None or columns == 1 or not self.tiles.wide:
            return {}
        sure = [
            stmt for stmt in part.kernel.body if isinstance(stmt, ir.Write) and not isinstance(stmt.element, ir.Ref)
        ]
        odd = {stmt.field for stmt in walk(part.kernel.body) if isinstance(stmt, ir.Write) and stmt not in sure}
        return {
            (stmt.field, element): ir.Array(f"{stmt.field.hint}_lanes", Type(stmt.field.type.storage), (columns,))
            for stmt in sure
            if stmt.field not in odd
            for element in elements(stmt.field, stmt.element)
        }


def _first(region: Region, turn: ir.Expr, strip: ir.Expr, tile: int | None, out: list[ir.Stmt]) -> Coordinates:
    """The first point of a strip, from the start of the region.

    Args:
        tile: columns of the tile, if its strips are numbered before those of the halo, so that warps read whole lines of memory.
    """
    (rows, columns), (down, across) = region.strip, region.count
    b, (top, left) = collector(out), (collector(out, hint=hint, temporary=False) for hint in ("top", "left"))
    if tile is not None:
        number, column = _inner_first(b, strip, region, tile // columns)
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


def _inner_first(b: Builder, strip: ir.Expr, region: Region, inner: int) -> tuple[ir.Expr, ir.Expr]:
    """The row and the column of a strip, counted in strips; `inner` strips of a row lie in the tile and have the first numbers."""
    down, across = region.count
    before, beside = region.computed.columns[0] // region.strip[1], across - inner
    more = b.apply("sub", strip, down * inner)
    outer = b.apply("mod", more, beside)
    outer = b.apply("choose", b.apply("lt", outer, before), outer, b.apply("add", outer, inner))
    test = b.apply("lt", strip, down * inner)
    row = b.apply("choose", test, b.apply("div", strip, inner), b.apply("div", more, beside))
    return row, b.apply("choose", test, b.apply("add", b.apply("mod", strip, inner), before), outer)


def _not_unrolled(block: ir.Block) -> ir.Block:
    """Mark loops as ones that compilers need not expand."""
    return tuple(replace(stmt, unroll=1) if isinstance(stmt, ir.For) else stmt for stmt in block)
