"""CUDA launches, one by one and as a CUDA graph, which is built once and costs the host one call."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import lru_cache, partial
from typing import Any

import numpy as np

from gpuop.base.config import config
from gpuop.base.records import dataclass
from gpuop.codegen.c.dialect import Source, scalars_of
from gpuop.codegen.cuda.dialect import grid_of
from gpuop.ir.nodes import FieldParam
from gpuop.runtime.base.backend import Argument, Launch, Part, keeping
from gpuop.runtime.base.launch_list import LaunchList, ListedLaunch, Values
from gpuop.runtime.base.trace import note_launch
from gpuop.runtime.cuda.driver import alone, returned
from gpuop.runtime.cuda.memory import CudaMemory


@dataclass(frozen=True, eq=False)
class Module:
    """A loaded module, by the driver's handle."""

    handle: Any


class LoadedFunction:
    """A function of a loaded module, which lives as long as one of its functions.

    Attributes:
        idle: arguments that no launch is bound to.
    """

    def __init__(self, handle: Any, module: Module) -> None:
        self.handle, self.module = handle, module
        self.idle: list[Arguments] = []


@lru_cache(maxsize=1024)
def size_of(threads: tuple[int, int, int], group: tuple[int, int, int]) -> tuple[int, ...]:
    """Return the blocks of a launch, and the threads of a block."""
    return (*grid_of(threads, group), *group)


@dataclass(frozen=True, slots=True, eq=False)
class Fill:
    """Memory that has one value before a launch; by 1, 2 or 4 bytes (8 bytes are two fills)."""

    address: int
    value: int
    size: int
    count: int
    pitch: int  # from one element to the next, in bytes


def _fills(address: int, pattern: Any, count: int) -> list[Fill]:
    """Return the fills of `count` elements with a NumPy scalar."""
    size = pattern.dtype.itemsize
    if size < 8:
        return [Fill(address, int(np.asarray(pattern).view(f"u{size}")), size, count, size)]
    low, high = map(int, np.asarray(pattern).reshape(1).view(np.uint32))
    if low == high:
        return [Fill(address, low, 4, 2 * count, 4)]
    return [Fill(address, low, 4, count, 8), Fill(address + 4, high, 4, count, 8)]


@dataclass(frozen=True, slots=True, eq=False)
class KernelLaunch(Launch):
    """A launch that can be a node of a graph.

    Attributes:
        parameters: returns the CUDA description of the launch, which points into `memory`.
        memory: objects that must live as long as the launch: arguments and their addresses.
        fills: fills before the launch.
        reads, writes: addresses of buffers.
        changed: called when a by-value argument has changed.
    """

    parameters: Callable[[], Any]
    memory: Sequence[Any]
    fills: Sequence[Fill]
    reads: frozenset[int]
    writes: frozenset[int]
    changed: list[Callable[[], None]] = field(default_factory=list)


class Arguments:
    """The arguments of a kernel in memory, and the table of their addresses for CUDA.

    Attributes:
        cells: addresses and scalars.
        structures: arguments of more bytes, by their number.
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self.cells = (ctypes.c_uint64 * max(len(values), 1))()
        base = ctypes.addressof(self.cells)
        self.table = (ctypes.c_uint64 * max(len(values), 1))(*(base + 8 * k for k in range(len(values))))
        self.address = ctypes.addressof(self.table)
        self.structures: dict[int, ctypes.Array[ctypes.c_uint64]] = {}
        for k, value in enumerate(values):
            self.set(k, value)

    def set(self, number: int, value: Any) -> None:
        """Set an address, a NumPy scalar, or the bytes of a structure."""
        if isinstance(value, bytes):
            memory = self.structures.get(number)
            if memory is None:
                memory = self.structures[number] = (ctypes.c_uint64 * -(-len(value) // 8))()
                self.table[number] = ctypes.addressof(memory)
            ctypes.memmove(memory, value, len(value))
            return
        self.cells[number] = value if isinstance(value, int) else int.from_bytes(value.tobytes(), "little")

    def set_numbers(self, first: int, param: FieldParam, numbers: Argument) -> None:
        """Set the numbers of a by-value argument, from a place on."""
        for n, scalar in enumerate(scalars_of(param, numbers), first):
            self.set(n, scalar)


def _fill(memory: CudaMemory, fill: Fill, stream: Any = None) -> None:
    cu, stream = memory.cu, memory.cu_stream if stream is None else stream
    with memory.active():
        if fill.pitch == fill.size:
            returned(getattr(cu, f"cuMemsetD{8 * fill.size}Async")(fill.address, fill.value, fill.count, stream))
        else:
            returned(cu.cuMemsetD2D32Async(fill.address, fill.pitch, fill.value, 1, fill.count, stream))


def _fills_of(source: Source, arguments: Sequence[Argument]) -> list[Fill]:
    return [
        fill
        for buffer, kind, value in source.filled(arguments)
        for fill in _fills(int(buffer), kind.memory_dtype.type(value), kind.planes * kind.field_shape.points)
    ]


def fill_outputs(memory: CudaMemory, source: Source, arguments: Sequence[Argument], stream: Any = None) -> None:
    """Fill the outputs as a launch without its kernel does, in the queue or in another stream."""
    for fill in _fills_of(source, arguments):
        _fill(memory, fill, stream)


def launch_once(memory: CudaMemory, source: Source, function: LoadedFunction, arguments: Sequence[Argument]) -> None:
    """Launch with these arguments. Their memory is reused: CUDA has copied them when the launch returns."""
    flat = arguments if source.direct else source.flattened(arguments, int)[0]
    try:
        values = function.idle.pop()
    except IndexError:
        values = Arguments([0] * len(flat))
    if source.direct:
        cells = values.cells
        for number, buffer in enumerate(flat):
            cells[number] = buffer.address
    else:
        for number, value in enumerate(flat):
            values.set(number, value)
    if source.fills:
        fill_outputs(memory, source, arguments)
    size = size_of(source.threads, source.group)
    (status,) = memory.cu.cuLaunchKernel(function.handle, *size, 0, memory.cu_stream, values.address, 0)
    function.idle.append(values)
    if status:
        returned((status,))


class CudaLaunches(LaunchList):
    """Launches in the queue or another stream, one driver call for each kernel.

    Attributes:
        cells: of each value, the places of its address among the arguments of all kernels.
        scalars: by-value arguments: the value, the parameter, and the place of the first of its numbers.
        structures: tables that are passed by value: the value, and its place.
        idle: arguments in memory that no run uses, with the tables of all kernels and the numbers that they have.
    """

    any_stream = True

    def __init__(self, memory: CudaMemory, launches: Sequence[ListedLaunch]) -> None:
        self.memory, self.launches = memory, launches
        self.cells: dict[int, list[int]] = {}
        self.scalars: list[tuple[int, FieldParam, int]] = []
        self.structures: list[tuple[int, int]] = []
        self.flat: list[Any] = []  # the arguments of all kernels; addresses are set at each run
        self.kernels: list[tuple[int, tuple[int, ...], int]] = []  # function, size, and the place of the first argument
        for each in launches:
            self._add(each.program.source, each.program.code, each.numbers)
        word, address = ctypes.c_uint, ctypes.c_void_p
        self.launch = alone("cuLaunchKernel", address, *[word] * 7, address, address, address)
        self.idle: list[tuple[Arguments, list[int], list[Any]]] = []

    def _add(self, source: Source, function: LoadedFunction, numbers: Sequence[int]) -> None:
        self.kernels.append((int(function.handle), (*size_of(source.threads, source.group), 0), len(self.flat)))
        nothing = [(0,) * p.type.planes if p.by_value else 0 for p in source.arguments]
        flat, starts = source.flattened(nothing, int, int)
        for n, (number, param, start) in enumerate(zip(numbers, source.arguments, starts, strict=True)):
            if n in source.structures:
                self.structures.append((number, len(self.flat) + start))
            elif param.by_value:
                self.scalars.append((number, param, len(self.flat) + start))
            else:
                self.cells.setdefault(number, []).append(len(self.flat) + start)
        self.flat += flat

    def run(self, values: Values, memory: Values, stream: int = 0) -> dict[int, Any]:
        try:
            arguments, tables, numbers = self.idle.pop()
        except IndexError:
            arguments = Arguments(self.flat)
            tables = [arguments.address + 8 * first for _, _, first in self.kernels]
            numbers = [None] * (len(self.scalars) + len(self.structures))
        cells, values, stream = arguments.cells, {**values, **memory}, stream or self.memory.handle
        for number, places in self.cells.items():
            address = values[number].address
            for place in places:
                cells[place] = address
        for k, (number, param, place) in enumerate(self.scalars):
            if values[number] is not numbers[k]:
                arguments.set_numbers(place, param, values[number])
                numbers[k] = values[number]
        for k, (number, place) in enumerate(self.structures, len(self.scalars)):
            if values[number].table is not numbers[k]:
                numbers[k] = values[number].table
                arguments.set(place, numbers[k])
        for each, (function, size, _), table in zip(self.launches, self.kernels, tables, strict=True):
            if each.program.source.fills:
                fill_outputs(self.memory, each.program.source, each.pick(values), stream)
            self.launch(function, *size, stream, table, None)
        self.idle.append((arguments, tables, numbers))
        return values


def kernel_launch(
    memory: CudaMemory, source: Source, function: LoadedFunction, arguments: Sequence[Argument], timed: bool
) -> KernelLaunch:
    """Return a launch with these arguments.

    Args:
        timed: the parts around the kernel return events.
    """
    flat, starts = source.flattened(arguments, int)
    values = Arguments(flat)
    owners = (values, arguments, function)
    buffers = [None if p.by_value else int(a) for p, a in zip(source.arguments, arguments, strict=True)]
    fills = _fills_of(source, arguments)
    changed: list[Callable[[], None]] = []

    def adjust(position: int, scalars: Argument) -> None:
        values.set_numbers(starts[position], source.arguments[position], scalars)
        for tell in changed:
            tell()

    return KernelLaunch(
        _parts(memory, source, owners, fills, timed),
        adjust,
        partial(_node, memory, function, size_of(source.threads, source.group), values.address),
        owners,
        fills,
        frozenset(b for b in buffers[: source.inputs] if b is not None),
        frozenset(b for b in buffers[source.inputs :] if b is not None),
        changed,
    )


def _parts(
    memory: CudaMemory, source: Source, owners: Sequence[Any], fills: Sequence[Fill], timed: bool
) -> tuple[Part, ...]:
    values, _, function = owners
    word, address = ctypes.c_uint, ctypes.c_void_p
    launch = alone("cuLaunchKernel", address, *[word] * 7, address, address, address)
    sizes = (*size_of(source.threads, source.group), 0)
    enqueue = keeping(owners, partial(launch, int(function.handle), *sizes, memory.handle, values.address, None))
    before: list[Part] = [partial(_fill, memory, fill) for fill in fills]
    if config.debug:
        before.append(partial(note_launch, source.entry, f"{source.threads} in groups of {source.group}"))
    around: list[Part] = [memory.mark] if timed else []
    return (*before, *around, enqueue, *around)


def _node(memory: CudaMemory, function: LoadedFunction, size: tuple[int, ...], table: int) -> Any:
    """Return the CUDA description of the launch."""
    node = memory.cu.CUDA_KERNEL_NODE_PARAMS()
    node.func = function.handle
    node.gridDimX, node.gridDimY, node.gridDimZ, node.blockDimX, node.blockDimY, node.blockDimZ = size
    node.kernelParams = table
    return node


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


def _update(reference: weakref.ref[Graph], parameters: Any, node: Any) -> None:
    graph = reference()
    if graph is None:
        return
    with graph.memory.active():
        returned(graph.cu.cuGraphExecKernelNodeSetParams(graph.executable, node, parameters))
