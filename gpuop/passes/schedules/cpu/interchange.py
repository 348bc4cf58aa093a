"""Loop interchange for reductions of columns on CPUs: loops over rows go around those over columns, so memory is read row by row.

A thread has a strip of columns, in vectors, and an array of the values that each vector has reduced so far:

    before: for each column             after: for each row
              for each row                       for each vector of the strip
                sum += a[row][column]              sums[vector] += a[row][vector]

               strip
            | v0 | v1 | v2 | v3 |       1. v0 .. v3 of row 0
    row 0     ->   ->   ->   ->         2. v0 .. v3 of row 1
    row 1     ->   ->   ->   ->         3. ...
    row 2     ->   ->   ->   ->
    sums    | s0 | s1 | s2 | s3 |       in the first-level cache

Each column adds its rows in the same order as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import prod

from gpuop.ir import nodes as ir
from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import HALF, INT, Shape, Type
from gpuop.ir.visit import bound, changed, expressions, loop_values
from gpuop.passes.coarsening_factor import is_own
from gpuop.passes.instantiate import Instance, of_threads
from gpuop.passes.loops import counted, counter
from gpuop.passes.schedules.common.lane_positions import LanePositions
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.cpu.vector_rows import least, refused_joining
from gpuop.passes.schedules.cpu.work_item_vectors import live_between, touched
from gpuop.passes.vectorization_legality import obstacle, refused_doubles

VECTORS = (64, 32, 16, 8, 4, 2, 1)  # vectors of a thread, the best guess first
HELD = 1 << 14  # bytes of the values of a strip, which stay in the first-level cache
THREADS = 32  # least threads: a few for each core
ROWS = 64  # most rows that an iteration reads: hardware prefetchers follow no more streams
LEAST = 4  # least iterations of all loops together
MANY = 32  # values of a column for which a thread counts as another one


def refuse(kernel: Kernel) -> str:
    if kernel.machine.vector_length == 1:
        return "the device has no vectors"
    if kernel.intermediates:
        return "it has stages"
    if not all(isinstance(stmt, (ir.Let, ir.Assign, ir.For, ir.Write, ir.Comment)) for stmt in kernel.body):
        return "it does more than loops over rows"
    if sum(map(_iterations, _loops(kernel))) < LEAST:
        return "it has no loops over rows"
    if any(_rows(loop) > ROWS for loop in _loops(kernel)):
        return f"an iteration of its loops reads more than {ROWS} rows"
    values = sum(_iterations(loop) * _rows(loop) for loop in _loops(kernel))
    reason = refused_doubles(kernel) or refused_joining(kernel, values / MANY) or obstacle(kernel.body)
    reason = reason or LanePositions(kernel).obstacle() or _refusal(kernel)
    return reason or ("" if candidates(kernel) else "it is small")


def _refusal(kernel: Kernel) -> str:
    """Return the reason why columns, or the values between phases, rule out strips; empty where none does."""
    parts, live = list(expressions(kernel.body)), _live(kernel)
    if any(isinstance(e, ir.Read) and e.point is not None and e.border != "unchecked" for e in parts):
        return "it reads beyond borders"
    if kernel.domain.extent("column") < kernel.machine.vector_length:
        return "its rows are too short for vectors"
    if any(isinstance(e, ir.Index) and e.axis == "column" and e.offset for e in parts):
        return "it reads neighbours"
    if any(var.type.kind == "b" or var.type.lanes > 1 or var.type.dtype is HALF for var in live):
        return "it carries values other than numbers from loop to loop"
    for loop in _loops(kernel):
        reads = {(e.field, e.element) for e in expressions(loop.body) if isinstance(e, ir.Read) and is_own(e.field)}
        of_point = sum(field.type.storage.bits // 8 for field, _ in reads)
        if 2 * _size(var for var in live if var in touched((loop,))) > _rows(loop) * of_point:
            return "storing its partial results would cost more than reading again"
    return ""


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    lanes, domain = kernel.machine.vector_length, kernel.domain
    size = _size(_live(kernel)) * lanes
    columns, rows = domain.extent("column"), prod(domain.shape) // domain.extent("column") * domain.elements
    fit = [n for n in VECTORS if n * size <= HELD]
    return tuple({"vectors": n} for n in fit if kernel.pin or rows * -(-columns // (n * lanes)) >= THREADS)


def legalize(kernel: Kernel, parameters: Parameters) -> Parameters:
    """At most as many vectors as a row has, and as the cache holds."""
    lanes = kernel.machine.vector_length
    most = min(HELD // max(_size(_live(kernel)) * lanes, 1), -(-kernel.domain.extent("column") // lanes))
    return {"vectors": min(parameters["vectors"], max(most, 1))}


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    return _Interchange(kernel, parameters["vectors"]).kernel()


INTERCHANGE = Method("interchange", ("vectors",), refuse, candidates, legalize, apply)


def _loops(kernel: Kernel) -> Iterator[ir.For]:
    """The loops that go around columns."""
    return (stmt for stmt in kernel.body if isinstance(stmt, ir.For) and _reads((stmt,)))


def _reads(block: ir.Block) -> bool:
    return any(isinstance(e, ir.Read) and is_own(e.field) for e in expressions(block))


def _iterations(loop: ir.For) -> int:
    return len(loop_values(loop) or ())


def _rows(loop: ir.For) -> int:
    """The greatest number of rows of a field that an iteration reads."""
    inner = [stmt for stmt in loop.body if isinstance(stmt, ir.For)]
    return sum(_iterations(stmt) * _rows(stmt) for stmt in inner) if inner else 1


def _size(variables: Iterable[ir.Var]) -> int:
    """The bytes of variables, for one column."""
    return sum(var.type.dtype.bits // 8 for var in variables)


def _common(kernel: Kernel) -> set[ir.Stmt]:
    """The statements outside of the loops whose values are the same for all columns."""
    places = LanePositions(kernel)
    return {stmt for stmt in kernel.body if isinstance(stmt, ir.Let) and places.is_common(ir.Ref(stmt.var))}


def _phases(kernel: Kernel) -> list[list[ir.Stmt]]:
    """The phases of a kernel: its loops, and the statements before, between and after them."""
    loops, common = set(map(id, _loops(kernel))), _common(kernel)
    phases: list[list[ir.Stmt]] = [[]]
    for stmt in kernel.body:
        if id(stmt) in loops:
            phases += [[stmt], []]
        elif stmt not in common:
            phases[-1].append(stmt)
    return [phase for phase in phases if any(not isinstance(stmt, ir.Comment) for stmt in phase)]


def _live(kernel: Kernel) -> list[ir.Var]:
    return live_between(kernel, _phases(kernel))


class _Interchange:
    def __init__(self, kernel: Kernel, vectors: int) -> None:
        self.source, self.vectors, self.lanes = kernel, vectors, kernel.machine.vector_length
        self.values = {var: ir.Array(f"{var.hint}_kept", var.type, (vectors, self.lanes)) for var in _live(kernel)}
        self.count = ir.Var("vectors", Type(INT))  # of the strip; the last one has fewer

    def kernel(self) -> Kernel:
        source, domain = self.source, self.source.domain
        columns, width = domain.extent("column"), self.vectors * self.lanes
        points = "x".join(map(str, domain.shape))
        out: list[ir.Stmt] = [ir.Comment(f"{self.vectors} vectors of {self.lanes} columns of {points}, row by row")]
        out += map(ir.Declare, self.values.values())
        b = collector(out)
        left = b.apply("sub", columns, b.apply("mul", ir.Index("global", "column"), width))
        count = b.apply("div", b.apply("add", left, self.lanes - 1), self.lanes)
        out.append(ir.Let(self.count, least(count, self.vectors)))
        common = _common(source)
        out += _Column(source, (), constant(0, INT)).block(tuple(stmt for stmt in source.body if stmt in common))
        for phase in _phases(source):
            out += self.phase(phase)
        shape = Shape(*domain.shape[:-1], -(-columns // width))
        return of_threads(source, shape, tuple(out), group=Shape(1, 1, 1))

    def phase(self, phase: list[ir.Stmt]) -> ir.Block:
        """A loop over rows goes around a loop over vectors; other statements go into a loop over vectors."""
        first = phase[0]
        if len(phase) == 1 and isinstance(first, ir.For) and _reads((first,)):
            return (replace(first, body=(self.each(first.body),), unroll=1),)
        return (self.each(tuple(phase)),)

    def each(self, body: ir.Block) -> ir.For:
        vector, lane = counter("vector"), counter("lane")
        head, out = list[ir.Stmt](), list[ir.Stmt]()
        b = collector(head)
        strip = b.apply("mul", ir.Index("global", "column"), self.vectors * self.lanes)
        place = b.apply("add", strip, b.apply("mul", ir.Ref(vector), self.lanes))
        last = self.source.domain.extent("column") - self.lanes
        first = collector(head, hint="first", temporary=False).bind(least(place, last))
        column = collector(out).apply("add", first, ir.Ref(lane))
        out += self.lane(body, column, (ir.Ref(vector), ir.Ref(lane)))
        head.append(counted(lane, 0, self.lanes, out, lanes=True))
        return counted(vector, 0, ir.Ref(self.count), head)

    def lane(self, body: ir.Block, column: ir.Expr, place: tuple[ir.Expr, ir.Expr]) -> ir.Block:
        """The statements for a column, between loads and stores of its values."""
        defined = {var for var in bound(body) if isinstance(var, ir.Var)}
        loaded = [var for var in self.values if var not in defined and var in touched(body)]
        stored = [var for var in self.values if var in defined or var in changed(body)]
        loads = [ir.Let(var, ir.Load(self.values[var], place, var.type)) for var in loaded]
        stores = [ir.Store(self.values[var], place, ir.Ref(var)) for var in stored]
        block = (*loads, *body, *stores)
        return _Column(self.source, block, column).copy()


class _Column(Instance):
    """Copies statements for a column."""

    def __init__(self, source: Kernel, body: ir.Block, column: ir.Expr) -> None:
        columns = constant(source.domain.extent("column"), INT)
        by_index = {ir.Index("global", "column"): column, ir.Index("global_size", "column"): columns}
        super().__init__(source, by_index, body)

    def expr(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Read) and expr.point is None:
            expr = replace(expr, border="unchecked")
        return super().expr(expr)
