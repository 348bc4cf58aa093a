"""Interpretation of a printable GPU kernel by whole work-groups, with the tail threads of a launch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import AXES, Action, Apply, Barrier, Collective, FieldParam, Index, Load, Stmt
from gpuop.ir.visit import walk_expr
from gpuop.runtime.reference.gpu_history import MemoryHistory, UnorderedHistory
from gpuop.runtime.reference.gpu_memory import GpuMemory
from gpuop.runtime.reference.gpu_poison import Loads, PoisonedThreads
from gpuop.runtime.reference.gpu_reports import GpuReports
from gpuop.runtime.reference.interpreter import Lanes, Mask
from gpuop.runtime.reference.positions import Positions, grouped_chunks


def run_as_gpu(device: str, kernel: Kernel, fields: dict[FieldParam, NDArray[Any]]) -> None:
    """Run a kernel in its printable form over planes of its fields; outputs are written in place.

    Raises:
        DeviceError: undefined behaviour on a GPU.
    """
    planes = {p: array.reshape(p.type.planes, -1).view(p.type.storage.numpy) for p, array in fields.items()}
    report, outputs = GpuReports(device, kernel), _histories(kernel, planes)
    lazy, loads = _Lazy(), Loads()
    for where in grouped_chunks(kernel, surplus=True):
        memory = GpuMemory(where, planes, outputs, kernel, report)
        with np.errstate(all="ignore"):
            GpuThreads(kernel, where, memory, lazy, loads).block(kernel.body, None)
    report.loc = None
    for output in kernel.outputs:
        written = outputs[output.param].written
        if not (output.sparse or written.all()):
            report.incomplete(output.param, int(np.argmin(written)))


def _histories(kernel: Kernel, planes: dict[FieldParam, NDArray[Any]]) -> dict[FieldParam, MemoryHistory]:
    """Return the access histories of outputs, and of inputs that share their memory."""
    histories: dict[FieldParam, MemoryHistory] = {}
    for output in kernel.outputs:
        memory = planes[output.param]
        initial = output.fill is not None or output.initial is not None
        kind = UnorderedHistory if output.unordered else MemoryHistory
        history = histories[output.param] = kind(memory.size, initial)
        for param in kernel.inputs:
            if not param.by_value and memory.size and np.may_share_memory(memory, planes[param]):
                histories[param] = history
                history.complete = True
    return histories


class _Lazy(dict[int, bool]):
    """Choices, by identity, with a flag for loads in their sides: C evaluates only the selected side."""

    def of(self, expr: Apply) -> bool:
        result = self.get(id(expr))
        if result is None:
            loads = (isinstance(e, Load) for arg in expr.args[1:] for e in walk_expr(arg))
            result = self[id(expr)] = any(loads)
        return result


class GpuThreads(PoisonedThreads):
    """Some work-groups of a kernel."""

    def __init__(self, kernel: Kernel, where: Positions, memory: GpuMemory, lazy: _Lazy, loads: Loads) -> None:
        super().__init__(kernel, where, memory, loads=loads)
        self.lazy = lazy

    def stmt(self, stmt: Stmt, mask: Mask | None) -> None:
        self.memory.report.loc = stmt.loc
        super().stmt(stmt, mask)

    def effect(self, stmt: Action) -> None:
        if isinstance(stmt, Barrier):
            self.memory.barrier(stmt.fence, self.active)
        if isinstance(stmt, Collective):
            assert isinstance(stmt.over, int)
            group, own = np.divmod(np.arange(self.count), self.memory.size)
            warp = group * -(-self.memory.size // stmt.over) + own // stmt.over
            self.memory.report_torn("an exchange between the threads of a warp", warp, self.active)
        super().effect(stmt)

    def index(self, index: Index) -> NDArray[Any]:
        """Return an index. Sizes are those of the launch, though a kernel of dynamic extents does not know them."""
        extent = self.kernel.domain.extent(index.axis)
        size = self.kernel.work_group[AXES.index(index.axis)] if index.axis != "element" else 1
        sizes = {"global_size": extent, "local_size": size, "group_count": -(-extent // size)}
        return np.asarray(sizes[index.kind], np.int32) if index.kind in sizes else super().index(index)

    def apply(self, expr: Apply) -> Lanes:
        if expr.op != "choose" or not self.lazy.of(expr):
            return super().apply(expr)
        holds, (_, then, orelse) = self.all_of(expr.args[0]), expr.args
        sides = self.sides(holds, lambda: self.lanes(then), lambda: self.lanes(orelse))
        return [np.where(holds, a, b) for a, b in zip(*sides, strict=True)]
