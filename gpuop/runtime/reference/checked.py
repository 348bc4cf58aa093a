"""Checked execution: the reference interpreter, which stops at the first fault of a kernel.

It finds reads outside under border="unchecked", indices outside arrays and tensors, reads of unwritten local memory,
data races, partly written outputs without `default=`, barriers that some threads of a work-group do not
reach, integer division by zero, wraparound of 8- and 16-bit integers in the user's operators, and failed assertions.
The error is a SemanticError with the user's line and the points of the threads.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.ir import nodes as ir
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import GRID_AXES, Array, FieldParam, Read
from gpuop.ir.visit import operands, values, walk, written_by
from gpuop.passes.assertions import failed, thread_of
from gpuop.runtime.reference.array_memory import Lanes, Mask, Values
from gpuop.runtime.reference.diagnostics import Diagnostics
from gpuop.runtime.reference.interpreter import Threads
from gpuop.runtime.reference.positions import Positions, chunks
from gpuop.runtime.reference.races import History, LocalHistory, OrderedMemory, Race, UnorderedOutput
from gpuop.runtime.reference.wraparound import is_masked, may_wrap, wraps

Codes = NDArray[Any]  # for each thread the code of a fault, or 0
FINE = np.zeros((), np.int32)
Outputs = dict[FieldParam, History]


class CheckedMemory(OrderedMemory):
    """The memory of some threads, which raises a SemanticError for the first thread that misuses it.

    Args:
        outputs: the outputs of the launch that several threads may access at one place.
    """

    def __init__(self, where: Positions, fields: dict[FieldParam, Values], outputs: Outputs, say: Diagnostics) -> None:
        super().__init__(where, fields, say.kernel, False, where.number, outputs)
        self.say = say

    def outside(self, index: Values, n: int, active: Mask) -> int | None:
        """Return the first thread whose index is not in 0 … n - 1, if there is one."""
        index = self.all(np.asarray(index))
        bad = active & ((index < 0) | (index >= n))
        return self.first(bad) if bad.any() else None

    # --- fields -------------------------------------------------------------------------------------------------

    def read(self, read: Read, point: Lanes | None, element: Values | None, fill: Any, active: Mask) -> Lanes:
        field, grid = read.field, read.field.type.field_shape
        if point is not None and read.border == "unchecked":
            for axis, index, n in zip(GRID_AXES[3 - len(grid) :], point, grid, strict=True):
                at = self.outside(index, n, active)
                if at is not None:
                    self.say.outside_field(int(self.number[at]), field, axis, int(self.all(index)[at]), n)
        if element is not None:
            at = self.outside(element, field.type.planes, active)
            if at is not None:
                self.say.outside_tensor(int(self.number[at]), field, int(self.all(element)[at]))
        return super().read(read, point, element, fill, active)

    def write(
        self, field: FieldParam, point: Lanes | None, element: Values | None, values: Lanes, active: Mask
    ) -> None:
        history = self.outputs.get(field)
        if history is None:
            super().write(field, point, element, values, active)
            return
        for k, value in enumerate(values):
            cells, keep = self.flat(field, point, np.asarray(k) if element is None else element, active)
            access = self.access(field, cells, keep, self.say.line)
            self.check(field, history.put(access, [self.fields[field].reshape(-1)], [self.all(value)[keep]]))

    # --- arrays -------------------------------------------------------------------------------------------------

    def declare(self, array: Array) -> None:
        super().declare(array)
        if array.space == "local":
            self.histories[array] = LocalHistory(array.elements * self.where.groups, self.say.kernel.launched.threads)

    def cells(self, array: Array, index: Lanes, active: Mask, does: str) -> Values:
        """Return the cell of each thread's element in the memory of all groups; a read of local memory needs a written one."""
        for axis, (i, n) in enumerate(zip(index, array.extents, strict=True)):
            at = self.outside(i, n, active)
            if at is not None:
                where = [int(self.all(j)[at]) for j in index]
                self.say.outside_array(int(self.number[at]), does, array, where, axis)
        cells = self.place(array, index)[0] * self.where.groups + self.where.member
        if array in self.histories and does != "writes":
            bad = active & ~self.histories[array].written[cells]
            if bad.any():
                at = self.first(bad)
                self.say.unwritten(int(self.number[at]), does, array, int(cells[at]) // self.where.groups)
        return cells

    def load(self, memory: Array | FieldParam, index: Lanes, active: Mask) -> Lanes:
        assert isinstance(memory, Array)
        cells = self.cells(memory, index, active, "reads")
        if memory in self.histories:
            self.check(memory, self.histories[memory].read(self.access(memory, cells, active, self.say.line)))
        return super().load(memory, index, active)

    def store(self, memory: Array | FieldParam, index: Lanes, values: Lanes, active: Mask) -> None:
        assert isinstance(memory, Array)
        cells = self.cells(memory, index, active, "writes")
        if memory not in self.histories:
            super().store(memory, index, values, active)
            return
        lanes = [lane.reshape(-1) for lane in self.arrays[memory]]
        access = self.access(memory, cells, active, self.say.line)
        self.check(memory, self.histories[memory].put(access, lanes, [self.all(v)[active] for v in values]))

    def atomic(self, stmt: ir.Atomic, index: Lanes, element: Values | None, args: Lanes, active: Mask) -> Values:
        memory = stmt.memory
        if isinstance(memory, FieldParam):
            cells, keep = self.flat(memory, index, element, active)
            history, access = self.outputs[memory], self.access(memory, cells, keep, self.say.line)
            self.check(memory, history.read(access) if stmt.op == "read" else history.update(access))
        else:
            cells = self.cells(memory, index, active, "updates")
            if memory in self.histories:
                self.check(memory, self.histories[memory].update(self.access(memory, cells, active, self.say.line)))
        return super().atomic(stmt, index, element, args, active)

    # --- order --------------------------------------------------------------------------------------------------

    def barrier(self, fence: str, active: Mask) -> None:
        torn = self.torn(self.where.member, active)
        if torn is not None:
            here, missing = (int(self.number[at]) for at in torn)
            self.say.torn(fence, here, missing)
        self.pass_barrier(fence, active)

    def check(self, memory: Array | FieldParam, race: Race | None) -> None:
        if race is not None:
            self.say.race(race, memory, self.element_of(memory, race.cell))


def run_checked(kernel: Kernel, fields: dict[ir.FieldParam, NDArray[Any]]) -> None:
    """Run a recorded kernel as `interpreter.run` does.

    Raises:
        SemanticError: undefined behaviour, or a failed assertion.
    """
    planes = {p: array.reshape(p.type.planes, -1) for p, array in fields.items()}
    say = Diagnostics(kernel)
    touched = {_competing(kernel, stmt) for stmt in walk(kernel.body)} | {o.param for o in kernel.outputs if o.complete}
    free = {o.param for o in kernel.outputs if o.unordered}
    outputs = {p: (UnorderedOutput if p in free else History)(planes[p].size) for p in touched if p is not None}
    for where in chunks(kernel, kernel.whole):
        with np.errstate(all="ignore"):
            CheckedThreads(kernel, where, CheckedMemory(where, planes, outputs, say)).block(kernel.body, None)
    for output in kernel.outputs:
        if output.complete and not outputs[output.param].written.all():
            say.runs(next(stmt for stmt in walk(kernel.body) if written_by(stmt) is output.param))
            say.incomplete(output.param, int(np.argmin(outputs[output.param].written)))


def _competing(kernel: Kernel, stmt: ir.Stmt) -> ir.FieldParam | None:
    """Return the output that a statement accesses at places that other threads may access too."""
    field = written_by(stmt)
    if not isinstance(field, ir.FieldParam):
        return None
    if not isinstance(stmt, ir.Write) or stmt.point is not None:
        return field
    own = kernel.domain.elements == 1 or stmt.element == ir.Index("global", "element")
    return None if own else field


class CheckedThreads(Threads):
    """Some threads of a kernel.

    A quotient of a division by zero is an error where it is used: `_where(n != 0, a / n, 0)` and `(n != 0) & (a / n > 2)` do not
    use it, nor do statements under an `_if` that excludes such threads. So values carry their faults, as
    "poison" does in LLVM (Lee et al., Taming Undefined Behavior in LLVM, PLDI 2017). The same holds for integers that wrap
    around: `_where(a > b, a - b, b - a)` of bytes is right.

    Attributes:
        poison: for each lane of a value the code of its fault, from `Diagnostics.code`, or 0.
    """

    memory: CheckedMemory

    def __init__(self, kernel: Kernel, where: Positions, memory: CheckedMemory) -> None:
        super().__init__(kernel, where, memory)
        self.say = memory.say
        self.poison: dict[ir.Var, list[Codes]] = {}

    def stmt(self, stmt: ir.Stmt, mask: Mask | None) -> None:
        if isinstance(stmt, ir.Comment):
            self.say.operator, self.say.name = stmt.loc, stmt.text
        self.say.runs(stmt)
        if isinstance(stmt, ir.Let) and not stmt.var.mutable:
            codes = self.codes(stmt.value)
            self.poison.pop(stmt.var, None)
            if any(c.any() for c in codes):
                self.poison[stmt.var] = codes
        elif not isinstance(stmt, (ir.If, ir.While)):  # those two use their conditions through `truth`
            for value in values(stmt):
                self.use(value, self.active)
        super().stmt(stmt, mask)

    def effect(self, stmt: ir.Action) -> None:
        if isinstance(stmt, ir.Barrier):
            self.memory.barrier(stmt.fence, self.active)
        elif isinstance(stmt, ir.Assert):
            fails = self.active & ~self.truth(stmt.cond, self.active)
            if fails.any():
                raise failed(stmt, thread_of(self.kernel, self.number(fails) + 1))
        else:
            super().effect(stmt)

    def number(self, mask: Mask) -> int:
        return int(self.memory.number[self.memory.first(mask)])

    def truth(self, cond: ir.Expr, active: Mask) -> Mask:
        self.use(cond, active)
        return super().truth(cond, active)

    # --- division and wrapping around --------------------------------------------------------------------------

    def use(self, expr: ir.Expr, active: Mask) -> None:
        """Check a value with an effect: it must not come from a fault."""
        if not self.poison and not self.may_fault(expr):
            return
        codes = np.broadcast_to(reduce(np.maximum, self.codes(expr)), self.count)
        bad = active & (codes > 0)
        if bad.any():
            at = self.memory.first(bad)
            self.say.fault(int(self.memory.number[at]), int(codes[at]), at)

    def may_fault(self, expr: ir.Expr) -> bool:
        return _divides(expr) or (may_wrap(expr) and self.say.in_users_line)

    def codes(self, expr: ir.Expr) -> list[Codes]:
        lanes = expr.type.lanes
        if not self.poison and not self.may_fault(expr):
            return [FINE] * lanes
        match expr:
            case ir.Ref(var=var):
                return self.poison.get(var, [FINE] * lanes)
            case ir.Lane(arg=arg, lane=lane):
                return [self.codes(arg)[lane]]
            case ir.Pack(args=args):
                return [code for a in args for code in self.codes(a)]
            case ir.Apply():
                return self.applied(expr)
            case ir.Cast(arg=arg) | ir.Bits(arg=arg):
                codes = self.codes(arg)
                return codes if len(codes) == lanes else codes * lanes
        # any other expression is as poisoned as its operands
        every = (code for operand in operands(expr) for code in self.codes(operand))
        return [reduce(np.maximum, every, FINE)] * lanes

    def applied(self, expr: ir.Apply) -> list[Codes]:
        """Return the codes of an operation by lane; a choice uses the side it selects, `&` and `|` stop at a side that decides."""
        codes = list(zip(*(self.codes(a) for a in expr.args), strict=True))
        if expr.op == "choose":
            conditions = self.lanes(expr.args[0])
            return [np.maximum(c, np.where(h, a, b)) for h, (c, a, b) in zip(conditions, codes, strict=True)]
        if expr.op in ("and", "or") and expr.type.kind == "b":
            x, y = (self.lanes(a) for a in expr.args)
            settled = expr.op == "or"  # the value of a side that decides
            return [
                np.where((a == 0) & (v == settled) | (b == 0) & (w == settled), 0, np.maximum(a, b))
                for v, w, (a, b) in zip(x, y, codes, strict=True)
            ]
        if is_masked(expr):
            codes = [tuple(np.where(self.say.wrapped(code), 0, code) for code in lane) for lane in codes]
        out = [reduce(np.maximum, lane) for lane in codes]
        return self.faulty(expr, out) if self.may_fault(expr) else out

    def faulty(self, expr: ir.Apply, codes: list[Codes]) -> list[Codes]:
        """Return the codes of a result, with its own faults."""
        out = []
        for lane, (before, args) in enumerate(zip(codes, zip(*map(self.lanes, expr.args), strict=True), strict=True)):
            bad = self.active & ((args[1] == 0) if _divides(expr) else wraps(expr, args))
            code = self.say.code(expr, lane, args) if bad.any() else 0
            out.append(np.where(bad & (before == 0), code, before))
        return out


def _divides(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Apply) and expr.op in ("div", "mod") and expr.type.integer
