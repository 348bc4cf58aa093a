"""Launches as a CUDA graph, which is built once and costs the host one call."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any

from gpuop.runtime.base.backend import Part, keeping
from gpuop.runtime.cuda.driver import alone, returned
from gpuop.runtime.cuda.launch import Fill, KernelLaunch
from gpuop.runtime.cuda.memory import CudaMemory


class Graph:
    """Launches as an executable CUDA graph: launches without common memory may run in parallel."""

    def __init__(self, memory: CudaMemory, launches: Sequence[KernelLaunch]) -> None:
        self.memory, self.launches = memory, launches
        cu = self.cu = memory.cu
        with memory.active():
            self.graph = returned(cu.cuGraphCreate(0))
            self.last_write: dict[int, Any] = {}
            self.last_reads: dict[int, list[Any]] = {}
            nodes = [self._add(launch) for launch in launches]
            self.executable = returned(cu.cuGraphInstantiate(self.graph, 0))
        memory.active().at_end(self, "cuGraphExecDestroy", int(self.executable))
        memory.active().at_end(self, "cuGraphDestroy", int(self.graph))
        for launch, node in zip(launches, nodes, strict=True):
            launch.changed.append(partial(_update, weakref.ref(self), launch.parameters(), node))

    def part(self) -> Part:
        """Return the part that launches the graph and keeps it alive."""
        launch = alone("cuGraphLaunch", ctypes.c_void_p, ctypes.c_void_p)
        return keeping(self, partial(launch, int(self.executable), self.memory.handle))

    def _add(self, launch: KernelLaunch) -> Any:
        """Add a node for a launch, after its fills and the launches that use the same memory."""
        before = {id(n): n for b in launch.reads | launch.writes if (n := self.last_write.get(b)) is not None}
        before |= {id(n): n for b in launch.writes for n in self.last_reads.get(b, ())}
        after = list(before.values())
        for fill in launch.fills:
            after = [self._add_fill(fill, after)]
        node = returned(self.cu.cuGraphAddKernelNode(self.graph, after, len(after), launch.parameters()))
        for buffer in launch.reads:
            self.last_reads.setdefault(buffer, []).append(node)
        for buffer in launch.writes:
            self.last_write[buffer], self.last_reads[buffer] = node, []
        return node

    def _add_fill(self, fill: Fill, after: list[Any]) -> Any:
        cu, one = self.cu, fill.pitch == fill.size
        params = cu.CUDA_MEMSET_NODE_PARAMS()
        params.dst, params.value, params.elementSize = fill.address, fill.value, fill.size
        params.width, params.height, params.pitch = (fill.count, 1, 0) if one else (1, fill.count, fill.pitch)
        context = returned(cu.cuCtxGetCurrent())
        return returned(cu.cuGraphAddMemsetNode(self.graph, after, len(after), params, context))


def _update(made: weakref.ref[Graph], parameters: Any, node: Any) -> None:
    graph = made()
    if graph is None:
        return
    with graph.memory.active():
        returned(graph.cu.cuGraphExecKernelNodeSetParams(graph.executable, node, parameters))
