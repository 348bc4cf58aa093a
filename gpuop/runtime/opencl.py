"""OpenCL through pyopencl: buffers, an in-order queue, and programs kept on disk."""

from __future__ import annotations

import atexit
import copy
import os
import shutil
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from gpuop.codegen.dialect import Source
from gpuop.codegen.opencl import OPENCL
from gpuop.codegen.printer import generate
from gpuop.config import config
from gpuop.errors import CompileError, DeviceError, located
from gpuop.fusion.limits import Limits
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import FieldParam
from gpuop.ir.types import FieldType
from gpuop.passes.asserts import assertions, failure, report_asserts
from gpuop.runtime import cache, icd
from gpuop.runtime.backend import Argument, Array, Backend, Buffer, Launch
from gpuop.runtime.trace import note_launch, note_source

_building = threading.Lock()
REGISTERS = 240  # of a GPU's thread, of 255 or 256: compilers need some for themselves
CORRECT_DIVIDE = 1 << 7  # CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT


def device_list() -> list[tuple[str, Any]]:
    """(platform name, pyopencl device) for every device of every driver found. ImportError without pyopencl."""
    icd.prepare()
    if not _can_cache():
        os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
        if "POCL_CACHE_DIR" not in os.environ:  # without a folder to write to, PoCL offers no devices
            os.environ["POCL_CACHE_DIR"] = folder = tempfile.mkdtemp(prefix="gpuop-pocl-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
    import pyopencl as cl

    try:
        platforms = cl.get_platforms()
    except cl.Error:  # no platform at all
        return []
    found = []
    for platform in platforms:
        try:
            found += [(platform.name.strip("\0 "), device) for device in platform.get_devices()]
        except cl.Error:
            continue
    return found


def _can_cache() -> bool:
    """Whether there is a home for what pyopencl keeps of its own; it makes no kernel when that cannot be written."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "pytools")
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return False
    return os.access(folder, os.W_OK)


@dataclass(frozen=True, eq=False)
class Compiled:
    """A kernel's text and pyopencl's program of it; None where the grid has no points."""

    source: Source
    built: Any
    kernel: Kernel


class OpenCL(Backend):
    """One OpenCL device."""

    target = "opencl"

    def __init__(self, name: str, platform: str, device: Any, checked: bool = False) -> None:
        import pyopencl as cl

        self.cl = cl
        self.name = name
        self.checked = checked
        self.device = device
        self.description = f"{device.name.strip()} ({platform}, {device.version.strip()})"
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.limits = self._limits()
        self.features = {"double"} if device.double_fp_config else set()
        divide = ["-cl-fp32-correctly-rounded-divide-sqrt"] if device.single_fp_config & CORRECT_DIVIDE else []
        self.options = ["-cl-std=CL1.2", *divide]
        self.identity = "|".join([platform, device.name, device.version, device.driver_version, *self.options])
        self.programs: WeakValueDictionary[str, Compiled] = WeakValueDictionary()  # by text; plans keep them

    def _limits(self) -> Limits:
        words = self.device.max_parameter_size // 8 - 1  # checked execution has an argument of its own
        on_cpu = self.device.type & self.cl.device_type.CPU
        return Limits(words, self.device.local_mem_size, None if on_cpu else REGISTERS)

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

    def _no_memory(self, kind: FieldType) -> DeviceError:
        total = self.device.global_mem_size
        return DeviceError(
            f"{self.name}: no memory for a field of {kind} ({kind.nbytes} bytes; the device has {total})"
        )

    def empty(self, kind: FieldType) -> Buffer:
        size = max(kind.nbytes, 1)
        if size > self.device.global_mem_size:  # drivers that allocate late would say so only at the launch
            raise self._no_memory(kind)
        return self._guard(lambda: self.cl.Buffer(self.context, self.cl.mem_flags.READ_WRITE, size), kind)

    def upload(self, kind: FieldType, planes: Array) -> Buffer:
        buffer = self.empty(kind)
        if planes.size:
            self._guard(
                lambda: self.cl.enqueue_copy(self.queue, buffer, np.ascontiguousarray(planes), is_blocking=True), kind
            )
        return buffer

    def write(self, buffer: Buffer, planes: Array) -> None:
        if planes.size:
            self.cl.enqueue_copy(self.queue, buffer, np.ascontiguousarray(planes), is_blocking=True)

    def download(self, kind: FieldType, buffer: Buffer) -> Array:
        planes = np.empty((kind.planes, kind.field_shape.points), kind.storage.numpy)
        if planes.size:
            self._guard(lambda: self.cl.enqueue_copy(self.queue, planes, buffer, is_blocking=True), kind)
        return planes

    def copy(self, kind: FieldType, source: Buffer, target: Buffer) -> None:
        if kind.nbytes:
            self.cl.enqueue_copy(self.queue, target, source, byte_count=kind.nbytes)

    def _fill(self, buffer: Buffer, kind: FieldType, value: float) -> Any:
        pattern = np.asarray(value).astype(kind.storage.numpy)
        return self.cl.enqueue_fill_buffer(self.queue, buffer, pattern, 0, kind.nbytes)

    # --- kernels ------------------------------------------------------------------------------------------------

    def compile(self, kernel: Kernel) -> Compiled:
        found = assertions(kernel) if self.checked else ()
        source = generate(report_asserts(kernel) if found else kernel, OPENCL)
        self._check_limits(kernel)
        missing = source.needs - self.features
        if missing:
            raise DeviceError(
                f"operator `{kernel.name}` computes with {', '.join(sorted(missing))}, which {self.name} ({self.description}) "
                "lacks; use float32 fields, or another device"
            )
        note_source(source, "cl")
        with _building:  # one thread at a time: nobody builds what another is building, and `_quiet` is process-wide
            key = "\n".join([source.text, *(f"{s.loc} {s.message}" for s in found)])
            compiled = self.programs.get(key)
            if compiled is None:
                compiled = Compiled(source, self._build(source) if kernel.domain.threads else None, kernel)
                self.programs[key] = compiled
        return compiled

    def _check_limits(self, kernel: Kernel) -> None:
        """DeviceError at the user's line for work-groups and memory that the device does not have."""
        group, device = kernel.work_group, self.device
        fits = all(n <= most for n, most in zip(reversed(group), device.max_work_item_sizes, strict=False))
        if group.points > device.max_work_group_size or not fits:
            shape, most = "×".join(map(str, group)), device.max_work_group_size
            raise DeviceError(
                located(
                    f"{self.name} runs work-groups of up to {most} threads, and `{kernel.name}` asks for {shape}",
                    kernel.loc,
                )
            )
        for space, limit in (("local", device.local_mem_size), ("constant", device.max_constant_buffer_size)):
            total = 0
            for declared in kernel.shared(space):
                total += declared.array.nbytes
                if total > limit:
                    message = f"{self.name} has {limit} bytes of {space} memory, and with `{declared.array.hint}` {total} are used"
                    raise DeviceError(located(message, declared.loc))

    def _build(self, source: Source) -> Any:
        name = cache.key(source.text, self.identity)
        binary = cache.load(name)
        if binary is not None:
            try:
                return self._quiet(self.cl.Program(self.context, [self.device], [binary]))
            except self.cl.Error:
                pass  # another driver's leftovers: build anew
        try:
            program = self._quiet(self.cl.Program(self.context, source.text))
        except self.cl.RuntimeError as refused:
            raise CompileError(_refusal(self, source, str(refused)), source.numbered()) from None
        cache.store(name, program.get_info(self.cl.program_info.BINARIES)[0])
        return program

    def _quiet(self, program: Any) -> Any:
        """Build; Intel's log is never empty, which is no warning. pyopencl's own cache would hide ours and PoCL's."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", self.cl.CompilerWarning)
            return program.build(self.options, cache_dir=False)

    def bind(self, program: Compiled, arguments: Sequence[Argument]) -> Launch:
        source = program.source
        if program.built is None:
            return Launch(lambda: None, lambda position, scalars: None)
        kernel = self.cl.Kernel(program.built, source.entry)
        found = assertions(program.kernel) if self.checked else ()
        report = self.cl.Buffer(self.context, self.cl.mem_flags.READ_WRITE, 4 * len(found)) if found else None
        arguments = [*arguments, report] if found else arguments
        flat: list[Any] = []
        starts = []  # of the arguments, in the kernel's flat list
        for param, argument in zip(source.arguments, arguments, strict=True):
            starts.append(len(flat))
            flat += _scalars(param, argument) if param.by_value else [argument]
        kernel.set_args(*flat)
        fills = [
            (arguments[i], kind, value)
            for i, value in source.fills.items()
            if (kind := source.arguments[i].type).nbytes
        ]
        enqueue = partial(self.cl.enqueue_nd_range_kernel, self.queue, kernel, source.threads, source.group)

        def launch() -> list[Any]:
            events = [self._fill(*fill) for fill in fills]
            note_launch(source.entry, f"{source.threads} in groups of {source.group}")
            events.append(enqueue())
            if report is not None:
                self._raise_failed(program.kernel, np.empty(len(found), np.uint32), report)
            return events

        def adjust(position: int, scalars: Argument) -> None:
            for k, scalar in enumerate(_scalars(source.arguments[position], scalars), starts[position]):
                kernel.set_arg(k, scalar)

        plain = not fills and report is None and config.debug == 0  # then there is nothing but enqueueing
        return Launch(enqueue if plain else launch, adjust)

    def launch(self, runs: Iterable[Callable[[], Any]]) -> None:
        try:
            for run in runs:
                run()
        except self.cl.MemoryError:  # some drivers allocate only now
            total = self.device.global_mem_size
            raise DeviceError(f"{self.name}: no memory to run a kernel (the device has {total} bytes)") from None

    def _raise_failed(self, kernel: Kernel, entries: Array, report: Buffer) -> None:
        self.cl.enqueue_copy(self.queue, entries, report, is_blocking=True)
        error = failure(kernel, entries.tolist())
        if error is not None:
            raise error

    def synchronize(self) -> None:
        self.queue.finish()

    def measuring(self) -> OpenCL:
        other = copy.copy(self)
        other.queue = self.cl.CommandQueue(self.context, properties=self.cl.command_queue_properties.PROFILING_ENABLE)
        return other

    def seconds(self, ran: Any) -> float:
        events = ran if isinstance(ran, list) else [ran]
        return 1e-9 * float(sum(event.profile.end - event.profile.start for event in events))


def _scalars(param: FieldParam, values: Argument) -> list[Any]:
    """What a by-value argument is passed as."""
    kind = np.float32 if param.type.storage.c == "half" else param.type.storage.numpy.type
    return [kind(value) for value in values]


def _refusal(backend: OpenCL, source: Source, log: str) -> str:
    log = log.partition("\n\n")[2] or log  # below pyopencl's repeated heading
    log = "\n".join(line for line in log.splitlines() if line and not line.startswith("(source saved as"))
    users = source.user_lines(log)
    behind = "\n  your lines behind it:\n    " + "\n    ".join(users) if users else ""
    return f"{backend.name} refused the kernel {source.entry}:\n{log}{behind}\n{source.numbered()}"
