"""Definite initialisation of local memory: stores of a work-group, statement by statement, as far as positions decide them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.base.errors import Loc, SemanticError
from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.analysis.abstract_eval import Evaluation, Known, Mask
from gpuop.ir.kernel import Kernel
from gpuop.ir.visit import blocks, operands, values, walk

MOST_STATEMENTS = 5000  # statements to follow: later iterations of loops do what the first ones do


class Enough(Exception):
    """Signal that the statement limit is reached."""


@dataclass
class _LoopIteration:
    """Threads that may be, and that are sure to be, in a loop and in its current iteration."""

    may: Mask
    sure: Mask
    may_stay: Mask
    sure_stay: Mask


@dataclass
class _Doubt:
    """Threads whose value depends on unwritten memory, and the error to raise where it is used."""

    threads: Mask
    error: SemanticError
    exact: bool


class Following:
    """Execution of some work-groups of a kernel without data.

    Args:
        needed: the variables to follow.

    Attributes:
        written: masks of each local array, by group and element: [0] a thread of the grid may have written it, [1] a tail
            thread would have.
    """

    def __init__(self, kernel: Kernel, groups: Sequence[tuple[int, ...]], needed: set[ir.Var]) -> None:
        self.kernel = kernel
        size = kernel.work_group
        inner = np.stack(np.unravel_index(np.arange(size.points), size))
        place: dict[tuple[str, str], NDArray[Any]] = {}
        self.inside = np.ones(len(groups) * size.points, np.bool_)
        for k, axis in enumerate(ir.GRID_AXES):
            group = np.repeat([g[k] for g in groups], size.points)
            local = np.tile(inner[k], len(groups))
            place["group", axis], place["local", axis] = group, local
            place["global", axis] = group * size[k] + local
            self.inside &= place["global", axis] < kernel.domain.extent(axis)
        self.member = np.repeat(np.arange(len(groups)), size.points)
        self.eval = Evaluation(kernel, place, len(self.inside))
        self.needed = needed
        sizes = {d.array: (2, len(groups), d.array.elements) for d in kernel.shared("local")}
        self.written = {array: np.zeros(shape, np.bool_) for array, shape in sizes.items()}
        self.doubts: dict[ir.Var, _Doubt | None] = {}
        self.turns: list[_LoopIteration] = []
        self.left = MOST_STATEMENTS

    def run(self) -> None:
        self.block(self.kernel.body, self.eval.everywhere, self.eval.everywhere)

    def block(self, block: ir.Block, may: Mask, sure: Mask) -> None:
        for stmt in block:
            here = (may & self.turns[-1].may, sure & self.turns[-1].sure) if self.turns else (may, sure)
            if not here[0].any():
                return
            self.left -= 1
            if not self.left:
                raise Enough
            self.stmt(stmt, *here)

    def stmt(self, stmt: ir.Stmt, may: Mask, sure: Mask) -> None:  # noqa: C901 - a case for each kind of node
        doubts = [doubt for value in values(stmt) if (doubt := self.doubt(value, may, sure, stmt.loc)) is not None]
        if isinstance(stmt, ir.Let) and not stmt.var.mutable:
            self.doubts[stmt.var] = doubts[0] if doubts else None
        else:
            self.use(doubts, may)
        match stmt:
            case ir.Let() | ir.Assign() if stmt.var in self.needed:
                self.bind(stmt, may, sure)
            case ir.Store(memory=ir.Array() as array, index=index) if array in self.written:
                self.write(array, index, may)
            case ir.Atomic():
                self.atomic(stmt, may, sure)
            case ir.Collective(var=var):
                self.eval.vars[var] = self.eval.unknown(ir.Ref(var))
            case ir.If(cond=cond, then=then, orelse=orelse):
                c = self.eval.scalar(cond)
                for branch, holds in ((then, c.value != 0), (orelse, c.value == 0)):
                    self.block(branch, may & (holds | ~c.mask), sure & holds & c.mask)
            case ir.For() | ir.While():
                self.loop(stmt, may, sure)
            case ir.Break() | ir.Continue():
                self.leave(stmt, may, sure)
            case (
                ir.Let()
                | ir.Assign()
                | ir.Store()
                | ir.Declare()
                | ir.Write()
                | ir.Barrier()
                | ir.Print()
                | ir.Assert()
                | ir.Comment()
            ):
                pass  # its values were checked for doubts; it decides no position or condition, and writes no local memory
            case ir.Wide():
                raise AssertionError("tiles are checked in the recorded form")
            case _:
                ir.assert_never(stmt)

    def bind(self, stmt: ir.Let | ir.Assign, may: Mask, sure: Mask) -> None:
        new = self.eval.lanes(stmt.value)
        if isinstance(stmt, ir.Assign):
            new = [old.merged(v, may, sure) for old, v in zip(self.eval.vars[stmt.var], new, strict=True)]
        self.eval.vars[stmt.var] = new

    def atomic(self, stmt: ir.Atomic, may: Mask, sure: Mask) -> None:
        if isinstance(stmt.memory, ir.Array) and stmt.memory in self.written:
            missing = self.missing(stmt.memory, stmt.index, may, sure, stmt.loc)
            self.use([] if missing is None else [missing], may)
            self.write(stmt.memory, stmt.index, may)
        if stmt.var is not None:
            self.eval.vars[stmt.var] = self.eval.unknown(ir.Ref(stmt.var))

    # --- loops --------------------------------------------------------------------------------------------------

    def leave(self, stmt: ir.Break | ir.Continue, may: Mask, sure: Mask) -> None:
        turn = self.turns[-1]
        turn.may, turn.sure = turn.may & ~sure, turn.sure & ~may
        if isinstance(stmt, ir.Break):
            turn.may_stay, turn.sure_stay = turn.may_stay & ~sure, turn.sure_stay & ~may

    def loop(self, loop: ir.For | ir.While, may: Mask, sure: Mask) -> None:
        turn = _LoopIteration(may, sure, may, sure)
        self.turns.append(turn)
        bounds = [self.eval.scalar(e) for e in values(loop)] if isinstance(loop, ir.For) else []
        determined = all(b.mask[may].all() for b in bounds)
        counter = bounds[0].value if bounds else None
        while determined and turn.may_stay.any():
            turn.may, turn.sure = turn.may_stay, turn.sure_stay
            determined, holds = self.holds(loop, bounds, counter, turn)
            if not determined:
                break
            turn.may_stay = turn.may = turn.may & holds
            turn.sure_stay = turn.sure = turn.sure & holds
            self.block(blocks(loop)[-1], turn.may, turn.sure)
            if counter is not None:
                counter = counter + bounds[2].value
        if not determined:
            self.anyhow(loop, turn)
        self.turns.pop()

    def holds(
        self, loop: ir.For | ir.While, bounds: Sequence[Known], counter: NDArray[Any] | None, turn: _LoopIteration
    ) -> tuple[bool, Mask]:
        """True if the threads of the next iteration are known, and these threads."""
        if isinstance(loop, ir.While):
            self.block(loop.head, turn.may, turn.sure)
            doubt = self.doubt(loop.cond, turn.may, turn.sure, loop.loc)
            self.use([] if doubt is None else [doubt], turn.may)
            c = self.eval.scalar(loop.cond)
            return bool(c.mask[turn.may].all()), c.value != 0
        assert counter is not None
        self.eval.vars[loop.var] = [self.eval.exactly(counter)]
        _, stop, step = (b.value for b in bounds)
        return True, np.where(step > 0, counter < stop, (counter > stop) & (step < 0))

    def anyhow(self, loop: ir.For | ir.While, turn: _LoopIteration) -> None:
        """Iterations of a loop whose number is unknown: in any of them, its variables are anything."""
        turn.may, turn.sure = turn.may_stay, self.eval.nowhere
        turn.sure_stay = self.eval.nowhere
        changed = {s.var for inner in blocks(loop) for s in walk(inner) if isinstance(s, ir.Assign)} & self.needed
        for var in changed | ({loop.var} if isinstance(loop, ir.For) else set()):
            self.eval.vars[var] = self.eval.unknown(ir.Ref(var))
        may = turn.may
        for inner in blocks(loop):
            self.block(inner, may, self.eval.nowhere)
        for var in changed:
            self.eval.vars[var] = self.eval.unknown(ir.Ref(var))

    # --- local memory -------------------------------------------------------------------------------------------

    def cells(
        self, array: ir.Array, index: Iterable[ir.Expr], threads: Mask
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], bool]:
        """Possible (group, element, thread) of an access, without elements outside the array; and True if all are known."""
        group = self.member[threads]
        element, exact = np.zeros(len(group), np.int64), True
        thread = np.flatnonzero(threads)
        for at, n in zip(map(self.eval.scalar, index), array.extents, strict=True):
            along = at.value[thread].astype(np.int64)
            valid = (along >= 0) & (along < n)
            if not at.mask[thread].all():  # every possible position along this axis
                exact, along = False, np.tile(np.arange(n), len(thread))
                group, element, thread = (np.repeat(each, n) for each in (group, element, thread))
                valid = (at.low[thread] <= along) & (along <= at.high[thread])
            group, element, thread = group[valid], (element * n + along)[valid], thread[valid]
        return group, element, thread, exact

    def write(self, array: ir.Array, index: Sequence[ir.Expr], may: Mask) -> None:
        for cells, threads in zip(self.written[array], (may & self.inside, may & ~self.inside), strict=True):
            group, element, _, _ = self.cells(array, index, threads)
            cells[group, element] = True

    def missing(
        self, array: ir.Array, index: Sequence[ir.Expr], may: Mask, sure: Mask, loc: Loc | None
    ) -> _Doubt | None:
        """Threads that read memory that nobody wrote and tail threads would have. A condition may keep a position inside."""
        written, written_by_tail = self.written[array]
        group, element, thread, exact = self.cells(array, index, may & self.inside)
        lacking = written_by_tail[group, element] & ~written[group, element] & (exact or sure[thread])
        if not lacking.any():
            return None
        threads = self.eval.nowhere.copy()
        threads[thread[lacking]] = True
        return _Doubt(threads, _lacks(self.kernel, array, int(element[np.argmax(lacking)]), exact, loc), exact)

    def doubt(self, expr: ir.Expr, may: Mask, sure: Mask, loc: Loc | None) -> _Doubt | None:
        if isinstance(expr, ir.Load) and expr.memory in self.written:
            return self.missing(expr.memory, expr.index, may, sure, loc)
        if isinstance(expr, ir.Ref):
            return self.doubts.get(expr.var)
        doubts = [self.doubt(operand, may, sure, loc) for operand in operands(expr)]
        if isinstance(expr, ir.Apply) and expr.op == "choose" and expr.args[0].type.lanes == 1 and any(doubts[1:]):
            c = self.eval.scalar(expr.args[0])
            for side, chosen in ((1, c.value != 0), (2, c.value == 0)):
                doubt = doubts[side]
                if doubt is not None:  # a choice uses only the chosen operand
                    maybe = ~c.mask & doubt.exact
                    doubts[side] = _Doubt(doubt.threads & (maybe | (c.mask & chosen)), doubt.error, doubt.exact)
        return next((doubt for doubt in doubts if doubt is not None and doubt.threads.any()), None)

    def use(self, doubts: Iterable[_Doubt], may: Mask) -> None:
        for doubt in doubts:
            if (doubt.threads & may & self.inside).any():
                raise doubt.error


def _lacks(kernel: Kernel, array: ir.Array, element: int, exact: bool, loc: Loc | None) -> SemanticError:
    grid, size = kernel.domain, kernel.work_group
    group_shape = size[3 - len(grid.shape) :]
    place = f"[{', '.join(map(str, np.unravel_index(element, array.extents)))}]" if array.shape else ""
    it = f"`{array.hint}{place}`"
    subject = (
        f"{it} is read, and" if exact else f"`{array.hint}` is read at computed places, and parts of it, such as {it},"
    )
    return SemanticError(
        f"{subject} only threads beyond the grid would write{' it' if exact else ''}: a grid of {grid} is not a multiple of "
        f"work-groups of {'×'.join(map(str, group_shape))}; let such threads run too by "
        f"`_localThreads({', '.join(map(str, group_shape))}, whole_groups=True)`, or leave out with `_if` what they would "
        "write",
        loc or kernel.loc,
    )
