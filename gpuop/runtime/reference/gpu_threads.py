"""A GPU's kernel, as it is printed, run by whole work-groups: the surplus threads that a launch adds run too."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Expr, FieldParam, Load, Stmt
from gpuop.ir.visit import walk_expr
from gpuop.runtime.reference.gpu_memory import GpuMemory
from gpuop.runtime.reference.gpu_reports import GpuReports
from gpuop.runtime.reference.interpret import Lanes, Mask, Threads
from gpuop.runtime.reference.positions import Positions, grouped_chunks


def run_as_gpu(device: str, kernel: Kernel, fields: dict[FieldParam, NDArray[Any]]) -> None:
    """Run a kernel in its printable form over planes of its fields; outputs are written in place.

    Raises:
        DeviceError: it does what is not defined on a GPU.
    """
    planes = {p: array.reshape(p.type.planes, -1).view(p.type.storage.numpy) for p, array in fields.items()}
    report, lazy = GpuReports(device, kernel), _Lazy()
    for where in grouped_chunks(kernel, surplus=True):
        with np.errstate(all="ignore"):
            GpuThreads(kernel, where, GpuMemory(where, planes, kernel, report), lazy).block(kernel.body, None)


class _Lazy(dict[int, bool]):
    """Whether choices, by their identity, load memory in what they choose from: only the chosen side is evaluated in C."""

    def of(self, expr: Apply) -> bool:
        found = self.get(id(expr))
        if found is None:
            loads = (isinstance(e, Load) for arg in expr.args[1:] for e in walk_expr(arg))
            found = self[id(expr)] = any(loads)
        return found


class GpuThreads(Threads):
    """Some work-groups of a kernel."""

    memory: GpuMemory

    def __init__(self, kernel: Kernel, where: Positions, memory: GpuMemory, lazy: _Lazy) -> None:
        super().__init__(kernel, where, memory)
        self.lazy = lazy

    def stmt(self, stmt: Stmt, mask: Mask | None) -> None:
        self.memory.report.loc = stmt.loc
        super().stmt(stmt, mask)

    def apply(self, expr: Apply) -> Lanes:
        if expr.op != "choose" or not self.lazy.of(expr):
            return super().apply(expr)
        holds, before = self.all_of(expr.args[0]), self.active
        sides = [self.under(arg, before & test) for arg, test in zip(expr.args[1:], (holds, ~holds), strict=True)]
        self.active = before
        return [np.where(holds, a, b) for a, b in zip(*sides, strict=True)]

    def under(self, expr: Expr, active: Mask) -> Lanes:
        self.active = active
        return self.lanes(expr)
