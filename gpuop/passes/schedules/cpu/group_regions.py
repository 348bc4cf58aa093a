"""Barrier regions of a kernel with work-groups: the statements between barriers, and the threads of a row that run them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpuop.ir import nodes as ir
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import HALF
from gpuop.ir.visit import bound, changed, expressions, loop_values, walk, walk_expr
from gpuop.passes.coarsening_factor import is_own
from gpuop.passes.instantiate import own_point
from gpuop.passes.lane_numbers import LaneAnalysis, LaneNumbers
from gpuop.passes.ranges import Ranges

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
            if all(_is_common(e, common) for e in sources):
                common[stmt.var] = stmt
    return list(common.values())


def _is_common(expr: ir.Expr, common: Iterable[ir.Var]) -> bool:
    return expr.var in common if isinstance(expr, ir.Ref) else isinstance(expr, ir.Read) and not is_own(expr.field)


def touched(block: Iterable[ir.Stmt]) -> set[ir.Var]:
    """The variables that statements use or change."""
    body = tuple(block)
    result = {e.var for e in expressions(body) if isinstance(e, ir.Ref)}
    return result | {var for var in changed(body) if isinstance(var, ir.Var)}


def live_between(kernel: Kernel) -> list[ir.Var]:
    """The variables that one part defines and a later one uses, in order."""
    parts = parts_of(kernel)
    defined = [{var for var in bound(tuple(part.body)) if isinstance(var, ir.Var)} for part in parts]
    needed = [touched(part.body) for part in parts]
    crossing = {var for k, m in enumerate(defined) for n in needed[k + 1 :] for var in m & n}
    return [stmt.var for stmt in walk(kernel.body) if isinstance(stmt, ir.Let) and stmt.var in crossing]


# --- may its threads be lanes -----------------------------------------------------------------------------------------


def obstacle_of_group(kernel: Kernel) -> str:
    """Return the reason why the threads of a row of a work-group cannot be lanes; empty where they can."""
    assert kernel.target is not None
    if not any(isinstance(stmt, (ir.Barrier, ir.For)) for stmt in kernel.body):
        return "its threads neither wait for one another nor have loops"
    group, lanes = kernel.work_group, kernel.target.vector_length
    if group[0] > 1 or group[-1] % lanes or kernel.domain.extent("column") % group[-1]:
        return "rows of its work-groups are no vectors"
    return _memory_obstacle(kernel) or next(filter(None, map(_Lanes(kernel).obstacle, parts_of(kernel))), "")


def _memory_obstacle(kernel: Kernel) -> str:
    """Return the reason why local memory, arrays of threads, or values between parts rule out lanes; empty where none does."""
    shared, own = kernel.shared("local"), kernel.shared("private")
    arrays = [stmt for stmt in walk(kernel.body) if isinstance(stmt, ir.Declare) and stmt.array.space == "private"]
    if len(arrays) > len(own) or (own and len(parts_of(kernel)) > 1):
        return "it has arrays"
    numbers = [*(stmt.array.type for stmt in (*shared, *own)), *(var.type for var in live_between(kernel))]
    if any(type_.kind == "b" or type_.lanes > 1 or type_.dtype is HALF for type_ in numbers):
        return "it keeps what is no number"
    indices = {
        e for e in expressions(kernel.body) if isinstance(e, ir.Index) and e.kind not in ("global", "global_size")
    }
    if any(e.axis == "column" and e.kind not in ("local", "group") for e in indices):
        return "it can tell its work-groups"
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
    return "" if all(e.axis == "column" for e in indices - {ROW}) else "it can tell its work-groups"


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

    def is_alike_loop(self, stmt: ir.For) -> bool:
        """Whether a loop iterates equally often for all lanes, where extents that are arguments bound it."""
        return self.open and all(map(self.same, (stmt.start, stmt.stop, stmt.step)))

    def obstacle(self, part: GroupPart) -> str:
        """Return the reason why a part cannot be in vectors; empty where it can."""
        body = tuple(part.body)
        for stmt in walk(body):
            match stmt:
                case ir.Write() if part.lanes > 1 and stmt not in body:
                    return "its threads write side by side, in turns or under conditions"
                case ir.For() if loop_values(stmt) is None and not self.is_alike_loop(stmt):
                    return "the turns of its loops differ between threads"
                case ir.Store(memory=ir.Array(space="private")):
                    pass
                case ir.Store(index=index) if part.lanes > 1 and (stmt not in body or self.same(index[-1])):
                    return "its threads write to the same place"
                case ir.If() if any(
                    isinstance(e, (ir.Read, ir.Load, ir.Store)) for e in (*expressions((stmt,)), *walk((stmt,)))
                ):
                    return "its threads use memory under conditions"
                case ir.Let() | ir.Assign() | ir.Write() | ir.For() | ir.If() | ir.Store() | ir.Comment():
                    pass
                case _:
                    return f"it has {type(stmt).__name__.lower()}s"
        self.note(body)
        if part.lanes & (part.lanes - 1) or part.lanes > self.width:
            return "its threads are no whole vectors"
        exprs = list(expressions(body)) if part.lanes > 1 else []
        stores = [stmt for stmt in walk(body) if isinstance(stmt, ir.Store)]
        places = [(e.memory, e.index) for e in exprs if isinstance(e, ir.Load)] + [(s.memory, s.index) for s in stores]
        writes = [stmt for stmt in body if isinstance(stmt, ir.Write)] if part.lanes > 1 else []
        if not all(map(self.is_whole, writes)):
            return "its threads write at places that are no neighbours, or may not be there"
        whole = all(self.are_whole(*place) for place in places) and all(map(self.is_vector, exprs))
        return "" if whole else "its threads read at places that are no neighbours"

    def is_whole(self, write: ir.Write) -> bool:
        """Whether all lanes write to neighbours that are known to be inside."""
        shape = write.field.type.field_shape
        point = own_point(len(shape)) if write.point is None else write.point
        inside = all(low >= 0 and high < n for (low, high), n in zip(map(self.ranges.range, point), shape, strict=True))
        return inside and (write.element is None or self.same(write.element)) and self.are_neighbours(point, False)

    def are_whole(self, memory: ir.Array | ir.FieldParam, index: tuple[ir.Expr, ...]) -> bool:
        """Whether lanes use neighbours of shared memory, or the same index of private arrays."""
        if isinstance(memory, ir.Array) and memory.space == "private":
            return all(map(self.same, index))
        return self.are_neighbours(index, False)

    def is_vector(self, expr: ir.Expr) -> bool:
        """Whether the lanes read the same point of a field, or neighbours."""
        if not isinstance(expr, ir.Read) or not is_own(expr.field) or expr.point is None:
            return not (isinstance(expr, ir.Read) and expr.point is None and is_own(expr.field))
        inside = expr.border in LIMITED or all(map(self.same, expr.point))
        return inside and (expr.element is None or self.same(expr.element)) and self.are_neighbours(expr.point, True)

    def are_neighbours(self, index: tuple[ir.Expr, ...], limited: bool) -> bool:
        *outer, last = index
        numbers = self.find(last)
        is_valid = (
            self.same(last) if numbers is None else numbers.are_neighbours and (limited or not numbers.are_limited)
        )
        return is_valid and all(map(self.same, outer))
