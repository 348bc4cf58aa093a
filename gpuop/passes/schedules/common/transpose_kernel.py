"""The kernel that transposes through tiles: it fills them along the rows of fields, and reads them along columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from gpuop.base.errors import Loc
from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import INT, UINT, Shape, Type
from gpuop.ir.visit import blocks, expressions
from gpuop.passes.coarsening_factor import Place, elements, is_own, places, streams
from gpuop.passes.instantiate import Instance, point_at
from gpuop.passes.loops import Body, numbered
from gpuop.passes.schedules.common.grid_walk import accesses, array_of
from gpuop.passes.schedules.common.transposed_reads import Axes, involved, is_mirrored, is_own_point, transposed
from gpuop.passes.vectorization_legality import demand, obstacle


@dataclass(frozen=True)
class Tiling:
    """Square tiles, and their threads.

    Attributes:
        axis: the axis of the grid along which rows of the transposed inputs lie.
        size: the rows, and the columns, of a tile.
        lanes: the neighbours of one access.
        rows, columns: the extents of a work-group; with 1 by 1, a thread has tiles of its own.
        align: each row of a tile of the outputs begins in memory at a multiple of so many elements.
    """

    axis: str
    size: int
    lanes: int
    rows: int
    columns: int
    align: int

    @property
    def depth(self) -> int:
        """The rows of a tile of an input: more than `size` where rows of outputs begin up to `align` - 1 elements earlier."""
        return -(-(self.size + self.align - 1) // self.rows) * self.rows

    @property
    def words(self) -> bool:
        """Return whether the lanes of an access are a word of small elements, in rows that are not aligned for it."""
        return self.align > 1 < self.lanes

    def step(self, axis: str) -> int:
        """The distance between tiles along an axis of the grid: a word less than `size` where rows begin within a word."""
        return self.size - (self.lanes if self.words and axis == self.axis else 0)

    @property
    def shared(self) -> bool:
        return self.rows * self.columns > 1


def word(kind: Type) -> int:
    """The number of elements in a word of a bank of local memory."""
    return max(4 // (ir.Array("", kind, ()).nbytes), 1)


def copies(stmt: ir.Stmt) -> int:
    """The number of statements of a loop that is unrolled."""
    turns = stmt.unroll if isinstance(stmt, ir.For) and isinstance(stmt.unroll, int) else 1
    return sum(map(copies, (inner for block in blocks(stmt) for inner in block))) * turns + 1


RowBody = Callable[[ir.Expr, ir.Expr, list[ir.Stmt]], None]  # appends the statements for a row and a piece of it
ALONE = 16  # threads of a group with private tiles: some drivers keep the tiles of a whole group on one stack
MOST_COPIES = 512  # statements of an unrolled loop over the rows of a tile


class TransposeKernel:
    """Builds the kernel.

    Attributes:
        tiles: the memory of a tile for each transposed input; its rows lie along `Tiling.axis`.
        loaded, stored: for the reads and writes at own points, the arrays of the lanes of one access.
    """

    def __init__(self, kernel: Kernel, tiling: Tiling, reads: Mapping[ir.Read, Axes]) -> None:
        self.source, self.tiling = kernel, tiling
        self.views = {(read.field, e): read for read in reads for e in elements(read.field, read.element)}
        self.axes = {place: reads[read] for place, read in self.views.items()}
        self.tiles = {place: self.tile(place) for place in self.views}
        own = [e for e in expressions(kernel.body) if isinstance(e, ir.Read) and is_own_point(e)]
        own_places = dict.fromkeys((e.field, element) for e in own for element in elements(e.field, e.element))
        several = tiling.lanes > 1
        self.loaded = {place: array_of(place, "lanes", tiling.lanes) for place in own_places if several}
        self.stored = {place: array_of(place, "lanes", tiling.lanes) for place in places(kernel)[1] if several}
        self.staged = {place: array_of(place, "row", tiling.lanes) for place in self.views if several}
        self.vectors = self.has_vectors()
        self.first: dict[str, ir.Expr] = {}  # the first point of the tile, by axis of the grid
        rest = any(kernel.domain.extent(axis) % tiling.lanes for axis in ("column", tiling.axis))
        self.left = constant(tiling.lanes, INT) if rest else None  # for unaligned accesses

    def has_vectors(self) -> bool:
        """Return whether the lanes of a thread are those of a CPU's vectors."""
        kernel, target = self.source, self.source.target
        if self.tiling.shared or target is None or target.vector_length != self.tiling.lanes or obstacle(kernel.body):
            return False
        reads = (e for e in expressions(kernel.body) if isinstance(e, ir.Read) and is_own(e.field))
        is_worth = target.widening == "vector" or not demand(kernel.body, streams(kernel))
        return is_worth and all(map(self.keeps, reads))

    def keeps(self, read: ir.Read) -> bool:
        """Return whether a read is served by a tile, or is at the thread's own point."""
        return is_own_point(read) or any(read == view for view in self.views.values())

    # --- memory -------------------------------------------------------------------------------------------------

    def tile(self, place: Place) -> ir.Array:
        """The memory of a tile, padded so that neighbours in a column lie in different banks, against bank conflicts."""
        tiling, padding = self.tiling, word(Type(place[0].type.storage))
        columns = tiling.size + (tiling.size // tiling.lanes * self.skewed + tiling.shared) * padding
        return array_of(place, "tile", tiling.depth, columns, space="local" if tiling.shared else "private")

    def displacement(self, piece: ir.Expr, tile: ir.Array, b: Builder) -> ir.Expr:
        """The displacement of a group of `lanes` rows of a tile, in elements."""
        return b.apply("mul", piece, word(tile.type)) if self.skewed else constant(0, INT)

    @property
    def skewed(self) -> bool:
        return self.tiling.shared and self.tiling.lanes > 1

    @property
    def nbytes(self) -> int:
        return sum(tile.nbytes for tile in self.tiles.values())

    # --- the kernel ---------------------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        source, tiling = self.source, self.tiling
        along = {"column": tiling.axis, tiling.axis: "column"}  # groups follow the rows of the inputs
        threads = {"column": tiling.columns, tiling.axis: tiling.rows}
        domain = source.domain
        spans = {axis: domain.extent(axis) + (tiling.align - 1) * (axis == "column") for axis in along}
        extents = {axis: -(-spans[along[axis]] // tiling.step(along[axis])) * n for axis, n in threads.items()}
        shape = Shape(extents.get(axis, domain.extent(axis)) for axis in domain.axes)
        title = f"tiles of {tiling.size} columns and {tiling.step(tiling.axis)} {tiling.axis}s of "
        head: list[ir.Stmt] = [*source.shared("constant"), *map(ir.Declare, self.tiles.values())]
        head.append(ir.Comment(title + "x".join(map(str, domain.shape))))
        self.first = {axis: self.start(axis, along[axis], head) for axis in along}
        fill = [stmt for place in self.views for stmt in self.rows(tiling.depth, partial(self.fill, place))]
        wait = [ir.Barrier("local")] if tiling.shared else []
        group = Shape(threads.get(axis, 1) for axis in ir.GRID_AXES) if tiling.shared else Shape(1, 1, ALONE)
        body = (*head, *fill, *wait, *self.rows(tiling.size, self.aligned if tiling.align > 1 else self.compute))
        return replace(source, domain=Domain(shape, domain.elements), body=body, group=group)

    def start(self, axis: str, threads: str, out: list[ir.Stmt]) -> ir.Expr:
        """The first point of the tile along an axis of the grid, by the number of the group or thread along `threads`.

        The last tiles overlap others; where rows are shifted to aligned memory, they end beyond the grid instead.
        """
        size, extent = self.tiling.size, self.source.domain.extent(axis)
        if axis == "column" and self.tiling.align > 1:
            extent = size
        binding = collector(out, hint="left" if axis == "column" else "top", temporary=False)
        b = collector(out) if extent % size else binding
        at = b.apply("mul", self.number(threads), size)
        return binding.apply("min", at, extent - size) if extent % size else at

    def number(self, threads: str) -> ir.Index:
        """The number of the tile along an axis of the threads."""
        return ir.Index("group" if self.tiling.shared else "global", threads)

    def rows(self, count: int, body: RowBody) -> ir.Block:
        """The loops of a thread over its rows of a tile, and over its pieces of a row, of `lanes` columns each."""
        tiling = self.tiling
        here = [ir.Index("local", axis) if tiling.shared else constant(0, INT) for axis in (tiling.axis, "column")]

        def row(k: ir.Expr, out: list[ir.Stmt]) -> None:
            b = collector(out, hint="row")
            at = b.apply("add", here[0], b.apply("mul", k, tiling.rows))

            def piece(n: ir.Expr, out: list[ir.Stmt]) -> None:
                b = collector(out, hint="piece")
                body(at, b.apply("add", here[1], b.apply("mul", n, tiling.columns)), out)

            out += self.repeated("n", tiling.size // (tiling.columns * tiling.lanes), piece)

        return self.repeated("k", count // tiling.rows, row)

    def repeated(self, hint: str, count: int, body: Body) -> ir.Block:
        """A loop, unrolled on GPUs, where latency counts, unless its text would be long."""
        turns = numbered(hint, 0, count, body)
        if count == 1 or (self.tiling.shared and sum(map(copies, turns)) <= MOST_COPIES):
            return turns
        return tuple(replace(turn, unroll=1) if isinstance(turn, ir.For) else turn for turn in turns)

    def at(self, axis: str, away: ir.Expr, out: list[ir.Stmt]) -> ir.Expr:
        """The coordinate of the grid at a distance from the start of the tile."""
        return collector(out, hint="at").apply("add", self.first[axis], away)

    def fill(self, place: Place, row: ir.Expr, piece: ir.Expr, out: list[ir.Stmt]) -> None:
        """Copy a piece of a row of an input to its tile."""
        (field, element), count = place, self.tiling.lanes
        b, tile = collector(out), self.tiles[place]
        column = b.apply("mul", piece, count)
        across = self.at("column", row, out)
        if self.tiling.align > 1:
            across_b = collector(out, hint="across")
            first = across_b.apply("sub", across, self.tiling.align - 1)
            across = across_b.apply("min", across_b.apply("max", first, 0), self.source.domain.extent("column") - 1)
        at = collector(out, hint="at")
        point = tuple(self.along(axis, mirrored, across, column, at) for axis, mirrored in self.axes[place])
        if count == 1:
            value = b.bind(ir.Read(field, tile.type, point, element, "unchecked"))
            out.append(ir.Store(tile, (row, column), value))
            return
        staged = self.staged[place]
        offset = self.displacement(b.apply("div", row, count), tile, b)
        out += [ir.Declare(staged), ir.Wide(field, staged, True, point, element, self.left)]

        def lane(k: ir.Expr, out: list[ir.Stmt]) -> None:
            b = collector(out)
            there = b.apply("add", b.apply("add", column, k), offset)
            out.append(ir.Store(tile, (row, there), b.bind(ir.Load(staged, (k,), tile.type))))

        out += self.each_lane(lane)

    def along(self, axis: str, mirrored: bool, across: ir.Expr, away: ir.Expr, b: Builder) -> ir.Expr:
        """A coordinate of an input; a mirrored one is counted from the end of its axis of the grid.

        Args:
            across: the coordinate of the grid along columns.
            away: the distance from the start of the tile along its axis. A mirrored row begins at its last point.
        """
        extent, first = self.source.domain.extent(axis), self.first.get(axis, constant(0, INT))
        if axis == self.tiling.axis:
            start = b.apply("sub", extent - self.tiling.size, first) if mirrored else first
            return b.apply("add", start, away)
        here = across if axis == "column" else ir.Index("global", axis)
        return b.apply("sub", extent - 1, here) if mirrored else here

    def each_lane(self, body: Body) -> ir.Block:
        return numbered("lane", 0, self.tiling.lanes, body, lanes=self.vectors)

    # --- points -------------------------------------------------------------------------------------------------

    def compute(self, row: ir.Expr, piece: ir.Expr, out: list[ir.Stmt]) -> None:
        """Compute a piece of a row of the outputs."""
        axis, count = self.tiling.axis, self.tiling.lanes
        b = collector(out)
        column = b.apply("mul", piece, count)
        where = {"column": self.at("column", column, out), axis: self.at(axis, row, out)}
        point = point_at(self.source, where)
        out += map(ir.Declare, (*self.loaded.values(), *self.stored.values()))
        out += accesses(self.loaded, point, True, self.left)

        def lane(k: ir.Expr, out: list[ir.Stmt]) -> None:
            b = collector(out, hint="at")
            at = {**where, "column": b.apply("add", where["column"], k)}
            out += TransposedPoint(self, at, (b.apply("add", column, k), row, piece), k, out).copy()

        out += self.each_lane(lane)
        out += accesses(self.stored, point, False, self.left)

    def aligned(self, row: ir.Expr, piece: ir.Expr, out: list[ir.Stmt]) -> None:
        """Compute a point of a row of the outputs that is shifted back to aligned memory; some points are outside of the grid."""
        domain, tiling, inside = self.source.domain, self.tiling, list[ir.Stmt]()
        b = collector(out, hint="moved")
        at = {tiling.axis: self.at(tiling.axis, row, out), "column": self.first["column"]}
        first: ir.Expr = constant(0, INT)
        for axis in ("element", *domain.axes) if domain.elements > 1 else domain.axes:
            first = b.apply("add", b.apply("mul", first, domain.extent(axis)), at.get(axis, ir.Index("global", axis)))
        displacement = b.apply("and", first, tiling.align - 1)
        at["column"] = collector(out, hint="at").apply("sub", self.at("column", piece, out), displacement)
        there = b.apply("sub", b.apply("add", piece, tiling.align - 1), displacement), row, piece
        inside += TransposedPoint(self, at, there, constant(0, INT), inside).copy()
        test = b.apply("lt", b.cast(at["column"], Type(UINT), saturate=False), domain.extent("column"))
        out.append(ir.If(test, tuple(inside)))


class TransposedPoint(Instance):
    """Copies the body of the user for one point, with arrays instead of fields.

    Args:
        at: the coordinates of the point along the axes of tiles.
        there: its row and its column in tiles, and the number of the piece that has the row.
        lane: the number of the point among those of the thread.
    """

    def __init__(
        self,
        transposing: TransposeKernel,
        at: dict[str, ir.Expr],
        there: tuple[ir.Expr, ir.Expr, ir.Expr],
        lane: ir.Expr,
        out: list[ir.Stmt],
    ) -> None:
        super().__init__(transposing.source)
        self.transposing, self.at, self.there, self.lane = transposing, at, there, lane
        self.head = collector(out, hint="at")

    def position(self, index: ir.Index) -> ir.Expr:
        if index.axis in ir.GRID_AXES and index.kind == "global_size":
            return constant(self.kernel.domain.extent(index.axis), INT)
        return self.head.apply("add", self.at[index.axis], index.offset) if index.axis in self.at else index

    def loaded(self, read: ir.Read, loc: Loc | None, out: list[ir.Stmt]) -> ir.Expr | None:
        if not self.transposing.keeps(read):
            return None
        b, transposing, values = collector(out, loc), self.transposing, list[ir.Expr]()
        row, column, piece = self.there
        for place in ((read.field, e) for e in elements(read.field, read.element)):
            if read.point is not None:
                tile, size = transposing.tiles[place], transposing.tiling.size
                moved = transposing.displacement(piece, tile, b)
                if transposing.axes[place][-1][1]:
                    column = b.apply("sub", size - 1, self.there[1])
                values.append(b.bind(ir.Load(tile, (row, b.apply("add", column, moved)), tile.type)))
            elif transposing.loaded:
                array = transposing.loaded[place]
                values.append(b.bind(ir.Load(array, (self.lane,), array.type)))
            else:
                kind = Type(read.field.type.storage)
                values.append(b.bind(ir.Read(read.field, kind, point_at(self.kernel, self.at), place[1], "unchecked")))
        return values[0] if len(values) == 1 else ir.Pack(tuple(values), read.type)

    def written(self, write: ir.Write) -> ir.Block:
        if not self.transposing.stored:
            return (replace(write, value=self.expr(write.value), point=point_at(self.kernel, self.at)),)
        arrays = [self.transposing.stored[write.field, e] for e in elements(write.field, write.element)]
        lanes = collector(out := list[ir.Stmt](), write.loc).lanes(self.expr(write.value))
        stores = [ir.Store(array, (self.lane,), v, write.loc) for array, v in zip(arrays, lanes, strict=True)]
        return (*out, *stores)


class TransposeWords(TransposeKernel):
    """Builds the kernel that moves small elements in whole words although rows are not aligned; the lanes of a thread are a word.

    A row of a tile holds the words of a row of the input: it begins up to a word earlier, and has up to a word fewer elements that
    count.
    """

    def start(self, axis: str, threads: str, out: list[ir.Stmt]) -> ir.Expr:
        """The first point of the tile along an axis of the grid; the last tiles end beyond the grid."""
        b = collector(out, hint="left" if axis == "column" else "top", temporary=False)
        return b.apply("mul", self.number(threads), self.tiling.step(axis))

    @property
    def skewed(self) -> bool:
        return False

    def misalignment(self, row: ir.Expr, first: ir.Expr, extent: int, to: int, b: Builder) -> ir.Expr:
        """The distance of an element of a row from the aligned place before it, for rows of `extent` elements."""
        return b.apply("and", b.apply("add", b.apply("mul", row, extent), first), to - 1)

    def fill(self, place: Place, row: ir.Expr, piece: ir.Expr, out: list[ir.Stmt]) -> None:
        (field, element), axis, count, domain = place, self.tiling.axis, self.tiling.lanes, self.source.domain
        tile, staged, rows, columns = (
            self.tiles[place],
            self.staged[place],
            domain.extent("column"),
            domain.extent(axis),
        )
        b = collector(out, hint="across")
        across = b.apply("sub", b.apply("add", self.first["column"], row), self.tiling.align - 1)
        across = b.apply("min", b.apply("max", across, 0), rows - 1)
        first = b.apply("sub", self.first[axis], self.misalignment(across, self.first[axis], columns, count, b))
        column = b.apply("add", first, b.apply("mul", piece, count))
        inside = b.apply("or", b.apply("lt", across, rows - 1), b.apply("le", column, columns - count))

        def point(column: ir.Expr) -> tuple[ir.Expr, ...]:
            where = {"column": across, axis: column}
            return tuple(where[name] for name, _ in self.axes[place])

        def lane(k: ir.Expr, out: list[ir.Stmt]) -> None:
            b = collector(out)
            there = b.apply("min", b.apply("add", column, k), columns - 1)
            out.append(ir.Store(staged, (k,), b.bind(ir.Read(field, tile.type, point(there), element, "unchecked"))))

        def store(k: ir.Expr, out: list[ir.Stmt]) -> None:
            b = collector(out)
            there = b.apply("add", b.apply("mul", piece, count), k)
            out.append(ir.Store(tile, (row, there), b.bind(ir.Load(staged, (k,), tile.type))))

        whole = ir.Wide(field, staged, True, point(column), element)
        out += [ir.Declare(staged), ir.If(inside, (whole,), self.each_lane(lane)), *self.each_lane(store)]

    def aligned(self, row: ir.Expr, piece: ir.Expr, out: list[ir.Stmt]) -> None:
        """Compute a word of a row of the outputs; those at the ends of rows may be partly outside of the grid."""
        tiling, domain, body = self.tiling, self.source.domain, list[ir.Stmt]()
        axis, count = tiling.axis, tiling.lanes
        rows, columns = domain.extent(axis), domain.extent("column")
        b = collector(out, hint="at")
        at = b.apply("add", self.first[axis], row)
        inner = collector(body, hint="moved")
        moved = self.misalignment(at, self.first["column"], columns, tiling.align, inner)
        across = inner.apply("sub", inner.apply("mul", piece, count), moved)
        column = inner.apply("add", self.first["column"], across)
        body += [ir.Declare(array) for array in self.stored.values()]

        def lane(k: ir.Expr, out: list[ir.Stmt]) -> None:
            b = collector(out, hint="at")
            here = b.apply("add", column, k)
            there = b.apply("add", b.apply("add", across, k), tiling.align - 1)
            misalignment = b.apply("add", row, self.misalignment(here, self.first[axis], rows, count, b))
            out += TransposedPoint(self, {axis: at, "column": here}, (there, misalignment, piece), k, out).copy()

        def one(k: ir.Expr, out: list[ir.Stmt]) -> None:
            b = collector(out)
            for (field, _), array in self.stored.items():
                there = point_at(self.source, {axis: at, "column": b.apply("add", column, k)})
                out.append(ir.Write(field, b.bind(ir.Load(array, (k,), array.type)), there))

        body += self.each_lane(lane)
        point = point_at(self.source, {axis: at, "column": column})
        whole = tuple(accesses(self.stored, point, False))
        test = collector(body)
        inside = test.apply("and", test.apply("ge", column, 0), test.apply("le", column, columns - count))
        body.append(ir.If(inside, whole, self.each_lane(one)))
        needed = b.apply("and", b.apply("lt", row, self.tiling.step(axis)), b.apply("lt", at, rows))
        out.append(ir.If(needed, tuple(body)))


def suits_words(kernel: Kernel) -> bool:
    """Return whether all accesses are transposed reads and writes of planes whose elements have one size below a word."""
    fields, reads = (
        involved(kernel),
        (e for e in expressions(kernel.body) if isinstance(e, ir.Read) and is_own(e.field)),
    )
    small = len({f.type.storage.bits for f in fields}) == 1 and max(f.type.storage.bits for f in fields) <= 16
    flat = len(kernel.domain.shape) == 2 and kernel.domain.elements == max(f.type.planes for f in fields) == 1
    more = kernel.shared("constant") or is_mirrored(kernel) or kernel.shared_memory
    return small and flat and not more and all(read in transposed(kernel) for read in reads)
