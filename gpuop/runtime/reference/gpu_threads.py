"""Interpretation of a printable GPU kernel by whole work-groups, with the tail threads of a launch.

Values of unwritten local memory may be copied and computed with, as long as no effect depends on them: threads that fill a
window step by step read elements before they are written, and push them out before use. So a value carries its origin, as
"poison" does in LLVM (Lee et al., Taming Undefined Behavior in LLVM, PLDI 2017); values that are stored in a field, decide on
a branch or are an index may have none.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.ir import nodes as ir
from gpuop.ir.kernel import Kernel
from gpuop.ir.visit import operands, walk_expr
from gpuop.runtime.reference.array_memory import spread
from gpuop.runtime.reference.gpu_memory import GpuMemory
from gpuop.runtime.reference.gpu_reports import GpuReports
from gpuop.runtime.reference.interpreter import Lanes, Mask, Threads
from gpuop.runtime.reference.positions import Positions, grouped_chunks
from gpuop.runtime.reference.races import History, UnorderedOutput

Codes = NDArray[np.int64]  # for each thread the element of local memory that its value comes from, or 0
FINE = np.zeros((), np.int64)


def run_as_gpu(device: str, kernel: Kernel, fields: dict[ir.FieldParam, NDArray[Any]]) -> None:
    """Run a kernel in its printable form over planes of its fields; outputs are written in place.

    Raises:
        DeviceError: undefined behaviour on a GPU.
    """
    planes = {p: array.reshape(p.type.planes, -1).view(p.type.memory_dtype) for p, array in fields.items()}
    report, outputs = GpuReports(device, kernel), _histories(kernel, planes)
    lazy, loads = _Lazy(), _Loads()
    for where in grouped_chunks(kernel, surplus=True):
        memory = GpuMemory(where, planes, outputs, kernel, report)
        with np.errstate(all="ignore"):
            GpuThreads(kernel, where, memory, lazy, loads).block(kernel.body, None)
    report.loc = None
    for output in kernel.outputs:
        written = outputs[output.param].written
        if not (output.sparse or written.all()):
            report.incomplete(output.param, int(np.argmin(written)))


def _histories(kernel: Kernel, planes: dict[ir.FieldParam, NDArray[Any]]) -> dict[ir.FieldParam, History]:
    """Return the access histories of outputs, and of inputs that share their memory."""
    histories: dict[ir.FieldParam, History] = {}
    for output in kernel.outputs:
        memory = planes[output.param]
        initial = output.fill is not None or output.initial is not None
        kind = UnorderedOutput if output.unordered else History
        history = histories[output.param] = kind(memory.size, initial)
        for param in kernel.inputs:
            if not param.by_value and memory.size and np.may_share_memory(memory, planes[param]):
                histories[param] = history
                history.complete = True
    return histories


class _Lazy(dict[int, bool]):
    """Choices, by identity, with a flag for loads in their sides: C evaluates only the selected side."""

    def of(self, expr: ir.Apply) -> bool:
        result = self.get(id(expr))
        if result is None:
            loads = (isinstance(e, ir.Load) for arg in expr.args[1:] for e in walk_expr(arg))
            result = self[id(expr)] = any(loads)
        return result


class _Loads(dict[int, frozenset[ir.Var | ir.Array]]):
    """The variables and arrays that expressions, by identity, depend on."""

    def of(self, expr: ir.Expr) -> frozenset[ir.Var | ir.Array]:
        result = self.get(id(expr))
        if result is None:
            refs = {e.var for e in walk_expr(expr) if isinstance(e, ir.Ref)}
            memory = {e.memory for e in walk_expr(expr) if isinstance(e, ir.Load)}
            result = self[id(expr)] = frozenset(refs | {m for m in memory if isinstance(m, ir.Array)})
        return result


class GpuThreads(Threads):
    """Some work-groups of a kernel, whose values know whether they come from unwritten memory.

    Attributes:
        codes: the codes of variables with such values.
        tainted: the variables and arrays that may have such values.
    """

    memory: GpuMemory

    def __init__(self, kernel: Kernel, where: Positions, memory: GpuMemory, lazy: _Lazy, loads: _Loads) -> None:
        super().__init__(kernel, where, memory)
        self.lazy, self.loads = lazy, loads
        self.codes: dict[ir.Var, Codes] = {}
        self.tainted: set[ir.Var | ir.Array] = set()

    def stmt(self, stmt: ir.Stmt, mask: Mask | None) -> None:
        self.memory.report.loc = stmt.loc
        match stmt:
            case ir.Let(var=var, value=value) | ir.Assign(var=var, value=value):
                self.bind(var, None if isinstance(stmt, ir.Let) else mask, self.code(value))
            case ir.For(start=start, stop=stop, step=step):
                self.use(start, stop, step)
        super().stmt(stmt, mask)

    def bind(self, var: ir.Var, mask: Mask | None, code: Codes) -> None:
        if mask is not None and (code is not FINE or var in self.codes):
            code = np.where(mask, code, self.codes.get(var, FINE))
        if code is FINE or not code.any():
            self.codes.pop(var, None)
            self.tainted.discard(var)
        else:
            self.codes[var] = code
            self.tainted.add(var)

    def truth(self, cond: ir.Expr, active: Mask) -> Mask:
        before, self.active = self.active, active
        self.use(cond)
        self.active = before
        return super().truth(cond, active)

    def effect(self, stmt: ir.Action) -> None:
        code = FINE
        match stmt:
            case ir.Barrier(fence=fence):
                self.memory.barrier(fence, self.active)
            case ir.Store(memory=ir.Array(), index=index, value=value):
                self.use(*index)
                code = self.code(value)
            case ir.Store(index=index, value=value):
                self.use(*index, value)
            case ir.Atomic(index=index, args=args):
                self.use(*index, *args)
            case ir.Print(args=args):
                self.use(*args)
            case ir.Wide(index=index, array=array, loads=loads):
                self.use(*index)
                if not loads and array in self.tainted:
                    self.report(reduce(np.maximum, self.memory.poison[array]))
            case ir.Collective(var=var):
                self.check_warps(stmt)
                self.bind(var, None, self.exchanged(stmt))
        super().effect(stmt)
        self.follow(stmt, code)

    def follow(self, stmt: ir.Action, code: Codes) -> None:
        """Record the codes that a statement leaves in arrays."""
        match stmt:
            case ir.Declare(array=array):
                self.tainted.discard(array)
                if array in self.memory.poison:
                    self.tainted.add(array)
            case ir.Store(memory=ir.Array() as array, index=index) if code is not FINE or array in self.tainted:
                self.keep(array, self.point(index) or [], code)
            case ir.Wide(array=array, loads=True) if array in self.tainted:
                self.memory.poison[array].reshape(array.elements, -1)[:, self.active] = 0
            case ir.Barrier():
                whole = {array for array, codes in self.memory.poison.items() if not codes.any()}
                self.tainted -= whole

    def keep(self, array: ir.Array, index: list[NDArray[Any]], code: Codes) -> None:
        """Store the code of a value in an array."""
        if array not in self.memory.poison:
            if not code.any():
                return
            self.memory.poison[array] = np.zeros(self.memory.arrays[array][0].shape, np.int64)
            self.tainted.add(array)
        cells = self.memory.cells("writes", array, index, self.active)
        self.memory.poison[array].reshape(-1)[cells[self.active]] = spread(code, self.count)[self.active]

    def exchanged(self, stmt: ir.Collective) -> Codes:
        """Return the codes of values that threads exchange."""
        assert isinstance(stmt.over, int) and stmt.at is not None
        self.use(stmt.at)
        code = self.code(stmt.value)
        if code is FINE or stmt.kind == "warp ballot":
            return code
        lane = self.where.lane(stmt.kind, self.all_of(stmt.at), stmt.over, self.kernel.work_group.points)
        return np.asarray(spread(code, self.count)[lane])

    def use(self, *exprs: ir.Expr) -> None:
        """Check values that an effect depends on."""
        for expr in exprs:
            code = self.code(expr)
            if code is not FINE:
                self.report(spread(code, self.count))

    def report(self, codes: Codes) -> None:
        bad = self.active & (codes > 0)
        if bad.any():
            at, thread = self.memory.first_named(bad)
            self.memory.report.unwritten(*self.memory.origin(int(codes[at])), thread)

    def code(self, expr: ir.Expr) -> Codes:
        """Return the code of an expression's value, for each thread."""
        if self.loads.of(expr).isdisjoint(self.tainted):
            return FINE
        match expr:
            case ir.Ref(var=var):
                return self.codes.get(var, FINE)
            case ir.Load(memory=ir.Array() as array, index=index):
                self.use(*index)
                if array not in self.tainted:
                    return FINE
                cells = self.memory.cells("reads", array, self.point(index) or [], self.active)
                codes = self.memory.poison[array].reshape(-1).take(cells, mode="clip")
                return np.asarray(np.where(self.active, codes, 0)) if codes.any() else FINE
            case ir.Load(index=index):
                self.use(*index)
                return FINE
            case ir.Apply(op="choose", args=(cond, then, orelse)):
                holds, decides = self.all_of(cond), self.code(cond)
                sides = self.sides(holds, lambda: self.code(then), lambda: self.code(orelse))
                return np.asarray(np.maximum(decides, np.where(holds, *sides)))
        return np.asarray(reduce(np.maximum, (self.code(operand) for operand in operands(expr)), FINE))

    def sides(self, holds: Mask, then: Any, orelse: Any) -> list[Any]:
        """Return the codes of both sides of a choice, each in the threads that select it."""
        before, codes = self.active, []
        for test, side in ((holds, then), (~holds, orelse)):
            self.active = before & test
            codes.append(side())
        self.active = before
        return codes

    def check_warps(self, stmt: ir.Collective) -> None:
        """Check that all threads of a warp take part in an exchange, or none."""
        assert isinstance(stmt.over, int)
        group, own = np.divmod(np.arange(self.count), self.memory.size)
        warp = group * -(-self.memory.size // stmt.over) + own // stmt.over
        self.memory.report_torn("an exchange between the threads of a warp", warp, self.active)

    def index(self, index: ir.Index) -> NDArray[Any]:
        """Return an index. Sizes are those of the launch, though a kernel of dynamic extents does not know them."""
        extent = self.kernel.domain.extent(index.axis)
        size = self.kernel.work_group[ir.AXES.index(index.axis)] if index.axis != "element" else 1
        sizes = {"global_size": extent, "local_size": size, "group_count": -(-extent // size)}
        return np.asarray(sizes[index.kind], np.int32) if index.kind in sizes else super().index(index)

    def apply(self, expr: ir.Apply) -> Lanes:
        if expr.op != "choose" or not self.lazy.of(expr):
            return super().apply(expr)
        holds, (_, then, orelse) = self.all_of(expr.args[0]), expr.args
        sides = self.sides(holds, lambda: self.lanes(then), lambda: self.lanes(orelse))
        return [np.where(holds, a, b) for a, b in zip(*sides, strict=True)]
