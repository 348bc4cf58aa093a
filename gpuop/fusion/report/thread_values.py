"""Analysis of the integers of a lowered kernel: their strides between threads, and their part in addresses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from gpuop.ir import nodes as ir
from gpuop.ir.device_model import ITERATIONS
from gpuop.ir.kernel import Kernel
from gpuop.ir.visit import blocks, loop_values, operands, times, walk, walk_expr

COMPARISONS = ("lt", "le", "gt", "ge")


class ThreadValues:
    """The facts about values, from statements in the order of the text.

    Attributes:
        strides: the difference of an integer to that of the next thread; unknown for others.
        sums: integers that are another one plus a constant.
        runs: the number of times that a value changes.
        extents: the exclusive upper bounds of integers from 0 on.
        positions: values that depend on positions and counters alone.
        comparisons: the compared values, by the variable of the result.
        constants: the numbers that vectors have in all lanes.
        counted: counters of expanded loops, and sums with them.
        guessed: the number of enclosing loops with unknown bounds.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.strides: dict[ir.Var, int] = {}
        self.sums: dict[ir.Var, tuple[ir.Expr, int]] = {}
        self.runs: dict[ir.Var, float] = {}
        self.extents: dict[ir.Var, int] = {}
        self.positions: dict[ir.Var, ir.Expr] = {}
        self.comparisons: dict[ir.Var, set[ir.Expr]] = {}
        self.constants: dict[ir.Var, ir.Expr] = {}
        self.counted: set[ir.Var] = set()
        self.guessed = 0

    # --- learning ---------------------------------------------------------------------------------------------------

    def note(self, stmt: ir.Stmt, runs: float) -> None:
        if isinstance(stmt, (ir.For, ir.While)):  # loop-carried values change in each iteration
            turns = runs * self.turns(stmt)
            carried = (inner.var for block in blocks(stmt) for inner in walk(block) if isinstance(inner, ir.Assign))
            self.runs |= {var: max(turns, self.runs.get(var, 0.0)) for var in carried}
        if isinstance(stmt, ir.For):
            self.note_counter(stmt, runs)
        elif isinstance(stmt, (ir.Let, ir.Assign)):
            var, value = stmt.var, stmt.value
            stride = self.stride(value)
            if stride is not None and not (isinstance(stmt, ir.Assign) and self.strides.get(var) != stride):
                self.strides[var] = stride
            else:
                self.strides.pop(var, None)
            fixed = not (var.mutable or isinstance(value, ir.Load))
            self.runs[var] = self.varying(value, runs) if fixed else max(runs, self.runs.get(var, 0.0))
            if fixed:
                self.note_value(var, value)

    def note_counter(self, loop: ir.For, runs: float) -> None:
        self.runs[loop.var], self.positions[loop.var] = runs * self.turns(loop), loop.start
        stride, turns = self.stride(loop.start), loop_values(loop)
        if stride is not None:
            self.strides[loop.var] = stride
        if turns:
            self.extents[loop.var] = max(turns) + 1
        if turns is not None and isinstance(loop.unroll, int) and loop.unroll >= len(turns):
            self.counted.add(loop.var)

    def note_value(self, var: ir.Var, value: ir.Expr) -> None:
        if isinstance(value, ir.Apply) and value.op in COMPARISONS:
            self.comparisons[var] = self.each(value.args)
        if isinstance(value, ir.Cast) and isinstance(value.arg, ir.Const):
            self.constants[var] = value.arg
        if isinstance(value, ir.Apply) and value.op in ("add", "min"):
            for x, y in (value.args, value.args[::-1]):
                if isinstance(y, ir.Const) and y.type.integer:
                    self.sums[var] = x, int(y.value) if value.op == "add" else 0
        if self.is_offset(value):
            self.counted.add(var)
        if (extent := self.extent(value)) is not None:
            self.extents[var] = extent
        if self.is_position(value):
            self.positions[var] = value

    # --- what is known ----------------------------------------------------------------------------------------------

    def stride(self, expr: ir.Expr) -> int | None:
        """The difference of a value to that of the next thread; None if it is unknown."""
        inner = operands(expr)
        match expr:
            case ir.Ref(var=var):
                return self.strides.get(var)
            case ir.Load() | ir.Read():
                return None
            case ir.Index(kind=kind, axis=axis):
                return int(axis == "column" and kind in ("global", "local"))
            case ir.Apply(op="add" | "sub" as op, args=(x, y)) if expr.type.integer:
                a, b = self.stride(x), self.stride(y)
                return None if a is None or b is None else a + b if op == "add" else a - b
            case ir.Apply(op="mul", args=(x, y)) if expr.type.integer:
                for one, other in ((x, y), (y, x)):
                    if isinstance(one, (ir.Const, ir.Stride)) and (stride := self.stride(other)) is not None:
                        return int(one.value) * stride
            case ir.Cast(arg=arg) if expr.type.integer and arg.type.integer:
                return self.stride(arg)
        return 0 if all(self.stride(e) == 0 for e in inner) else None

    def varying(self, expr: ir.Expr, runs: float) -> float:
        """The number of times that an expression is computed: compilers hoist it out of loops that it does not depend on."""
        return min(
            runs, max((self.runs.get(e.var, runs) for e in walk_expr(expr) if isinstance(e, ir.Ref)), default=1.0)
        )

    def is_offset(self, expr: ir.Expr) -> bool:
        """Return whether an integer is a sum with the counter of an expanded loop, and so part of an address."""
        sums = isinstance(expr, ir.Apply) and expr.op in ("add", "sub", "mul") and expr.type.integer
        return sums and self.is_counted(operands(expr))

    def is_counted(self, atoms: Iterable[ir.Expr]) -> bool:
        return any(isinstance(e, ir.Ref) and e.var in self.counted for e in atoms)

    def is_extreme(self, expr: ir.Apply) -> bool:
        """Return whether an expression is the minimum or the maximum of two values."""
        match expr:
            case ir.Apply(op="choose", args=(ir.Ref(var=var), *chosen)):
                return self.comparisons.get(var) == self.each(chosen)
            case ir.Apply(op="choose", args=(ir.Apply(op=op, args=compared), *chosen)) if op in COMPARISONS:
                return self.each(compared) == self.each(chosen)
        return False

    def each(self, exprs: Iterable[ir.Expr]) -> set[ir.Expr]:
        """Values, without their order."""
        return {self.constants.get(e.var, e) if isinstance(e, ir.Ref) else e for e in exprs}

    def is_position(self, expr: ir.Expr) -> bool:
        return not any(
            isinstance(e, (ir.Load, ir.Argument)) or (isinstance(e, ir.Ref) and e.var not in self.positions)
            for e in walk_expr(expr)
        )

    def turns(self, stmt: ir.Stmt) -> float:
        """The number of times that the blocks of a statement run; for a loop with breaks the geometric mean of 1 and all."""
        turns = self._turns(stmt)
        return math.sqrt(turns) if isinstance(stmt, ir.For) and _is_left(stmt.body) else turns

    @contextmanager
    def inside(self, stmt: ir.Stmt) -> Iterator[None]:
        """Count an enclosing loop with unknown bounds during a walk of its blocks."""
        more = isinstance(stmt, (ir.For, ir.While)) and self._known_turns(stmt) is None
        self.guessed += more
        yield
        self.guessed -= more

    def _turns(self, stmt: ir.Stmt) -> float:
        """The iterations of a loop; a guess if bounds are unknown, and its root within such loops, as few searches are long."""
        count = self._known_turns(stmt)
        return float(ITERATIONS**0.5**self.guessed) if count is None else count

    def _known_turns(self, stmt: ir.Stmt) -> float | None:
        count = times(stmt)
        if count is None and isinstance(stmt, ir.For) and isinstance(stmt.step, ir.Const):
            (base, start), (other, stop) = self.sum(stmt.start), self.sum(stmt.stop)
            step = int(stmt.step.value)
            if base == other:
                return len(range(start, stop, step))
            if other is None and self.extent(stmt.start) is not None:  # threads take turns
                return len(range(0, stop, step))
            if base is None and (most := self.extent(stmt.stop)) is not None:  # the last thread may take fewer
                return len(range(start, most - 1, step))
        return count

    def sum(self, expr: ir.Expr) -> tuple[ir.Expr | None, int]:
        """An integer as another one plus a constant."""
        if isinstance(expr, ir.Const):
            return None, int(expr.value)
        if isinstance(expr, ir.Ref) and expr.var in self.sums:
            other, more = self.sums[expr.var]
            base, constant = self.sum(other)
            return base, constant + more
        return expr, 0

    def share(self, cond: ir.Expr) -> float:
        """The share of threads, and of iterations of their loops, that fulfil a condition."""
        if isinstance(cond, ir.Ref) and cond.var.mutable and cond.var.temporary:
            return 0.0  # a flag of a pass, seldom set
        value = self.positions.get(cond.var) if isinstance(cond, ir.Ref) else None
        if isinstance(value, ir.Apply) and value.op == "eq":
            return 0.0  # a row or a column of many
        if isinstance(value, ir.Apply) and value.op == "lt" and isinstance(value.args[1], ir.Const):
            extent = self.extent(value.args[0])
            return 1.0 if extent is None else min(1.0, int(value.args[1].value) / extent)
        return 1.0

    def extent(self, expr: ir.Expr) -> int | None:
        """The exclusive upper bound of an integer from 0 on; None if it is unknown."""
        match expr:
            case ir.Const(value=value) if expr.type.integer:
                return int(value) + 1
            case ir.Index(kind="local", axis=axis) if self.kernel.group is not None and axis in ir.GRID_AXES:
                return self.kernel.work_group[ir.GRID_AXES.index(axis)]
            case ir.Ref(var=var):
                return self.extents.get(var)
            case ir.Apply(op="add" | "mul" as op, args=(x, y)) if expr.type.integer:
                a, b = self.extent(x), self.extent(y)
                if a is not None and b is not None:
                    return a + b - 1 if op == "add" else (a - 1) * (b - 1) + 1
            case ir.Apply(op="min", args=args) if expr.type.integer:
                return min((n for n in map(self.extent, args) if n is not None), default=None)
        return None


def _is_left(block: ir.Block) -> bool:
    """Return whether the body of a loop has a break."""
    inner = (each for stmt in block if not isinstance(stmt, (ir.For, ir.While)) for each in blocks(stmt))
    return any(isinstance(stmt, ir.Break) for stmt in block) or any(map(_is_left, inner))
