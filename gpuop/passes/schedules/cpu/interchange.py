"""Reductions of columns on CPUs: loops over rows go around those over columns, so that memory is read row by row.

A thread has a strip of columns, in vectors. What a vector has reduced so far is kept in arrays of the thread's own while the
others take a turn of the same loop: a few rows are read at a time, for as long as a strip is wide. Operations keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import prod

from gpuop.ir import nodes as ir
from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import HALF, INT, Shape, Type
from gpuop.ir.visit import bound, changed, expressions, loop_values
from gpuop.passes.coarsening_factor import is_own
from gpuop.passes.schedules.common.instantiate import Placed
from gpuop.passes.schedules.common.lane_positions import LanePlaces
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.cpu.vector_rows import least, unjoined
from gpuop.passes.vectorization_legality import doubles, obstacle

VECTORS = (64, 32, 16, 8, 4, 2, 1)  # of a thread, the best guess first
HELD = 1 << 14  # bytes that they keep, which stay in the nearest cache
THREADS = 32  # at least: a few for each core
ROWS = 64  # that a turn reads at most: more are more places in memory at a time than CPUs foresee
LEAST = 4  # turns of all loops together that are worth it
MANY = 32  # values that a thread reads of its column, from which on it counts as several


def refuse(kernel: Kernel) -> str:
    assert kernel.target is not None
    if kernel.target.vector_length == 1:
        return "the device has no vectors"
    if kernel.intermediates:
        return "it has stages"
    if not all(isinstance(stmt, (ir.Let, ir.Assign, ir.For, ir.Write, ir.Comment)) for stmt in kernel.body):
        return "it does more than loops over rows"
    if sum(map(_turns, _loops(kernel))) < LEAST:
        return "it has no loops over rows"
    if any(_rows(loop) > ROWS for loop in _loops(kernel)):
        return f"a turn of its loops reads more than {ROWS} rows"
    wrong = doubles(kernel.body) if kernel.target.widening == "functions" else ""
    values = sum(_turns(loop) * _rows(loop) for loop in _loops(kernel))
    found = (
        wrong
        or unjoined(kernel, values / MANY)
        or obstacle(kernel.body)
        or LanePlaces(kernel).obstacle()
        or _refusal(kernel)
    )
    return found or ("" if candidates(kernel) else "it is small")


def _refusal(kernel: Kernel) -> str:
    """What of its columns, and of what is kept of them, stands against strips."""
    assert kernel.target is not None
    parts, kept = list(expressions(kernel.body)), _kept(kernel)
    if any(isinstance(e, ir.Read) and e.point is not None and e.border != "unchecked" for e in parts):
        return "it reads beyond borders"
    if kernel.domain.extent("column") < kernel.target.vector_length:
        return "its rows are too short for vectors"
    if any(isinstance(e, ir.Index) and e.axis == "column" and e.offset for e in parts):
        return "it reads neighbours"
    if any(var.type.kind == "b" or var.type.lanes > 1 or var.type.dtype is HALF for var in kept):
        return "it keeps what is no number of its own from loop to loop"
    for loop in _loops(kernel):
        if 2 * _size(var for var in kept if var in _touched(loop)) > _rows(loop) * _read(loop):
            return "to keep what it reduces would cost more than to read"
    return ""


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    assert kernel.target is not None
    lanes, domain = kernel.target.vector_length, kernel.domain
    size = _size(_kept(kernel)) * lanes
    rows = prod(domain.shape) // domain.extent("column") * domain.elements
    return tuple(
        {"vectors": n}
        for n in VECTORS
        if n * size <= HELD and (kernel.pin is not None or rows * -(-domain.extent("column") // (n * lanes)) >= THREADS)
    )


def taken(kernel: Kernel, parameters: Parameters) -> Parameters:
    """No more vectors than a row has."""
    assert kernel.target is not None
    lanes = kernel.target.vector_length
    most = min(HELD // max(_size(_kept(kernel)) * lanes, 1), -(-kernel.domain.extent("column") // lanes))
    return {"vectors": min(parameters["vectors"], max(most, 1))}


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    return _Interchange(kernel, parameters["vectors"]).kernel()


INTERCHANGE = Method("interchange", ("vectors",), refuse, candidates, taken, apply)


def _loops(kernel: Kernel) -> Iterator[ir.For]:
    """The loops that go around columns."""
    return (stmt for stmt in kernel.body if isinstance(stmt, ir.For) and _reads((stmt,)))


def _reads(block: ir.Block) -> bool:
    return any(isinstance(e, ir.Read) and is_own(e.field) for e in expressions(block))


def _turns(loop: ir.For) -> int:
    return len(loop_values(loop) or ())


def _rows(loop: ir.For) -> int:
    """How many rows a turn reads of a field, at most."""
    inner = [stmt for stmt in loop.body if isinstance(stmt, ir.For)]
    return sum(_turns(stmt) * _rows(stmt) for stmt in inner) if inner else 1


def _read(loop: ir.For) -> int:
    """The bytes that it reads at a place."""
    reads = {(e.field, e.element) for e in expressions(loop.body) if isinstance(e, ir.Read) and is_own(e.field)}
    return sum(field.type.storage.bits // 8 for field, _ in reads)


def _size(kept: Iterable[ir.Var]) -> int:
    """The bytes that are kept of a column."""
    return sum(var.type.dtype.bits // 8 for var in kept)


def _common(kernel: Kernel) -> set[ir.Stmt]:
    """Statements before and between the loops whose values all columns have in common."""
    places = LanePlaces(kernel)
    return {stmt for stmt in kernel.body if isinstance(stmt, ir.Let) and places.is_common(ir.Ref(stmt.var))}


def _phases(kernel: Kernel) -> list[list[ir.Stmt]]:
    """A loop each, and what comes before, between and after them."""
    loops, common = set(map(id, _loops(kernel))), _common(kernel)
    found: list[list[ir.Stmt]] = [[]]
    for stmt in kernel.body:
        if id(stmt) in loops:
            found += [[stmt], []]
        elif stmt not in common:
            found[-1].append(stmt)
    return [phase for phase in found if any(not isinstance(stmt, ir.Comment) for stmt in phase)]


def _touched(*block: ir.Stmt) -> set[ir.Var]:
    """The variables that statements use or change."""
    used = {e.var for e in expressions(block) if isinstance(e, ir.Ref)}
    return used | {var for var in changed(block) if isinstance(var, ir.Var)}


def _kept(kernel: Kernel) -> list[ir.Var]:
    """What one phase makes and another one needs, in order."""
    phases = _phases(kernel)
    made = [{var for var in bound(tuple(phase)) if isinstance(var, ir.Var)} for phase in phases]
    needed = [_touched(*phase) for phase in phases]
    order = [stmt.var for stmt in kernel.body if isinstance(stmt, ir.Let)]
    return [
        var for var in order if any(var in m and any(var in n for n in needed[k + 1 :]) for k, m in enumerate(made))
    ]


class _Interchange:
    def __init__(self, kernel: Kernel, vectors: int) -> None:
        assert kernel.target is not None
        self.source, self.vectors, self.lanes = kernel, vectors, kernel.target.vector_length
        self.kept = {var: ir.Array(f"{var.hint}_kept", var.type, (vectors, self.lanes)) for var in _kept(kernel)}
        self.count = ir.Var("vectors", Type(INT))  # of the strip; the last one has fewer

    def kernel(self) -> Kernel:
        source, domain = self.source, self.source.domain
        columns, width = domain.extent("column"), self.vectors * self.lanes
        points = "x".join(map(str, domain.shape))
        out: list[ir.Stmt] = [ir.Comment(f"{self.vectors} vectors of {self.lanes} columns of {points}, row by row")]
        out += map(ir.Declare, self.kept.values())
        b = collector(out)
        left = b.apply("sub", columns, b.apply("mul", ir.Index("global", "column"), width))
        count = b.apply("div", b.apply("add", left, self.lanes - 1), self.lanes)
        out.append(ir.Let(self.count, least(count, self.vectors)))
        common = _common(source)
        out += _Column(source, (), constant(0, INT)).block(tuple(stmt for stmt in source.body if stmt in common))
        for phase in _phases(source):
            out += self.phase(phase)
        shape = Shape(*domain.shape[:-1], -(-columns // width))
        return replace(
            source, domain=Domain(shape, domain.elements), body=tuple(out), points=domain.shape, group=Shape(1, 1, 1)
        )

    def phase(self, phase: list[ir.Stmt]) -> ir.Block:
        """A loop goes around the vectors, with their parts of a turn inside; other statements go into a loop over them."""
        first = phase[0]
        if len(phase) == 1 and isinstance(first, ir.For) and _reads((first,)):
            return (replace(first, body=(self.each(first.body),), unroll=1),)
        return (self.each(tuple(phase)),)

    def each(self, body: ir.Block) -> ir.For:
        vector, lane = ir.Var("vector", Type(INT)), ir.Var("lane", Type(INT))
        head, out = list[ir.Stmt](), list[ir.Stmt]()
        b = collector(head)
        strip = b.apply("mul", ir.Index("global", "column"), self.vectors * self.lanes)
        place = b.apply("add", strip, b.apply("mul", ir.Ref(vector), self.lanes))
        first = collector(head, hint="first", temporary=False).bind(
            least(place, self.source.domain.extent("column") - self.lanes)
        )
        column = collector(out).apply("add", first, ir.Ref(lane))
        out += self.lane(body, column, (ir.Ref(vector), ir.Ref(lane)))
        start, one = constant(0, INT), constant(1, INT)
        head.append(ir.For(lane, start, constant(self.lanes, INT), one, tuple(out), lanes=True))
        return ir.For(vector, start, ir.Ref(self.count), one, tuple(head))

    def lane(self, body: ir.Block, column: ir.Expr, place: tuple[ir.Expr, ir.Expr]) -> ir.Block:
        """The statements for a column, between loads and stores of what is kept."""
        made = {var for var in bound(body) if isinstance(var, ir.Var)}
        given = [var for var in self.kept if var not in made and var in _touched(*body)]
        left = [var for var in self.kept if var in made or var in changed(body)]
        loads = [ir.Let(var, ir.Load(self.kept[var], place, var.type)) for var in given]
        stores = [ir.Store(self.kept[var], place, ir.Ref(var)) for var in left]
        whole = (*loads, *body, *stores)
        return _Column(self.source, whole, column).copy()


class _Column(Placed):
    """Statements for a column."""

    def __init__(self, source: Kernel, body: ir.Block, column: ir.Expr) -> None:
        columns = constant(source.domain.extent("column"), INT)
        found = {ir.Index("global", "column"): column, ir.Index("global_size", "column"): columns}
        super().__init__(source, found, body)

    def expr(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Read) and expr.point is None:
            expr = replace(expr, border="unchecked")
        return super().expr(expr)
