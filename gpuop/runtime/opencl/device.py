"""OpenCL through pyopencl: buffers, an in-order queue, and programs cached on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any

import numpy as np

from gpuop.base.cache import blob_store
from gpuop.base.config import config
from gpuop.base.errors import DeviceError
from gpuop.base.finalizers import End, WeakValues
from gpuop.base.trace import HostSpan, observers
from gpuop.codegen.c.dialect import Source, scalars_of
from gpuop.fusion.kernel_limits import limits_of
from gpuop.ir.types import FieldType
from gpuop.runtime.base.backend import Argument, Array, Buffer, Launch, Memory, Part, as_device_errors, keeping
from gpuop.runtime.base.compiled import CompiledProgram, CompilingBackend
from gpuop.runtime.base.copy_trace import CopySpan
from gpuop.runtime.base.current_queue import clone_queue
from gpuop.runtime.base.interruptible import call_interruptibly
from gpuop.runtime.base.launch_list import LaunchList, ListedLaunch
from gpuop.runtime.base.program_text import DiskPrograms, ProgramText
from gpuop.runtime.base.trace import note_launch
from gpuop.runtime.opencl.arrays import OwnersByMark, bring, mapped_arrays, memory_of, new_buffer, new_queue, reach
from gpuop.runtime.opencl.discovery import LATE, features_of, groups_of, planned_for, target_of
from gpuop.runtime.opencl.launches import OpenCLLaunches
from gpuop.runtime.opencl.programs import BoundKernel, OpenCLCode, binary_of, built, finish, set_arguments

CORRECT_DIVIDE = 1 << 7  # CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT


class OpenCL(CompilingBackend):
    """An OpenCL device.

    Attributes:
        own_device: "gpu" or "cpu"; its target may be of another kind, whose kernels it runs.
        shares_host_memory: True if kernels take any memory of the host, and the host sees what they wrote.
    """

    suffix = "cl"

    def __init__(self, name: str, platform: str, device: Any, checked: bool = False) -> None:
        import pyopencl as cl

        self.cl, self.refusals = cl, (cl.Error,)
        self.name = name
        self.checked, self.only_enqueues = checked, not checked
        self.device = device
        self.model = device.name.strip()
        self.description = f"{device.name.strip()} ({platform}, {device.version.strip()})"
        self.context = cl.Context([device])
        self.queue = new_queue(cl, self.context, device, "normal")
        own = target_of(platform, device)
        self.own_device, self.target = own.device, planned_for(own)
        if self.target != own:
            self.description += ", planned for as a GPU"
        words = device.max_parameter_size // 8 - 1  # checked execution has one more argument
        self.limits = limits_of(self.target, words)
        self.features = features_of(device)
        self.groups = groups_of(name, self.description, device)
        self.max_work_group_size, self.compute_units = self.groups.threads, device.max_compute_units
        divide = ["-cl-fp32-correctly-rounded-divide-sqrt"] if device.single_fp_config & CORRECT_DIVIDE else []
        quiet = ["-w"] if platform in LATE else []  # PoCL prints the number of warnings on stderr
        self.options = ["-cl-std=CL1.2", *divide, *quiet]
        self.identity = "|".join([platform, device.name, device.version, device.driver_version, *self.options])
        self.programs, self.codes = WeakValues(), WeakValues()
        self.program_cache = DiskPrograms(lambda text: blob_store.key(text, self.identity))
        self.total_memory = device.global_mem_size
        shared = cl.device_svm_capabilities.FINE_GRAIN_SYSTEM
        self.shares_host_memory = bool(device.svm_capabilities & shared)
        self.fresh: list[str] = []  # compiled kernels that may not have run yet
        self.late = platform in LATE
        self.owners = OwnersByMark(self.reached)

    # --- memory -------------------------------------------------------------------------------------------------

    def _guard(self, action: Callable[[], Any], kind: FieldType) -> Any:
        try:
            return action()
        except self.cl.MemoryError:
            raise self._no_memory(kind) from None
        except self.cl.Error as failed:
            limit = self.device.max_mem_alloc_size
            raise DeviceError(
                f"{self.name}: a field of {kind} ({kind.nbytes} bytes; at most {limit} at once) failed: {failed}"
            ) from None

    def _wait(self, launched: bool = True) -> None:
        """Handle signals before a wait in the driver, where they wait too; `launched` is False before a launch."""
        self._patiently(self.queue, partial(finish, self.queue), launched)

    def _patiently(self, what: Any, wait: Callable[[], None], launched: bool = True) -> None:
        fresh = self.fresh[-1:]
        if fresh:
            kernel = fresh[0] if self.late else ""
            call_interruptibly(what, wait, self.name, kernel, "compiling or running for the first time")
            if launched:
                self.fresh.clear()

    def _no_memory(self, kind: FieldType) -> DeviceError:
        size = f"{kind.nbytes} bytes; the device has {self.total_memory}"
        return DeviceError(f"{self.name}: no memory for a field of {kind} ({size})")

    def empty(self, kind: FieldType) -> Buffer:
        size = kind.nbytes or 1
        if size > self.total_memory:  # drivers that allocate late would report it only at the launch
            raise self._no_memory(kind)
        return self._guard(partial(new_buffer, self.cl, self.context, size, self.own_device), kind)

    def upload(self, kind: FieldType, planes: Array) -> Buffer:
        buffer = self.empty(kind)
        self._guard(lambda: self._send(buffer, planes), kind)
        return buffer

    @as_device_errors
    def write(self, buffer: Buffer, planes: Array) -> None:
        self._send(buffer, planes)

    def _send(self, buffer: Buffer, planes: Array) -> None:
        if planes.size:
            with CopySpan("upload", self) as span:
                self._wait(launched=False)
                span.ran.append(self._copied(buffer, np.ascontiguousarray(planes), is_blocking=True))

    def download(self, kind: FieldType, buffer: Buffer) -> Array:
        planes = np.empty((kind.planes, kind.field_shape.points), kind.memory_dtype)
        if not planes.size:
            return planes
        copy = partial(self._copied, planes, buffer, is_blocking=True)
        if observers or self.fresh:
            with CopySpan("download", self) as span:
                self._wait()
                span.ran.append(self._guard(copy, kind))
        else:
            self._guard(copy, kind)
        return planes

    @as_device_errors
    def copy(self, kind: FieldType, source: Buffer, target: Buffer) -> None:
        if kind.nbytes:
            with CopySpan("copy", self, waits=False) as span:
                span.ran.append(self._copied(target, source, byte_count=kind.nbytes))

    def _copied(self, target: Any, source: Any, **how: Any) -> Any:
        return self.cl.enqueue_copy(self.queue, target, source, **how)

    def fill(self, buffer: Buffer, kind: FieldType, value: float) -> Any:
        pattern = np.asarray(value).astype(kind.memory_dtype)
        return self.cl.enqueue_fill(self.queue, buffer, pattern, kind.nbytes)  # a buffer, or host memory

    def wrap(self, array: Array) -> Buffer | None:
        cl = self.cl
        if self.target.device != "cpu" or not array.size:
            return None
        memory = array if array.flags.c_contiguous and array.flags.writeable else memory_of(array)
        if self.shares_host_memory:
            return cl.SVM(memory)
        if reach(array) > self.device.max_mem_alloc_size:  # for example a few rows of a large array
            return None
        return cl.Buffer(self.context, cl.mem_flags.USE_HOST_PTR | cl.mem_flags.READ_WRITE, hostbuf=memory)

    def arrays(self, inputs: Sequence[Memory], outputs: Sequence[Memory]) -> AbstractContextManager[list[Array]]:
        if self.own_device != "cpu":
            return super().arrays(inputs, outputs)
        self._wait()
        return mapped_arrays(self.cl, self.queue, inputs, outputs)

    def settle(self, buffers: Iterable[Buffer]) -> None:
        span = HostSpan("wait").__enter__() if observers else None
        try:
            if self.fresh:
                self._wait()
            if not self.shares_host_memory:
                for buffer in buffers:
                    bring(self.cl, self.queue, buffer)
            self.queue.finish()
        finally:
            if span is not None:
                span.__exit__()
        if self.owners.owners:
            self.owners.let_go()

    # --- kernels ------------------------------------------------------------------------------------------------

    def load(self, source: Source, binary: bytes | None) -> CompiledProgram:
        """Return a program, whose arguments are checked against the bundle's description: their number and kinds."""
        program = super().load(source, binary)
        code = program.code
        if code is None:
            return program
        nothing = [(0,) * param.type.planes if param.by_value else None for param in source.arguments]
        arguments = source.flattened(nothing, lambda buffer: buffer)[0]
        try:
            kernel = self.cl.Kernel(code.program, code.entry)
            if kernel.num_args != len(arguments):
                raise source.refused(self.name, f"it takes {kernel.num_args} arguments, not {len(arguments)}")
            kernel.set_args(*arguments)
        except self.cl.Error as wrong:
            raise source.refused(self.name, str(wrong)) from None
        code.idle.append(kernel)
        return program

    def build(self, program: ProgramText, binary: bytes | None) -> list[OpenCLCode]:
        name = self.program_cache.name(program.text)
        build = partial(self._made, name, program.text)
        try:
            result = call_interruptibly((self.context, name), build, self.name, program.names)
        except RuntimeError as refused:
            raise program.sources[0].refused(self.name, str(refused)) from None
        self.fresh.append(program.names)
        return [OpenCLCode(result, entry) for entry in program.entries]

    def _made(self, name: str, text: str) -> Any:
        inner, binary = self.cl._cl._Program, None if self.late else blob_store.load(name)
        if binary is not None:
            with suppress(self.cl.Error, RuntimeError):  # leftovers of another driver: build anew
                return built(self.device, inner(self.context, [self.device], [binary]), self.options)
        program = built(self.device, inner(self.context, text), self.options)
        binary = b"" if self.late else binary_of(program)
        if binary is not None:
            blob_store.store(name, binary)
        return program

    @as_device_errors
    def bind_program(self, program: CompiledProgram, arguments: Sequence[Argument]) -> Launch:
        source = program.source
        parts: list[Part] = [partial(self.fill, *fill) for fill in source.filled(arguments)]
        if program.code is None:
            return Launch(tuple(parts), lambda position, scalars: None)
        bound = BoundKernel(program.code)
        flat, starts = source.flattened(arguments, lambda buffer: buffer)
        set_arguments(bound.kernel, 0, flat)
        if config.debug:
            parts.append(partial(note_launch, source.entry, f"{source.threads} in groups of {source.group}"))
        enqueue = partial(self.cl.enqueue_nd_range_kernel, self.queue, bound.kernel, source.threads, source.group)
        parts.append(keeping(bound, enqueue))

        def adjust(position: int, scalars: Argument) -> None:
            self._set_arguments(bound.kernel, starts[position], scalars_of(source.arguments[position], scalars))

        return Launch(tuple(parts), adjust)

    @as_device_errors
    def _set_arguments(self, kernel: Any, first: int, scalars: Iterable[Any]) -> None:
        set_arguments(kernel, first, scalars)

    def launch_program(self, program: CompiledProgram, arguments: Sequence[Argument]) -> None:
        source, code = program.source, program.code
        try:
            try:
                kernel = code.idle.pop()
            except IndexError:
                kernel = code.kernel()
            kernel = kernel.left if type(kernel) is End else kernel
            if source.direct:
                kernel.set_args(*arguments)
            else:
                set_arguments(kernel, 0, source.flattened(arguments, lambda buffer: buffer)[0])
            for fill in source.filled(arguments) if source.fills else ():
                self.fill(*fill)
            self.cl.enqueue_nd_range_kernel(self.queue, kernel, source.threads, source.group)
        except self.cl.Error as refusal:
            raise self.refused(refusal) from None
        code.idle.append(kernel)

    def list_programs(self, launches: Sequence[ListedLaunch]) -> LaunchList:
        return OpenCLLaunches(self, launches)

    def refused(self, refusal: Exception) -> DeviceError:
        if isinstance(refusal, self.cl.MemoryError):  # some drivers allocate only on use
            total = self.device.global_mem_size
            return DeviceError(f"{self.name}: no memory to run a kernel (the device has {total} bytes)")
        return DeviceError(f"{self.name} did not run a kernel: {refusal}")

    @as_device_errors
    def synchronize(self) -> None:
        with HostSpan("wait"):
            self._wait()
            self.queue.finish()

    # --- time ---------------------------------------------------------------------------------------------------

    def seconds(self, ran: Sequence[Any]) -> float:
        return 1e-9 * float(sum(event.profile.end - event.profile.start for event in ran))

    def span(self, ran: Sequence[Any], since: Any) -> tuple[float, float]:
        began, ended = min(event.profile.start for event in ran), max(event.profile.end for event in ran)
        return 1e-9 * float(began - since.profile.end), 1e-9 * float(ended - began)

    @as_device_errors
    def record(self) -> Any:
        mark = self.cl.enqueue_marker(self.queue)
        self.queue.flush()  # other queues wait only for flushed work
        return mark

    @as_device_errors
    def reached(self, mark: Any) -> bool:
        return bool(mark.command_execution_status <= self.cl.command_execution_status.COMPLETE)

    @as_device_errors
    def wait(self, mark: Any) -> None:
        with HostSpan("wait"):
            self._patiently(mark, mark.wait)
            mark.wait()

    @as_device_errors
    def between(self, first: Any, last: Any) -> float:
        return 1e-9 * float(last.profile.end - first.profile.end)

    @as_device_errors
    def follow(self, mark: Any) -> None:
        self.cl.enqueue_barrier(self.queue, wait_for=[mark])

    @as_device_errors
    def another(self, priority: str) -> OpenCL:
        other = clone_queue(self)
        other.queue = new_queue(self.cl, self.context, self.device, priority)
        return other

    @as_device_errors
    def fetch(self, kind: FieldType, buffer: Buffer, array: Array) -> None:
        if kind.nbytes:
            with CopySpan("download", self, waits=False) as span:
                span.ran.append(self._copied(array, buffer, is_blocking=False))
                self.owners.add(span.ran[0], (array, buffer))

    def keep(self, owner: Any) -> None:
        with suppress(DeviceError):  # a failing device runs nothing
            self.owners.add(self.record(), owner)
