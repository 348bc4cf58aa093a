"""Tiles that nobody completes: local memory that threads read and that only surplus threads would have written.

Where a grid is no multiple of its work-groups, the last ones have fewer threads. What these do is followed for such groups
without data: positions are known, so are the counters and conditions that follow from them. Of anything else all is possible:
conditions hold or not, indices are anywhere. So threads inside the grid write more than they do, and what is found is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gpuop.errors import Loc, SemanticError
from gpuop.ir.kernel import Kernel
from gpuop.ir.known import Evaluation, Known, Mask
from gpuop.ir.nodes import (
    AXES,
    Array,
    Assign,
    Atomic,
    Block,
    Break,
    Continue,
    Expr,
    For,
    If,
    Let,
    Load,
    Ref,
    Stmt,
    Store,
    Var,
    While,
)
from gpuop.ir.visit import blocks, expressions, values, walk, walk_expr

MOST_STATEMENTS = 5000  # that are followed; what loops do later is what they do at first


class _Enough(Exception):
    """More than is worth following."""


def check_tiles(kernel: Kernel) -> None:
    """Refuse a kernel whose threads read what surplus threads would have written. Its work-groups must be known.

    Raises:
        SemanticError: at the line that reads.
    """
    local = [declared.array for declared in kernel.shared("local")]
    if kernel.whole or not local or not kernel.domain.threads:
        return
    groups = list(_edges(kernel))
    if not groups or not any(_memory(e) in local for e in (*expressions(kernel.body), *walk(kernel.body))):
        return
    try:
        with np.errstate(all="ignore"):
            _Following(kernel, groups).run()
    except _Enough:
        pass


def _memory(what: object) -> object:
    return what.memory if isinstance(what, (Load, Atomic)) else None


def _edges(kernel: Kernel) -> Iterator[tuple[int, ...]]:
    """Work-groups that have surplus threads: at the beginning and at the end of each axis."""
    axes = [(kernel.domain.extent(axis), size) for axis, size in zip(AXES, kernel.work_group, strict=False)]
    last = [-(-n // size) - 1 for n, size in axes]
    for group in product(*({0, end} for end in last)):
        if any(at == end and n % size for at, end, (n, size) in zip(group, last, axes, strict=True)):
            yield group


@dataclass
class _Turn:
    """The threads of a loop that may be, and those that are sure to be, in it and in its turn."""

    may: Mask
    sure: Mask
    may_stay: Mask
    sure_stay: Mask


class _Following:
    """Some work-groups of a kernel, statement by statement.

    Attributes:
        written: of each local array, by group and element: whether a thread of the grid may have written it [0], and
            whether a surplus thread would have [1].
    """

    def __init__(self, kernel: Kernel, groups: Sequence[tuple[int, ...]]) -> None:
        self.kernel = kernel
        size = kernel.work_group
        inner = np.stack(np.unravel_index(np.arange(size.points), size))
        place: dict[tuple[str, str], NDArray[Any]] = {}
        self.inside = np.ones(len(groups) * size.points, np.bool_)
        for k, axis in enumerate(AXES[:3]):
            group = np.repeat([g[k] for g in groups], size.points)
            local = np.tile(inner[k], len(groups))
            place["group", axis], place["local", axis] = group, local
            place["global", axis] = group * size[k] + local
            self.inside &= place["global", axis] < kernel.domain.extent(axis)
        self.member = np.repeat(np.arange(len(groups)), size.points)
        self.eval = Evaluation(kernel, place, len(self.inside))
        self.needed = _needed(kernel.body)
        sizes = {d.array: (2, len(groups), d.array.elements) for d in kernel.shared("local")}
        self.written = {array: np.zeros(shape, np.bool_) for array, shape in sizes.items()}
        self.turns: list[_Turn] = []
        self.left = MOST_STATEMENTS

    def run(self) -> None:
        self.block(self.kernel.body, self.eval.everywhere, self.eval.everywhere)

    def block(self, block: Block, may: Mask, sure: Mask) -> None:
        for stmt in block:
            here = (may & self.turns[-1].may, sure & self.turns[-1].sure) if self.turns else (may, sure)
            if not here[0].any():
                return
            self.left -= 1
            if not self.left:
                raise _Enough
            self.stmt(stmt, *here)

    def stmt(self, stmt: Stmt, may: Mask, sure: Mask) -> None:
        for value in values(stmt):
            if isinstance(value, Load) and value.memory in self.written:
                self.read(value.memory, value.index, may, stmt.loc)
        match stmt:
            case Let() | Assign() if stmt.var in self.needed:
                self.bind(stmt, may, sure)
            case Store(memory=Array() as array, index=index) if array in self.written:
                self.write(array, index, may)
            case Atomic():
                self.atomic(stmt, may)
            case If(cond=cond, then=then, orelse=orelse):
                c = self.eval.scalar(cond)
                for branch, holds in ((then, c.value != 0), (orelse, c.value == 0)):
                    self.block(branch, may & (holds | ~c.known), sure & holds & c.known)
            case For() | While():
                self.loop(stmt, may, sure)
            case Break() | Continue():
                self.leave(stmt, may, sure)

    def bind(self, stmt: Let | Assign, may: Mask, sure: Mask) -> None:
        new = self.eval.lanes(stmt.value)
        if isinstance(stmt, Assign):
            new = [old.merged(v, may, sure) for old, v in zip(self.eval.vars[stmt.var], new, strict=True)]
        self.eval.vars[stmt.var] = new

    def atomic(self, stmt: Atomic, may: Mask) -> None:
        if isinstance(stmt.memory, Array) and stmt.memory in self.written:
            self.read(stmt.memory, stmt.index, may, stmt.loc)
            self.write(stmt.memory, stmt.index, may)
        if stmt.var is not None:
            self.eval.vars[stmt.var] = self.eval.unknown(Ref(stmt.var))

    # --- loops --------------------------------------------------------------------------------------------------

    def leave(self, stmt: Break | Continue, may: Mask, sure: Mask) -> None:
        turn = self.turns[-1]
        turn.may, turn.sure = turn.may & ~sure, turn.sure & ~may
        if isinstance(stmt, Break):
            turn.may_stay, turn.sure_stay = turn.may_stay & ~sure, turn.sure_stay & ~may

    def loop(self, loop: For | While, may: Mask, sure: Mask) -> None:
        turn = _Turn(may, sure, may, sure)
        self.turns.append(turn)
        bounds = [self.eval.scalar(e) for e in values(loop)] if isinstance(loop, For) else []
        known = all(b.known[may].all() for b in bounds)
        counter = bounds[0].value if bounds else None
        while known and turn.may_stay.any():
            turn.may, turn.sure = turn.may_stay, turn.sure_stay
            known, holds = self.holds(loop, bounds, counter, turn)
            if not known:
                break
            turn.may_stay = turn.may = turn.may & holds
            turn.sure_stay = turn.sure = turn.sure & holds
            self.block(blocks(loop)[-1], turn.may, turn.sure)
            if counter is not None:
                counter = counter + bounds[2].value
        if not known:
            self.anyhow(loop, turn)
        self.turns.pop()

    def holds(
        self, loop: For | While, bounds: Sequence[Known], counter: NDArray[Any] | None, turn: _Turn
    ) -> tuple[bool, Mask]:
        """Whether it is known who takes another turn, and who does."""
        if isinstance(loop, While):
            self.block(loop.head, turn.may, turn.sure)
            c = self.eval.scalar(loop.cond)
            return bool(c.known[turn.may].all()), c.value != 0
        assert counter is not None
        self.eval.vars[loop.var] = [Known(counter, self.eval.everywhere)]
        _, stop, step = (b.value for b in bounds)
        return True, np.where(step > 0, counter < stop, (counter > stop) & (step < 0))

    def anyhow(self, loop: For | While, turn: _Turn) -> None:
        """The turns of a loop of which it is not known how many there are: in any of them, its variables are anything."""
        turn.may, turn.sure = turn.may_stay, self.eval.nowhere
        turn.sure_stay = self.eval.nowhere
        changed = {s.var for inner in blocks(loop) for s in walk(inner) if isinstance(s, Assign)} & self.needed
        for var in changed | ({loop.var} if isinstance(loop, For) else set()):
            self.eval.vars[var] = self.eval.unknown(Ref(var))
        may = turn.may
        for inner in blocks(loop):
            self.block(inner, may, self.eval.nowhere)
        for var in changed:
            self.eval.vars[var] = self.eval.unknown(Ref(var))

    # --- local memory -------------------------------------------------------------------------------------------

    def cells(self, array: Array, index: Iterable[Expr], threads: Mask) -> tuple[NDArray[Any], NDArray[Any], bool]:
        """The (group, element) that threads may mean, those outside the array left out, and whether all are known."""
        group = self.member[threads]
        element, exact = np.zeros(len(group), np.int64), True
        taken = np.flatnonzero(threads)
        for at, n in zip(map(self.eval.scalar, index), array.extents, strict=True):
            along = at.value[taken].astype(np.int64)
            if not at.known[taken].all():  # all along this axis
                exact, along = False, np.tile(np.arange(n), len(taken))
                group, element, taken = (np.repeat(each, n) for each in (group, element, taken))
            kept = (along >= 0) & (along < n)
            group, element, taken = group[kept], (element * n + along)[kept], taken[kept]
        return group, element, exact

    def write(self, array: Array, index: Sequence[Expr], may: Mask) -> None:
        for cells, threads in zip(self.written[array], (may & self.inside, may & ~self.inside), strict=True):
            group, element, _ = self.cells(array, index, threads)
            cells[group, element] = True

    def read(self, array: Array, index: Sequence[Expr], may: Mask, loc: Loc | None) -> None:
        mine, surplus = self.written[array]
        group, element, exact = self.cells(array, index, may & self.inside)
        missing = surplus[group, element] & ~mine[group, element]
        if missing.any():
            self.refuse(array, int(element[np.argmax(missing)]), exact, loc)

    def refuse(self, array: Array, element: int, exact: bool, loc: Loc | None) -> NoReturn:
        grid, size = self.kernel.domain, self.kernel.work_group
        shown = size[3 - len(grid.shape) :]
        place = f"[{', '.join(map(str, np.unravel_index(element, array.extents)))}]" if array.shape else ""
        it = f"`{array.hint}{place}`"
        what = (
            f"{it} is read, and"
            if exact
            else f"`{array.hint}` is read at computed places, and parts of it, such as {it},"
        )
        raise SemanticError(
            f"{what} only threads beyond the grid would write{' it' if exact else ''}: a grid of {grid} is no multiple of "
            f"work-groups of {'×'.join(map(str, shown))}; let such threads run too by "
            f"`_localThreads({', '.join(map(str, shown))}, whole_groups=True)`, or leave out with `_if` what they would write",
            loc or self.kernel.loc,
        )


def _needed(body: Block) -> set[Var]:
    """The variables that indices of local memory, conditions and loops depend on."""
    made: dict[Var, set[Var]] = {}
    roots: set[Var] = set()
    for stmt in walk(body):
        used = {e.var for v in values(stmt) for e in walk_expr(v) if isinstance(e, Ref)}
        if isinstance(stmt, (Let, Assign)):
            made.setdefault(stmt.var, set()).update(used)
            roots |= (
                {e.var for e in walk_expr(stmt.value) if isinstance(e, Ref)} if isinstance(stmt.value, Load) else set()
            )
        elif isinstance(stmt, (Store, Atomic)) and isinstance(stmt.memory, Array):
            roots |= {e.var for i in stmt.index for e in walk_expr(i) if isinstance(e, Ref)}
        elif isinstance(stmt, (If, For, While)):
            roots |= used | ({stmt.var} if isinstance(stmt, For) else set())
    needed: set[Var] = set()
    while roots:
        var = roots.pop()
        if var not in needed:
            needed.add(var)
            roots |= made.get(var, set())
    return needed
