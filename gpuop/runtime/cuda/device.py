"""CUDA through PyCUDA and cuda-bindings: NVRTC compiles, launches go to one stream, steps are CUDA graphs."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, cast

import numpy as np

from gpuop.base.cache import blob_store
from gpuop.base.config import config
from gpuop.base.errors import DeviceError
from gpuop.base.finalizers import WeakValues
from gpuop.base.trace import HostSpan
from gpuop.codegen.c.dialect import ATOMICS_OF_64_BITS
from gpuop.codegen.cuda.dialect import ARGUMENT_BYTES, OPTIONS
from gpuop.fusion.kernel_limits import CUDA_ARGUMENTS, limits_of
from gpuop.ir.target import Target
from gpuop.ir.types import FieldType
from gpuop.runtime.base import dlpack
from gpuop.runtime.base.backend import Argument, Array, Backend, Buffer, Launch, Memory, Part, as_device_errors
from gpuop.runtime.base.compiled import CompiledProgram, CompilingBackend
from gpuop.runtime.base.copy_trace import between_marks
from gpuop.runtime.base.current_queue import clone_queue
from gpuop.runtime.base.device_limits import GroupLimits
from gpuop.runtime.base.interruptible import call_interruptibly
from gpuop.runtime.base.launch_list import LaunchList, ListedLaunch
from gpuop.runtime.base.program_text import DiskPrograms, ProgramText
from gpuop.runtime.base.stream_arrays import StreamArrays
from gpuop.runtime.cuda.arrays import ExportedBuffer, ImportedArray, borrow, cupy_arrays
from gpuop.runtime.cuda.driver import lock_pages, returned
from gpuop.runtime.cuda.launch import (
    CudaLaunches,
    Graph,
    KernelLaunch,
    LoadedFunction,
    Module,
    fill_outputs,
    kernel_launch,
    launch_once,
)
from gpuop.runtime.cuda.memory import CudaMemory, ForeignBlock
from gpuop.runtime.cuda.nvrtc import architectures, compile_cuda
from gpuop.runtime.cuda.nvtx import nvtx_range
from gpuop.runtime.cuda.stages import CudaStages
from gpuop.runtime.cuda.stream import CudaMark
from gpuop.runtime.cuda.stream_arrays import LIBRARIES
from gpuop.runtime.cuda.xla_arrays import XlaArrays


def missing() -> str | None:
    """Return what CUDA lacks on this machine, with the remedy; None if there is a device."""
    for module, package in (("pycuda", "pycuda"), ("cuda.bindings", "cuda-bindings")):
        try:
            spec = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            spec = None
        if spec is None:
            return (
                f"{package} is not installed; `pip install '.[cuda]'` in gpuop's checkout brings what CUDA needs "
                "beside the driver"
            )
    try:
        import pycuda.driver as drv
    except ImportError as failed:  # the driver's library
        return f"the NVIDIA driver is not installed: {failed}"
    try:
        drv.init()
        count = drv.Device.count()
    except drv.Error as failed:
        return f"the NVIDIA driver finds no GPU: {failed}"
    if not count:
        return "the NVIDIA driver finds no GPU"
    if not architectures() and shutil.which("nvcc") is None:
        return "there is neither NVRTC nor nvcc; `pip install nvidia-cuda-nvrtc`, or install the CUDA toolkit"
    return None


def device_list() -> list[str]:
    """Return the names of the GPUs. `missing()` must be None."""
    import pycuda.driver as drv

    return [drv.Device(number).name() for number in range(drv.Device.count())]


class Cuda(CompilingBackend):
    """A CUDA device."""

    suffix, features, builds_at_once = "cu", frozenset({"double", ATOMICS_OF_64_BITS}), True

    def __init__(self, name: str, ordinal: int, checked: bool = False) -> None:
        import pycuda.driver as drv

        device = drv.Device(ordinal)
        of = device.get_attribute
        facts = drv.device_attribute
        self.name, self.ordinal, self.checked = name, ordinal, checked
        major, minor = device.compute_capability()
        self.architecture, self.kind = _architecture(10 * major + minor)
        self.model = device.name()
        self.description = (
            f"{self.model} (CUDA {'.'.join(map(str, drv.get_version()[:2]))}, compute capability {major}.{minor})"
        )
        self.groups = GroupLimits(
            name,
            self.description,
            of(facts.MAX_THREADS_PER_BLOCK),
            (of(facts.MAX_BLOCK_DIM_X), of(facts.MAX_BLOCK_DIM_Y), of(facts.MAX_BLOCK_DIM_Z)),
            {"local": of(facts.MAX_SHARED_MEMORY_PER_BLOCK), "constant": of(facts.TOTAL_CONSTANT_MEMORY)},
        )
        self.max_work_group_size, self.compute_units = self.groups.threads, of(facts.MULTIPROCESSOR_COUNT)
        local = self.groups.memory["local"]
        self.identity = "|".join([self.description, str(drv.get_driver_version()), *OPTIONS, *architectures()[-1:]])
        warp, cupy = of(facts.WARP_SIZE), importlib.util.find_spec("cupy") is not None
        self.target = Target(
            "cuda", 10 * major + minor, "gpu", warp, local, has_fp16=True, has_arrays=cupy, widening="unrolled"
        )
        self.limits = limits_of(self.target, CUDA_ARGUMENTS)
        self.memory, self.total_memory = CudaMemory(name, ordinal), int(drv.Device(ordinal).total_memory())
        self.stages = CudaStages(self.memory)
        self.refusals, self.timed, self.measured = (drv.Error,), False, cast("Cuda | None", None)
        self.programs, self.codes = WeakValues(), WeakValues()
        self.program_cache = DiskPrograms(self._cache_name)

    # --- memory -------------------------------------------------------------------------------------------------

    def empty(self, kind: FieldType) -> Buffer:
        return self.memory.allocate(kind)

    def upload(self, kind: FieldType, planes: Array) -> Buffer:
        buffer = self.empty(kind)
        self.write(buffer, planes)
        if not kind.field_shape and kind.nbytes <= ARGUMENT_BYTES:
            buffer.table = planes.tobytes()
        return buffer

    @as_device_errors
    def write(self, buffer: Buffer, planes: Array) -> None:
        with between_marks("upload", self):
            self.memory.send(planes, buffer)

    def download(self, kind: FieldType, buffer: Buffer) -> Array:
        planes = np.empty((kind.planes, kind.field_shape.points), kind.memory_dtype)
        with between_marks("download", self):
            self._reported(lambda: self.memory.receive(buffer, planes))
        return planes

    @as_device_errors
    def copy(self, kind: FieldType, source: Buffer, target: Buffer) -> None:
        if kind.nbytes:
            with between_marks("copy", self, waits=False):
                self.memory.copy(source, target, kind.nbytes)

    def fetch(self, kind: FieldType, buffer: Buffer, array: Array) -> None:
        if kind.nbytes:
            with between_marks("download", self, waits=False):
                self._reported(lambda: self.memory.fetch(buffer, array))

    def bring(self, kind: FieldType, buffer: Buffer, array: Array) -> None:
        if kind.nbytes:
            with between_marks("upload", self, waits=False):
                self._reported(lambda: self.memory.bring(array, buffer))

    def host_memory(self, nbytes: int) -> Array:
        return self.memory.host_memory(max(nbytes, 1))[:nbytes]

    def locked(self, memory: Array) -> Array:
        return lock_pages(self.memory.cu, self.memory.active(), memory)

    def _reported(self, action: Callable[[], None]) -> None:
        """Raise errors of earlier kernels, which the driver reports at the next wait."""
        try:
            action()
        except DeviceError as failed:
            raise DeviceError(f"{self.name}: {failed}; CUDA is lost to this process, start another one") from None

    def borrow(self, array: Any) -> ImportedArray:
        return borrow(self.memory, self.ordinal, array)

    def lend(self, buffer: Buffer, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> ExportedBuffer:
        device = (dlpack.CUDA, self.ordinal)
        return ExportedBuffer(
            self.memory, dlpack.DLPackMemory(int(buffer), shape, strides, np.dtype(dtype), device, False, buffer)
        )

    def arrays_of(self, library: str) -> StreamArrays | None:
        access = XlaArrays if library == "gpuop" else LIBRARIES.get(library)
        return None if access is None else access(self.memory, self.ordinal)

    def arrays(self, inputs: Sequence[Memory], outputs: Sequence[Memory]) -> AbstractContextManager[list[Any]]:
        return cupy_arrays(self.memory, [*inputs, *outputs])

    def synchronize(self) -> None:
        with HostSpan("wait"):
            self.memory.synchronize()

    def trim(self) -> None:
        if self.stages is not None:
            self.stages.let_go()
        self.memory.trim()

    # --- kernels ------------------------------------------------------------------------------------------------

    def build(self, program: ProgramText, binary: bytes | None) -> list[LoadedFunction]:
        """Return the CUDA functions of a text; their module is unloaded with them."""
        cu, code = self.memory.cu, binary or self._binary(program)
        with self.memory.active():
            module = Module(returned(cu.cuModuleLoadData(code)))
            self.memory.active().at_end(module, "cuModuleUnload", int(module.handle))
            functions = [returned(cu.cuModuleGetFunction(module.handle, entry.encode())) for entry in program.entries]
        return [LoadedFunction(function, module) for function in functions]

    def _cache_name(self, text: str) -> str:
        return blob_store.key(text, self.architecture, self.kind, *OPTIONS, *architectures()[-1:])

    def _binary(self, program: ProgramText) -> bytes:
        name = self._cache_name(program.text)
        binary = blob_store.load(name)
        if binary is None:
            try:
                compiled = partial(compile_cuda, program.text, self.architecture, self.kind)
                binary = call_interruptibly(name, compiled, self.name, program.names)
            except RuntimeError as refused:
                raise program.sources[0].refused(self.name, str(refused)) from None
            blob_store.store(name, binary)
        return binary

    def bind_program(self, program: CompiledProgram, arguments: Sequence[Argument]) -> Launch:
        if program.code is None:
            fill = partial(fill_outputs, self.memory, program.source, arguments)
            return Launch((fill,), lambda position, scalars: None)
        return kernel_launch(self.memory, program.source, program.code, arguments, self.timed)

    def launch_program(self, program: CompiledProgram, arguments: Sequence[Argument]) -> None:
        launch_once(self.memory, program.source, program.code, arguments)

    def list_programs(self, launches: Sequence[ListedLaunch]) -> LaunchList:
        return CudaLaunches(self.memory, launches)

    def sequence(self, launches: Sequence[Launch]) -> list[Part]:
        """Return runs of neighbouring kernels as CUDA graphs."""
        if self.timed or config.debug:
            return super().sequence(launches)
        parts: list[Part] = []
        kernels: list[KernelLaunch] = []
        for launch in [*launches, None]:
            if isinstance(launch, KernelLaunch):
                kernels.append(launch)
                continue
            if kernels:
                parts.append(Graph(self.memory, kernels).part())
                kernels = []
            if launch is not None:
                parts += launch.parts
        return parts

    # --- time ---------------------------------------------------------------------------------------------------

    def measuring(self) -> Cuda:
        if self.measured is None:
            other = clone_queue(self)
            other.timed, other.measured = True, other
            self.measured = other
        return self.measured

    def seconds(self, ran: Sequence[Any]) -> float:
        return self.between(*ran)

    def span(self, ran: Sequence[Any], since: CudaMark) -> tuple[float, float]:
        return self.between(since, ran[0]), self.between(*ran)

    def label(self, name: str) -> Part:
        return nvtx_range(name)

    def record(self) -> CudaMark:
        return self.memory.mark()

    def reached(self, mark: CudaMark) -> bool:
        with self.memory.active():
            return mark.reached()

    def wait(self, mark: CudaMark) -> None:
        with HostSpan("wait"), self.memory.active():
            self._reported(mark.wait)

    def between(self, first: CudaMark, last: CudaMark) -> float:
        with self.memory.active():
            return first.seconds_till(last)

    def follow(self, mark: CudaMark) -> None:
        with self.memory.active():
            self.memory.stream.follow(mark)

    def another(self, priority: str) -> Cuda:
        other = clone_queue(self)
        other.memory, other.measured = self.memory.another(priority), None
        other.stages = CudaStages(other.memory)
        return other

    def take(self, buffer: Buffer, owner: Backend, mark: Any) -> Buffer:
        if owner is self:
            return buffer
        shared = ForeignBlock(super().take(buffer, owner, mark))
        self.memory.retire_after(shared, shared.owner)
        return shared

    def keep(self, owner: Any) -> None:
        self.memory.retire(owner)


def _architecture(capability: int) -> tuple[str, str]:
    """Return the architecture and the output: machine code, or PTX if the compiler is older than the device."""
    name = f"sm_{capability}"
    numbers = [int(a[3:]) for a in architectures()]
    if capability in numbers or not numbers:
        return name, "cubin"
    older = [a for a in numbers if a < capability]
    if not older:
        return name, "cubin"
    best = older[-1]
    return f"sm_{best}", "cubin" if best // 10 == capability // 10 else "ptx"
