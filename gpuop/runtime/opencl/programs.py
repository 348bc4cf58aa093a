"""Slow calls of OpenCL drivers through the C API: the interpreter lock is free meanwhile, and the caller may leave."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import field
from functools import cache
from typing import Any

import numpy as np

from gpuop.base.finalizers import End
from gpuop.base.records import dataclass

BINARY_SIZES, BINARIES, BUILD_FAILURE = 0x1165, 0x1166, -11  # CL_PROGRAM_…, CL_BUILD_PROGRAM_FAILURE


@dataclass(frozen=True, eq=False)
class OpenCLCode:
    """A kernel of a pyopencl program.

    Attributes:
        entry: its name in the program.
        idle: pyopencl kernels that no launch is bound to: creation takes far longer than a launch.
    """

    program: Any
    entry: str
    idle: list[Any] = field(default_factory=list)

    def kernel(self) -> Any:
        """Return a pyopencl kernel that nothing else uses."""
        try:
            idle = self.idle.pop()
            return idle.left if type(idle) is End else idle
        except IndexError:
            import pyopencl as cl

            return cl.Kernel(self.program, self.entry)


class BoundKernel:
    """A pyopencl kernel while a launch is bound to it. It is reused when no reference is left, which one C call notes:
    an exception that a signal handler raises in a Python destructor would be lost."""

    __slots__ = ("__weakref__", "code", "ended", "kernel")

    def __init__(self, code: OpenCLCode) -> None:
        self.code, self.kernel = code, code.kernel()
        self.ended = End(self, code.idle.append)
        self.ended.left = self.kernel


def set_arguments(kernel: Any, first: int, arguments: Iterable[Any]) -> None:
    """Set arguments of a pyopencl kernel from a place on. Its `set_args` takes 20 µs for a number: it tries all else first."""
    set_memory = kernel.set_arg
    set_number = getattr(kernel, "_set_arg_buf", set_memory)
    for place, value in enumerate(arguments, first):
        (set_number if isinstance(value, np.generic) else set_memory)(place, value)


@cache
def _library() -> ctypes.CDLL:
    """Return the loader that pyopencl is linked with."""
    import pyopencl as cl

    return ctypes.CDLL(cl._cl.__file__)


def built(device: Any, program: Any, options: list[str]) -> Any:
    """Build and return a pyopencl program, from its inner one with a text or a binary.

    Raises:
        RuntimeError: the driver refuses it; the message is the log.
    """
    import pyopencl as cl

    devices = (ctypes.c_void_p * 1)(device.int_ptr)
    arguments = ctypes.c_void_p(program.int_ptr), 1, devices, " ".join(options).encode(), None, None
    status = _library().clBuildProgram(*arguments)
    if status:
        log = program.get_build_info(device, cl.program_build_info.LOG).strip("\0")
        why = "" if status == BUILD_FAILURE else f"clBuildProgram gives {status}"
        raise RuntimeError("\n".join(filter(None, (why, *log.splitlines()))))
    return cl.Program(program)


def resources(context: Any, device: Any, options: list[str], text: str, entry: str) -> str:
    """Return the driver's report of a kernel, compiled anew: memory, work-groups, and the log.

    Raises:
        RuntimeError: as `built`.
    """
    import pyopencl as cl

    program = built(device, cl._cl._Program(context, text), options)
    of, what = cl.Kernel(program, entry).get_work_group_info, cl.kernel_work_group_info
    private, local = of(what.PRIVATE_MEM_SIZE, device), of(what.LOCAL_MEM_SIZE, device)
    most, multiple = of(what.WORK_GROUP_SIZE, device), of(what.PREFERRED_WORK_GROUP_SIZE_MULTIPLE, device)
    log = program.get_build_info(device, cl.program_build_info.LOG).strip("\0\n ")
    memory = f"{private} bytes of private memory, {local} bytes of local memory"
    groups = f"work-groups of up to {most} threads, best in multiples of {multiple}"
    return "\n".join([f"{memory}, {groups}", *(f"  {line}" for line in log.splitlines())])


def binary_of(program: Any) -> bytes | None:
    """Return the binary of a program for one device; None if the driver has none."""
    handle, size = ctypes.c_void_p(program.int_ptr), ctypes.c_size_t()
    info = _library().clGetProgramInfo
    failed = info(handle, BINARY_SIZES, ctypes.sizeof(size), ctypes.byref(size), None)
    data = ctypes.create_string_buffer(size.value)
    pointer = ctypes.c_void_p(ctypes.addressof(data))
    failed = failed or info(handle, BINARIES, ctypes.sizeof(pointer), ctypes.byref(pointer), None)
    return None if failed or not size.value else data.raw


def finish(queue: Any) -> None:
    """Wait for a queue; pyopencl reports errors at its next wait."""
    _library().clFinish(ctypes.c_void_p(queue.int_ptr))
