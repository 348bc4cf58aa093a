"""A device that plans as CUDA's do, and runs the CUDA C++ of its kernels on the host."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from gpuop.base.cache import blob_store
from gpuop.base.errors import DeviceError
from gpuop.base.finalizers import WeakValues
from gpuop.codegen.generate import target_named
from gpuop.fusion.kernel_limits import CUDA_ARGUMENTS, limits_of
from gpuop.ir.types import FieldType
from gpuop.runtime.base.backend import Argument, Array, Buffer, Launch
from gpuop.runtime.base.compiled import CompiledProgram, CompilingBackend
from gpuop.runtime.base.copy_trace import CopySpan
from gpuop.runtime.base.device_limits import GroupLimits
from gpuop.runtime.base.program_text import DiskPrograms, ProgramText
from gpuop.runtime.base.trace import note_launch
from gpuop.runtime.cuda.device import Cuda
from gpuop.runtime.cuda.launch import size_of
from gpuop.runtime.reference.device import Reference

from .compiled import HEADER, OPTIONS, HostFunction, compiled

ON_HOST = "cuda:sm_90 on the host"
NO_ACCESS = 0
AROUND = 16 * mmap.PAGESIZE  # bytes before and behind an array's pages
NOBODY_WROTE = 0xA5  # bytes of memory that holds nothing yet
LIBC = ctypes.CDLL(None, use_errno=True)


def guarded(nbytes: int) -> Array:
    """Bytes that end, but for what aligns their begin to 16, where pages begin that nobody may access, as some before them."""
    size = -(-max(nbytes, 1) // 16) * 16
    whole = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, AROUND + whole + AROUND)
    np.frombuffer(memory, np.uint8, whole, AROUND)[...] = NOBODY_WROTE
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for at in (base, base + AROUND + whole):
        assert not LIBC.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(AROUND), NO_ACCESS)
    return np.frombuffer(memory, np.uint8, nbytes, AROUND + whole - size)


class CudaOnHost(CompilingBackend, Reference):
    """CUDA C++ compiled by g++. Threads of a block take turns, blocks come one after another."""

    suffix, features = "cu", Cuda.features
    kernels_planned_for = target_named("cuda:sm_90")

    def __init__(self, name: str = ON_HOST, checked: bool = False) -> None:
        super().__init__(checked)
        self.name = self.model = name
        self.description = "CUDA C++ for sm_90, compiled by g++ for the host"
        self.target = replace(self.kernels_planned_for, least_threads=1)
        self.limits = limits_of(self.target, CUDA_ARGUMENTS)
        memory = {"local": self.target.local_memory_bytes, "constant": 65536}
        self.groups = GroupLimits(name, self.description, 1024, (1024, 1024, 64), memory)
        self.identity = "|".join([name, HEADER.read_text(encoding="utf-8"), *OPTIONS])
        self.programs, self.codes = WeakValues(), WeakValues()
        self.program_cache = DiskPrograms(lambda text: blob_store.key(text, self.identity))

    def empty(self, kind: FieldType) -> Buffer:
        shape = (kind.planes, kind.field_shape.points)
        return guarded(kind.nbytes).view(kind.memory_dtype).reshape(shape)

    def upload(self, kind: FieldType, planes: Array) -> Buffer:
        with CopySpan("upload", self):
            buffer = self.empty(kind)
            buffer[...] = planes
            return buffer

    def build(self, program: ProgramText, binary: bytes | None) -> list[HostFunction]:
        try:
            return compiled(program)
        except RuntimeError as refused:
            raise program.sources[0].refused(self.name, str(refused)) from None

    def bind_program(self, program: CompiledProgram, arguments: Sequence[Argument]) -> Launch:
        values = list(arguments)

        def adjust(position: int, scalars: Argument) -> None:
            values[position] = scalars

        return Launch((partial(self.launch_program, program, values),), adjust)

    def launch_program(self, program: CompiledProgram, arguments: Sequence[Argument]) -> None:
        source = program.source
        for buffer, _, value in source.filled(arguments):
            buffer[...] = value
        if program.code is None:
            return
        note_launch(source.entry, f"{source.threads} in groups of {source.group}")
        flat, _ = source.flattened(arguments, lambda buffer: np.uint64(buffer.ctypes.data), np.array)
        cells = [np.array(value) for value in flat]
        table = (ctypes.c_void_p * max(len(cells), 1))(*(cell.ctypes.data for cell in cells))
        wrong = program.code.run(table, size_of(source.threads, source.group))
        if wrong:
            raise DeviceError(f"{self.name}: `{source.name}` {wrong}")
