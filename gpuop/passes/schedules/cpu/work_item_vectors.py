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

from collections.abc import Iterable
from dataclasses import field, replace

from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.build import collector, constant
from gpuop.ir.extents import extent
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import HALF, INT, Shape
from gpuop.ir.visit import bound, changed, expressions, loop_values, values, walk, walk_expr
from gpuop.passes.coarsening_factor import MOST_VALUES, is_own, refused_layouts
from gpuop.passes.instantiate import Instance, of_threads, own_point, positions
from gpuop.passes.lane_numbers import LaneAnalysis, LaneNumbers
from gpuop.passes.loops import counted, counter
from gpuop.passes.ranges import Ranges
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.vectorization_legality import halves, refused_doubles

COLUMN, ROW = ir.Index("local", "column"), ir.Index("local", "row")
LIMITED = ("unchecked", "clamp", "fill")  # borders through which neighbours read neighbours, within limits
NEIGHBOURS = tuple(range(16))  # the lanes of the longest vectors


@dataclass
class GroupPart:
    """Statements that the first `lanes` threads of each row run without a barrier between them."""

    lanes: int
    body: list[ir.Stmt] = field(default_factory=list)


def parts_of(kernel: Kernel) -> list[GroupPart]:
    """The parts, in order, without the statements that are common to all."""
    width, common = kernel.work_group[-1], set(common_to_parts(kernel))
    conditions = {stmt.var: stmt.value for stmt in common if isinstance(stmt, ir.Let)}
    parts: list[GroupPart] = []
    comments: list[ir.Stmt] = []
    waits = True
    for stmt in kernel.body:
        if isinstance(stmt, ir.Barrier):
            waits = True
        elif isinstance(stmt, ir.Comment):
            comments.append(stmt)
        elif not isinstance(stmt, ir.Declare) and stmt not in common:
            lanes = _lanes(stmt, conditions) if isinstance(stmt, ir.If) and not stmt.orelse else 0
            if waits or parts[-1].lanes != (lanes or width):
                parts.append(GroupPart(lanes or width))
            parts[-1].body += [*comments, *(stmt.then if isinstance(stmt, ir.If) and lanes else (stmt,))]
            comments, waits = [], False
    return parts


def _lanes(stmt: ir.If, conditions: dict[ir.Var, ir.Expr]) -> int:
    """The number of threads of a row, from the first one on, that run a branch; 0 where the condition is another one."""
    match conditions.get(stmt.cond.var) if isinstance(stmt.cond, ir.Ref) else None:
        case ir.Apply(op="lt", args=(ir.Index() as index, ir.Const(value=count))) if index == COLUMN:
            return max(int(count), 0)
        case ir.Apply(op="eq", args=(ir.Index() as index, ir.Const(value=0))) if index == COLUMN:
            return 1
    return 0


def common_to_parts(kernel: Kernel) -> list[ir.Stmt]:
    """Values that depend on the number of the thread alone: each part recomputes those that it needs."""
    common: dict[ir.Var, ir.Stmt] = {}
    for stmt in kernel.body:
        if isinstance(stmt, ir.Let) and not stmt.var.mutable:
            sources = [e for e in expressions((stmt,)) if isinstance(e, (ir.Ref, ir.Load, ir.Read))]
            by_value = all(e.var in common if isinstance(e, ir.Ref) else _is_by_value(e) for e in sources)
            common |= {stmt.var: stmt} if by_value else {}
    return list(common.values())


def _is_by_value(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Read) and not is_own(expr.field)


def touched(block: Iterable[ir.Stmt]) -> set[ir.Var]:
    """The variables that statements use or change."""
    body = tuple(block)
    result = {e.var for e in expressions(body) if isinstance(e, ir.Ref)}
    return result | {var for var in changed(body) if isinstance(var, ir.Var)}


def live_between(kernel: Kernel, parts: Iterable[Iterable[ir.Stmt]]) -> list[ir.Var]:
    """The variables that one part of a body defines and a later one uses, in order."""
    blocks = list(map(tuple, parts))
    defined, needed = map(bound, blocks), list(map(touched, blocks))
    crossing = {var for k, m in enumerate(defined) for n in needed[k + 1 :] for var in m & n}
    return [stmt.var for stmt in walk(kernel.body) if isinstance(stmt, ir.Let) and stmt.var in crossing]


def _live(kernel: Kernel) -> list[ir.Var]:
    return live_between(kernel, (part.body for part in parts_of(kernel)))


# --- may its threads be lanes -----------------------------------------------------------------------------------------


def obstacle_of_group(kernel: Kernel) -> str:
    """Return the reason why the threads of a row of a work-group cannot be lanes; empty where they can."""
    if not any(isinstance(stmt, (ir.Barrier, ir.For)) for stmt in kernel.body):
        return "its threads neither wait for one another nor have loops"
    group, lanes = kernel.work_group, kernel.machine.vector_length
    if group[0] > 1 or group[-1] % lanes or kernel.domain.extent("column") % group[-1]:
        return "rows of its work-groups are not vectors"
    return _memory_obstacle(kernel) or next(filter(None, map(_Lanes(kernel).obstacle, parts_of(kernel))), "")


def _memory_obstacle(kernel: Kernel) -> str:
    """Return the reason why local memory, arrays of threads, or values between parts rule out lanes; empty where none does."""
    shared, own = kernel.shared("local"), kernel.shared("private")
    arrays = [stmt for stmt in walk(kernel.body) if isinstance(stmt, ir.Declare) and stmt.array.space == "private"]
    if len(arrays) > len(own) or (own and len(parts_of(kernel)) > 1):
        return "it has arrays"
    numbers = [*(stmt.array.type for stmt in (*shared, *own)), *(var.type for var in _live(kernel))]
    if any(type_.kind == "b" or type_.lanes > 1 or type_.dtype is HALF for type_ in numbers):
        return "it keeps values other than numbers"
    indices = {e for e in expressions(kernel.body) if isinstance(e, ir.Index) and not e.kind.startswith("global")}
    if any(e.axis == "column" and e.kind not in ("local", "group") for e in indices):
        return "it uses indices of its work-groups"
    return _row_obstacle(kernel, {stmt.array for stmt in shared}, indices) if shared else ""


def _row_obstacle(kernel: Kernel, shared: set[ir.Array], indices: set[ir.Index]) -> str:
    """Return the reason why the local memory of rows of threads cannot be private to a thread; empty where it can."""
    rows = 2 if kernel.work_group[1] > 1 else 1
    if any(array.volatile or not rows <= len(array.shape) <= 2 for array in shared):
        return "its local memory has no row for each row of threads"
    places = [e.index for e in expressions(kernel.body) if isinstance(e, ir.Load) and e.memory in shared]
    places += [stmt.index for stmt in walk(kernel.body) if isinstance(stmt, ir.Store) and stmt.memory in shared]
    if any(len(index) > 1 and index[0] != ROW for index in places):
        return "rows of threads use the memory of others"
    if sum(e == ROW for e in expressions(kernel.body)) > len(places):
        return "threads know their row in a work-group"
    return "" if all(e.axis == "column" for e in indices - {ROW}) else "it uses indices of its work-groups"


def _uses_memory(node: ir.Expr | ir.Stmt) -> bool:
    return isinstance(node, (ir.Read, ir.Load, ir.Store))


class _Lanes(LaneAnalysis):
    """The integers of a row of threads, as lanes of vectors."""

    def __init__(self, kernel: Kernel) -> None:
        self.width, self.open = kernel.work_group[-1], bool(kernel.named)
        self.differing: dict[ir.Var, ir.Ref] = {}
        super().__init__(self.differing)
        self.note(tuple(common_to_parts(kernel)))
        self.ranges = Ranges(kernel)
        for stmt in walk(kernel.body):
            self.ranges.meet(stmt)

    def find(self, expr: ir.Expr) -> LaneNumbers | None:
        return LaneNumbers(expr, NEIGHBOURS) if self.is_column(expr) else super().find(expr)

    def same(self, atom: ir.Expr) -> bool:
        return not self.is_column(atom) and super().same(atom)

    @staticmethod
    def is_column(expr: ir.Expr) -> bool:
        return isinstance(expr, ir.Index) and expr.axis == "column" and expr.kind in ("local", "global")

    def note(self, block: ir.Block) -> None:
        """Record the variables that statements define."""
        for stmt in walk(block):
            if isinstance(stmt, ir.Let):
                numbers = None if stmt.var.mutable else self.find(stmt.value)
                if numbers is not None:
                    self.of[stmt.var] = numbers
                elif stmt.var.mutable or not all(map(self.is_alike, walk_expr(stmt.value))):
                    self.differing[stmt.var] = ir.Ref(stmt.var)

    def is_alike(self, expr: ir.Expr) -> bool:
        return self.same(expr) and not (isinstance(expr, ir.Read) and expr.point is None and is_own(expr.field))

    def obstacle(self, part: GroupPart) -> str:
        """Return the reason why a part cannot be in vectors; empty where it can."""
        body = tuple(part.body)
        for stmt in walk(body):
            match stmt:
                case ir.Write() if part.lanes > 1 and stmt not in body:
                    return "its threads write side by side, in turns or under conditions"
                case ir.For() if loop_values(stmt) is None and not (self.open and all(map(self.same, values(stmt)))):
                    return "the iterations of its loops differ between threads"
                case ir.Store(memory=ir.Array(space="private")):
                    pass
                case ir.Store(index=index) if part.lanes > 1 and (stmt not in body or self.same(index[-1])):
                    return "its threads write to the same place"
                case ir.If() if any(map(_uses_memory, (*expressions((stmt,)), *walk((stmt,))))):
                    return "its threads use memory under conditions"
                case ir.Let() | ir.Assign() | ir.Write() | ir.For() | ir.If() | ir.Store() | ir.Comment():
                    pass
                case _:
                    return f"it has {type(stmt).__name__.lower()}s"
        self.note(body)
        if part.lanes & (part.lanes - 1) or part.lanes > self.width:
            return "its threads are not whole vectors"
        exprs = list(expressions(body)) if part.lanes > 1 else []
        stores = [stmt for stmt in walk(body) if isinstance(stmt, ir.Store)]
        places = [(e.memory, e.index) for e in exprs if isinstance(e, ir.Load)] + [(s.memory, s.index) for s in stores]
        writes = [stmt for stmt in body if isinstance(stmt, ir.Write)] if part.lanes > 1 else []
        if not all(map(self.is_whole, writes)):
            return "its threads write at places that are not neighbours, or may be outside"
        whole = all(self.are_whole(*place) for place in places) and all(map(self.is_vector, exprs))
        return "" if whole else "its threads read at places that are not neighbours"

    def is_whole(self, write: ir.Write) -> bool:
        """Return whether all lanes write to neighbours that are known to be inside."""
        shape = write.field.type.field_shape
        point = own_point(len(shape)) if write.point is None else write.point
        inside = all(low >= 0 and high < n for (low, high), n in zip(map(self.ranges.range, point), shape, strict=True))
        return inside and (write.element is None or self.same(write.element)) and self.are_neighbours(point, False)

    def are_whole(self, memory: ir.Array | ir.FieldParam, index: tuple[ir.Expr, ...]) -> bool:
        """Return whether lanes use neighbours of shared memory, or the same index of private arrays."""
        if isinstance(memory, ir.Array) and memory.space == "private":
            return all(map(self.same, index))
        return self.are_neighbours(index, False)

    def is_vector(self, expr: ir.Expr) -> bool:
        """Return whether the lanes read the same point of a field, or neighbours."""
        if not isinstance(expr, ir.Read) or not is_own(expr.field) or expr.point is None:
            return not (isinstance(expr, ir.Read) and expr.point is None and is_own(expr.field))
        inside = expr.border in LIMITED or all(map(self.same, expr.point))
        return inside and (expr.element is None or self.same(expr.element)) and self.are_neighbours(expr.point, True)

    def are_neighbours(self, index: tuple[ir.Expr, ...], limited: bool) -> bool:
        *outer, last = index
        numbers = self.find(last)
        if numbers is None:
            return all(map(self.same, index))
        return numbers.are_neighbours and (limited or not numbers.are_limited) and all(map(self.same, outer))


HIGHEST, GROUPS = 64, 128  # most rows of a work-group, and least groups, where it gets more rows than the user gave it
VECTORS = (2, 4, 1)  # interleaved vectors, against the latency of operations, the best guess first


def refuse(kernel: Kernel) -> str:
    if kernel.machine.vector_length == 1:
        return "the device has no vectors"
    if kernel.intermediates:
        return "it has stages"
    if reason := refused_layouts(kernel):
        return reason
    if kernel.shared_memory or kernel.whole or kernel.group is None:
        return "its threads are not joined by work-groups of their own"
    reason = refused_doubles(kernel) or halves(kernel) or obstacle_of_group(kernel)
    return reason or ("" if candidates(kernel) else "its body is large")


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    most = kernel.work_group[-1] // kernel.machine.vector_length
    least = most if kernel.shared("private") else 1  # arrays in registers: no loop goes around them
    values = sum(isinstance(stmt, ir.Let) for stmt in walk(kernel.body))
    return tuple({"vectors": n} for n in VECTORS if least <= n <= most and n * values <= MOST_VALUES)


def legalize(kernel: Kernel, parameters: Parameters) -> Parameters:
    most = kernel.work_group[-1] // kernel.machine.vector_length
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
        self.source, self.vectors, self.lanes = kernel, vectors, kernel.machine.vector_length
        self.width = kernel.work_group[-1]
        self.parts = parts_of(kernel)
        self.common = common_to_parts(kernel)
        shared = [stmt.array for stmt in kernel.shared("local")]
        self.own = {array: replace(array, shape=array.extents[-1:], space="private") for array in shared}
        for stmt in kernel.shared("private"):
            self.own[stmt.array] = replace(stmt.array, shape=(*stmt.array.extents, self.width))
        self.spilled = {var: ir.Array(f"{var.hint}_kept", var.type, (self.width,)) for var in _live(kernel)}

    def kernel(self) -> Kernel:
        source, domain = self.source, self.source.domain
        out: list[ir.Stmt] = [
            ir.Comment(f"the {self.width} threads of a row of a work-group, in vectors of {self.lanes}")
        ]
        out += map(ir.Declare, (*self.own.values(), *self.spilled.values()))
        for number, part in enumerate(self.parts):
            later = set[ir.Var]().union(*(touched(other.body) for other in self.parts[number + 1 :]))
            out += self.part(part, later)
        shape = Shape(*domain.shape[:-1], domain.extent("column") // self.width)
        group, per_thread = Shape(1, self.height(tuple(out)), 1), Shape(*(1 for _ in shape[:-1]), self.width)
        return of_threads(source, shape, tuple(out), group=group, per_thread=per_thread)

    def height(self, body: ir.Block) -> int:
        """The rows of a work-group: more where there are many and no thread knows its group, since groups take time to start."""
        rows, height = self.source.domain.extent("row"), self.source.work_group[1]
        kinds = {e.kind for e in expressions(body) if isinstance(e, ir.Index) and e.axis == "row"}
        knows_row = not kinds <= {"global", "global_size"}
        while not knows_row and not self.source.named and height < HIGHEST and rows >= 2 * height * GROUPS:
            height *= 2
        return height

    def part(self, part: GroupPart, later: set[ir.Var]) -> ir.Block:
        """The statements of a part for all of its lanes; variables that later parts use are spilled to arrays."""
        zero = constant(0, INT)
        if part.lanes == 1:
            return self.together(part, later, [zero])
        width = min(part.lanes, self.lanes)
        interleaved = min(part.lanes // width, self.vectors)
        vector, lane = counter("vector"), counter("lane")
        head, inner = list[ir.Stmt](), list[ir.Stmt]()
        b, c = collector(head), collector(inner)
        count = part.lanes // interleaved // width
        first = b.apply("mul", ir.Ref(vector), interleaved * width) if count > 1 else zero
        columns = [c.apply("add", b.apply("add", first, k * width), ir.Ref(lane)) for k in range(interleaved)]
        body = (*inner, *self.together(part, later, columns))
        lanes = (*head, counted(lane, 0, width, body, lanes=True))
        return (counted(vector, 0, count, lanes),) if count > 1 else lanes

    def together(self, part: GroupPart, later: set[ir.Var], columns: list[ir.Expr]) -> ir.Block:
        """The statements of a part at some lanes of a row, interleaved."""
        body = (*self.common, *part.body)
        defined = {stmt.var for stmt in walk(body) if isinstance(stmt, (ir.Let, ir.For))}
        loads = [var for var in self.spilled if var not in defined and var in touched(part.body)]
        spills = [var for var in self.spilled if var in later and (var in defined or var in changed(tuple(part.body)))]
        out = list[ir.Stmt]()
        copies = [_Lane(self, column, out) for column in columns]
        for var in loads:
            for copy in copies:
                out.append(ir.Let(copy.vars[var], ir.Load(self.spilled[var], (copy.column,), var.type)))
        out += _interleaved(copies, body)
        for var in spills:
            out += [ir.Store(self.spilled[var], (copy.column,), ir.Ref(copy.vars[var])) for copy in copies]
        return tuple(out)


def _interleaved(copies: list[_Lane], block: ir.Block) -> ir.Block:
    """Interleave copies of statements, in common loops."""
    out: list[ir.Stmt] = []
    for stmt in block:
        if isinstance(stmt, ir.For):
            for copy in copies[1:]:
                copy.vars[stmt.var] = copies[0].vars[stmt.var]
            var = copies[0].vars[stmt.var]
            start, stop, step = map(copies[0].expr, (stmt.start, stmt.stop, stmt.step))
            body = _interleaved(copies, stmt.body)
            out.append(replace(stmt, var=var, start=start, stop=stop, step=step, body=body))
        elif isinstance(stmt, ir.Comment):
            out.append(stmt)
        else:
            for copy in copies:
                out += copy.stmt(stmt)
    return tuple(out)


class _Lane(Instance):
    """Copies the statements for a thread of a row."""

    def __init__(self, lanes: _WorkItemVectors, column: ir.Expr, out: list[ir.Stmt]) -> None:
        self.lanes, self.column = lanes, column
        source = lanes.source
        b = collector(out)
        chunk = ir.Index("global", "column")
        by_index: dict[ir.Index, ir.Expr] = {}
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

    def expr(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Load) and isinstance(expr.memory, ir.Array):
            expr = replace(expr, index=self.place(expr.memory, expr.index))
        return super().expr(expr)

    def stmt(self, stmt: ir.Stmt) -> ir.Block:
        if isinstance(stmt, ir.Store) and isinstance(stmt.memory, ir.Array):
            stmt = replace(stmt, index=self.place(stmt.memory, stmt.index))
        return super().stmt(stmt)

    def place(self, array: ir.Array, index: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
        """The index in the private array that stands for local memory, or for a private array of each thread of a row."""
        if array.space == "private":
            return (*index, ir.Index("local", "column"))
        return index[-1:] if array in self.lanes.own else index
