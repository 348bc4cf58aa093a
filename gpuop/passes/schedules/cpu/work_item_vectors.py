"""Work-groups whose threads wait or have loops, on CPUs: a thread runs a row of a group's threads as the lanes of its vectors.

Reductions are such: each thread of a row reduces its share, and a tree of fewer and fewer threads joins the shares. What lies
between two barriers is run for all lanes that it is for, a few vectors at a time; so barriers have nothing to wait for, and local
memory is the thread's own. Loops go around vectors then, not inside of each thread, as compilers have them that run threads one
after another; what threads keep in arrays, as in products of matrices, stays in registers. Operations keep their order.
"""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir.build import collector, constant
from gpuop.ir.extents import extent
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Array, Block, Comment, Declare, Expr, For, Index, Let, Load, Ref, Stmt, Store, Var
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import INT, Shape, Type
from gpuop.ir.visit import changed, expressions, walk
from gpuop.passes.coarsening_factor import MOST_VALUES, refused_layouts
from gpuop.passes.schedules.common.instantiate import Placed, positions
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.cpu.group_regions import (
    GroupPart,
    common_to_parts,
    kept_between,
    obstacle_of_group,
    parts_of,
    touched,
)
from gpuop.passes.vectorization_legality import doubles, halves

HIGHEST, GROUPS = 64, 128  # rows of a work-group at most, and groups at least where it has more than the user's
VECTORS = (2, 4, 1)  # that take turns, so that none waits for its own last operation, the best guess first


def refuse(kernel: Kernel) -> str:
    assert kernel.target is not None
    if kernel.target.vector_length == 1:
        return "the device has no vectors"
    if kernel.intermediates:
        return "it has stages"
    if refused := refused_layouts(kernel):
        return refused
    if kernel.shared_memory or kernel.whole or kernel.group is None:
        return "its threads are not joined by work-groups of their own"
    wrong = doubles(kernel.body) if kernel.target.widening == "functions" else ""
    found = wrong or halves(kernel) or obstacle_of_group(kernel)
    return found or ("" if candidates(kernel) else "its body is large")


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    assert kernel.target is not None
    most = kernel.work_group[-1] // kernel.target.vector_length
    least = most if kernel.shared("private") else 1  # arrays in registers: no loop goes around them
    values = sum(isinstance(stmt, Let) for stmt in walk(kernel.body))
    return tuple({"vectors": n} for n in VECTORS if least <= n <= most and n * values <= MOST_VALUES)


def taken(kernel: Kernel, parameters: Parameters) -> Parameters:
    assert kernel.target is not None
    most = kernel.work_group[-1] // kernel.target.vector_length
    return {"vectors": 1 << min(parameters["vectors"], most).bit_length() - 1}


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    return _GroupLanes(kernel, parameters["vectors"]).kernel()


GROUP_LANES = Method("group lanes", ("vectors",), refuse, candidates, taken, apply, open=True)


class _GroupLanes:
    """Attributes:
    vectors: how many take turns.
    own: the thread's own arrays in the place of local ones, a row each, and of those of all threads of a row.
    kept: arrays for what one part makes of each lane and another one needs.
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
        kept = kept_between(kernel)
        self.kept = {var: Array(f"{var.hint}_kept", var.type, (self.width,)) for var in kept}

    def kernel(self) -> Kernel:
        source, domain = self.source, self.source.domain
        out: list[Stmt] = [*source.shared("constant")]
        out.append(Comment(f"the {self.width} threads of a row of a work-group, in vectors of {self.lanes}"))
        out += map(Declare, (*self.own.values(), *self.kept.values()))
        for number, part in enumerate(self.parts):
            later = set[Var]().union(*(touched(other.body) for other in self.parts[number + 1 :]))
            out += self.part(part, later)
        shape = Shape(*domain.shape[:-1], domain.extent("column") // self.width)
        return replace(
            source,
            domain=Domain(shape, domain.elements),
            body=tuple(out),
            points=domain.shape,
            group=Shape(1, self.height(tuple(out)), 1),
            per_thread=Shape(*(1 for _ in shape[:-1]), self.width),
        )

    def height(self, body: Block) -> int:
        """The rows of a work-group: more than there were, where they are many and cannot tell; a group takes time to begin."""
        rows, height = self.source.domain.extent("row"), self.source.work_group[1]
        known = {e.kind for e in expressions(body) if isinstance(e, Index) and e.axis == "row"}
        tells = not known <= {"global", "global_size"}
        while not tells and not self.source.named and height < HIGHEST and rows >= 2 * height * GROUPS:
            height *= 2
        return height

    def part(self, part: GroupPart, later: set[Var]) -> Block:
        """The statements of a part for all of its lanes; what parts need that come later is kept."""
        zero, one = constant(0, INT), constant(1, INT)
        if part.lanes == 1:
            return self.together(part, later, [zero])
        width = min(part.lanes, self.lanes)
        several = min(part.lanes // width, self.vectors)
        vector, lane = Var("vector", Type(INT)), Var("lane", Type(INT))
        head, inner = list[Stmt](), list[Stmt]()
        b, c = collector(head), collector(inner)
        turns = part.lanes // several // width
        first = b.apply("mul", Ref(vector), several * width) if turns > 1 else zero
        columns = [c.apply("add", b.apply("add", first, k * width), Ref(lane)) for k in range(several)]
        body = (*inner, *self.together(part, later, columns))
        lanes = (*head, For(lane, zero, constant(width, INT), one, body, lanes=True))
        return (For(vector, zero, constant(turns, INT), one, lanes),) if turns > 1 else lanes

    def together(self, part: GroupPart, later: set[Var], columns: list[Expr]) -> Block:
        """The statements of a part at some lanes of a row, each statement for all of them."""
        body = (*self.common, *part.body)
        made = {stmt.var for stmt in walk(body) if isinstance(stmt, (Let, For))}
        loads = [var for var in self.kept if var not in made and var in touched(part.body)]
        left = [var for var in self.kept if var in later and (var in made or var in changed(tuple(part.body)))]
        out = list[Stmt]()
        copies = [_Lane(self, column, out) for column in columns]
        for var in loads:
            for copy in copies:
                out.append(Let(copy.vars[var], Load(self.kept[var], (copy.column,), var.type)))
        out += _interleaved(copies, body)
        for var in left:
            out += [Store(self.kept[var], (copy.column,), Ref(copy.vars[var])) for copy in copies]
        return tuple(out)


def _interleaved(copies: list[_Lane], block: Block) -> Block:
    """Copies of statements side by side, in loops that they have in common."""
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


class _Lane(Placed):
    """The statements for a thread of a row."""

    def __init__(self, lanes: _GroupLanes, column: Expr, out: list[Stmt]) -> None:
        self.lanes, self.column = lanes, column
        source = lanes.source
        b = collector(out)
        chunk = Index("global", "column")
        found: dict[Index, Expr] = {}
        for index in positions(source, source.domain):
            if index.kind == "global_size":
                found[index] = extent(source, index.axis)
            elif index.axis == "column" and index.kind == "group":
                found[index] = replace(chunk, offset=index.offset)
            elif index.axis == "column":
                at = column if index.kind == "local" else b.apply("add", b.apply("mul", chunk, lanes.width), column)
                found[index] = b.apply("add", at, index.offset)
        super().__init__(source, found)
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
        """Where the thread has what was in memory of a row of threads, or in that of each of them."""
        if array.space == "private":
            return (*index, Index("local", "column"))
        return index[-1:] if array in self.lanes.own else index
