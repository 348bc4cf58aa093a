"""Work-item vectorization on CPUs, for work-groups with barriers or loops: a thread runs a row of a group as lanes of its vectors.

A reduction by a group of 256 threads: each reduces its share, and a tree of fewer and fewer threads combines the shares.

    work-group                                   one thread, in vectors of 8 lanes
      share                   256 threads          for 32 vectors: share
      barrier
      combine two shares      128 threads          for 16 vectors: combine two shares
      barrier
      combine two shares       64 threads          for  8 vectors: combine two shares

Barriers have nothing to wait for, and local memory is private to the thread. Loops of threads go around vectors, and arrays of
threads, as in products of matrices, stay in registers. Operations keep their order.
"""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.build import collector, constant
from gpuop.ir.extents import extent
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Array, Block, Comment, Declare, Expr, For, Index, Let, Load, Ref, Stmt, Store, Var
from gpuop.ir.types import INT, Shape, Type
from gpuop.ir.visit import changed, expressions, walk
from gpuop.passes.coarsening_factor import MOST_VALUES, refused_layouts
from gpuop.passes.instantiate import Instance, of_threads, positions
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.cpu.group_regions import (
    GroupPart,
    common_to_parts,
    live_between,
    obstacle_of_group,
    parts_of,
    touched,
)
from gpuop.passes.vectorization_legality import doubles, halves

HIGHEST, GROUPS = 64, 128  # most rows of a work-group, and least groups, where it gets more rows than the user gave it
VECTORS = (2, 4, 1)  # interleaved vectors, against the latency of operations, the best guess first


def refuse(kernel: Kernel) -> str:
    assert kernel.target is not None
    if kernel.target.vector_length == 1:
        return "the device has no vectors"
    if kernel.intermediates:
        return "it has stages"
    if reason := refused_layouts(kernel):
        return reason
    if kernel.shared_memory or kernel.whole or kernel.group is None:
        return "its threads are not joined by work-groups of their own"
    precision = doubles(kernel.body) if kernel.target.widening == "functions" else ""
    reason = precision or halves(kernel) or obstacle_of_group(kernel)
    return reason or ("" if candidates(kernel) else "its body is large")


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    assert kernel.target is not None
    most = kernel.work_group[-1] // kernel.target.vector_length
    least = most if kernel.shared("private") else 1  # arrays in registers: no loop goes around them
    values = sum(isinstance(stmt, Let) for stmt in walk(kernel.body))
    return tuple({"vectors": n} for n in VECTORS if least <= n <= most and n * values <= MOST_VALUES)


def legalize(kernel: Kernel, parameters: Parameters) -> Parameters:
    assert kernel.target is not None
    most = kernel.work_group[-1] // kernel.target.vector_length
    return {"vectors": 1 << min(parameters["vectors"], most).bit_length() - 1}


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    return _WorkItemVectors(kernel, parameters["vectors"]).kernel()


WORK_ITEM_VECTORS = Method("group lanes", ("vectors",), refuse, candidates, legalize, apply, open=True)


class _WorkItemVectors:
    """Builds the kernel.

    Attributes:
        vectors: the number of interleaved vectors.
        own: the private arrays instead of local ones, a row each, and instead of the private ones of all threads of a row.
        spilled: the arrays of variables that one part defines in each lane and a later one uses.
    """

    def __init__(self, kernel: Kernel, vectors: int) -> None:
        assert kernel.target is not None
        self.source, self.vectors, self.lanes = kernel, vectors, kernel.target.vector_length
        self.width = kernel.work_group[-1]
        self.parts = parts_of(kernel)
        self.common = common_to_parts(kernel)
        shared = [stmt.array for stmt in kernel.shared("local")]
        self.own = {array: replace(array, shape=array.extents[-1:], space="private") for array in shared}
        for stmt in kernel.shared("private"):
            self.own[stmt.array] = replace(stmt.array, shape=(*stmt.array.extents, self.width))
        live = live_between(kernel)
        self.spilled = {var: Array(f"{var.hint}_kept", var.type, (self.width,)) for var in live}

    def kernel(self) -> Kernel:
        source, domain = self.source, self.source.domain
        out: list[Stmt] = [Comment(f"the {self.width} threads of a row of a work-group, in vectors of {self.lanes}")]
        out += map(Declare, (*self.own.values(), *self.spilled.values()))
        for number, part in enumerate(self.parts):
            later = set[Var]().union(*(touched(other.body) for other in self.parts[number + 1 :]))
            out += self.part(part, later)
        shape = Shape(*domain.shape[:-1], domain.extent("column") // self.width)
        group, per_thread = Shape(1, self.height(tuple(out)), 1), Shape(*(1 for _ in shape[:-1]), self.width)
        return of_threads(source, shape, tuple(out), group=group, per_thread=per_thread)

    def height(self, body: Block) -> int:
        """The rows of a work-group: more where there are many and no thread knows its group, since groups take time to start."""
        rows, height = self.source.domain.extent("row"), self.source.work_group[1]
        kinds = {e.kind for e in expressions(body) if isinstance(e, Index) and e.axis == "row"}
        knows_row = not kinds <= {"global", "global_size"}
        while not knows_row and not self.source.named and height < HIGHEST and rows >= 2 * height * GROUPS:
            height *= 2
        return height

    def part(self, part: GroupPart, later: set[Var]) -> Block:
        """The statements of a part for all of its lanes; variables that later parts use are spilled to arrays."""
        zero, one = constant(0, INT), constant(1, INT)
        if part.lanes == 1:
            return self.together(part, later, [zero])
        width = min(part.lanes, self.lanes)
        interleaved = min(part.lanes // width, self.vectors)
        vector, lane = Var("vector", Type(INT)), Var("lane", Type(INT))
        head, inner = list[Stmt](), list[Stmt]()
        b, c = collector(head), collector(inner)
        count = part.lanes // interleaved // width
        first = b.apply("mul", Ref(vector), interleaved * width) if count > 1 else zero
        columns = [c.apply("add", b.apply("add", first, k * width), Ref(lane)) for k in range(interleaved)]
        body = (*inner, *self.together(part, later, columns))
        lanes = (*head, For(lane, zero, constant(width, INT), one, body, lanes=True))
        return (For(vector, zero, constant(count, INT), one, lanes),) if count > 1 else lanes

    def together(self, part: GroupPart, later: set[Var], columns: list[Expr]) -> Block:
        """The statements of a part at some lanes of a row, interleaved."""
        body = (*self.common, *part.body)
        defined = {stmt.var for stmt in walk(body) if isinstance(stmt, (Let, For))}
        loads = [var for var in self.spilled if var not in defined and var in touched(part.body)]
        spills = [var for var in self.spilled if var in later and (var in defined or var in changed(tuple(part.body)))]
        out = list[Stmt]()
        copies = [_Lane(self, column, out) for column in columns]
        for var in loads:
            for copy in copies:
                out.append(Let(copy.vars[var], Load(self.spilled[var], (copy.column,), var.type)))
        out += _interleaved(copies, body)
        for var in spills:
            out += [Store(self.spilled[var], (copy.column,), Ref(copy.vars[var])) for copy in copies]
        return tuple(out)


def _interleaved(copies: list[_Lane], block: Block) -> Block:
    """Interleave copies of statements, in common loops."""
    out: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, For):
            for copy in copies[1:]:
                copy.vars[stmt.var] = copies[0].vars[stmt.var]
            var = copies[0].vars[stmt.var]
            start, stop, step = map(copies[0].expr, (stmt.start, stmt.stop, stmt.step))
            body = _interleaved(copies, stmt.body)
            out.append(replace(stmt, var=var, start=start, stop=stop, step=step, body=body))
        elif isinstance(stmt, Comment):
            out.append(stmt)
        else:
            for copy in copies:
                out += copy.stmt(stmt)
    return tuple(out)


class _Lane(Instance):
    """Copies the statements for a thread of a row."""

    def __init__(self, lanes: _WorkItemVectors, column: Expr, out: list[Stmt]) -> None:
        self.lanes, self.column = lanes, column
        source = lanes.source
        b = collector(out)
        chunk = Index("global", "column")
        by_index: dict[Index, Expr] = {}
        for index in positions(source):
            if index.kind == "global_size":
                by_index[index] = extent(source, index.axis)
            elif index.axis == "column" and index.kind == "group":
                by_index[index] = replace(chunk, offset=index.offset)
            elif index.axis == "column":
                at = column if index.kind == "local" else b.apply("add", b.apply("mul", chunk, lanes.width), column)
                by_index[index] = b.apply("add", at, index.offset)
        super().__init__(source, by_index)
        self.arrays.update(lanes.own)

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Load) and isinstance(expr.memory, Array):
            expr = replace(expr, index=self.place(expr.memory, expr.index))
        return super().expr(expr)

    def stmt(self, stmt: Stmt) -> Block:
        if isinstance(stmt, Store) and isinstance(stmt.memory, Array):
            stmt = replace(stmt, index=self.place(stmt.memory, stmt.index))
        return super().stmt(stmt)

    def place(self, array: Array, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The index in the private array that stands for local memory, or for a private array of each thread of a row."""
        if array.space == "private":
            return (*index, Index("local", "column"))
        return index[-1:] if array in self.lanes.own else index
