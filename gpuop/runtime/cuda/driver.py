"""Calls of the CUDA driver: statuses as errors, calls that execute no Python code, and page-locked memory of the host."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gpuop.base.errors import DeviceError
from gpuop.base.finalizers import at_end
from gpuop.runtime.base.backend import Array

DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY


def returned(result: tuple[Any, ...]) -> Any:
    """Return the results of a driver call, without its status.

    Raises:
        DeviceError: the call failed.
    """
    status, *values = result
    if status == OUT_OF_MEMORY:
        raise DeviceError(
            "CUDA: the driver has no memory left for what it needs beside fields (CUDA_ERROR_OUT_OF_MEMORY); "
            "release fields and graphs, or end other programs on the GPU"
        )
    if status:
        raise DeviceError(f"CUDA: {status.name}: {_text(status)}")
    return values[0] if values else None


def _text(status: Any) -> str:
    from cuda.bindings import driver as cu

    _, text = cu.cuGetErrorString(status)
    return text.decode() if text else "an error that the driver does not know"


class _Statuses(dict[int, None]):
    """A table of results by status: None for 0, an error for others."""

    def __missing__(self, status: int) -> None:
        from cuda.bindings import driver as cu

        returned((cu.CUresult(status),))


def unasked(name: str, *arguments: Any) -> Any:
    """Return a driver function as one C call that returns its status: a finalizer has no caller to raise to."""
    function = ctypes.CDLL(DRIVER)[name]
    function.argtypes = arguments
    return function


def alone(name: str, *arguments: Any) -> Callable[..., None]:
    """Return a driver function as one C call: cuda-bindings may run Python code, and with it signal handlers.

    Args:
        arguments: their `ctypes` types.

    Raises:
        DeviceError: the call failed; raised by the function that is returned.
    """
    function: Callable[..., None] = unasked(name, *arguments)
    function.restype = _Statuses({0: None}).__getitem__  # type: ignore[attr-defined]
    return function


class Active:
    """A context manager that makes a CUDA context current in the thread."""

    __slots__ = ("pop", "push")

    def __init__(self, push: Callable[[], None], pop: Callable[[], None]) -> None:
        self.push, self.pop = push, pop

    def at_end(self, thing: Any, name: str, handle: int) -> None:
        """Call a driver function with a handle when no reference to an object is left."""
        at_end(thing, self.push, partial(unasked(name, ctypes.c_void_p), handle), self.pop)

    def __enter__(self) -> None:
        self.push()

    def __exit__(self, *_: object) -> None:
        self.pop()


class _PageLocked:
    """The owner of such memory, which its NumPy arrays refer to."""

    def __init__(self, cu: Any, active: Active, nbytes: int) -> None:
        with active:
            result = cu.cuMemHostAlloc(nbytes, cu.CU_MEMHOSTALLOC_PORTABLE)
        if result[0] == OUT_OF_MEMORY:
            raise MemoryError(f"the host has no memory for {nbytes} page-locked bytes")
        address = int(returned(result))
        self.__array_interface__ = {"data": (address, False), "shape": (nbytes,), "typestr": "|u1", "version": 3}
        active.at_end(self, "cuMemFreeHost", address)


def page_locked(cu: Any, active: Active, nbytes: int) -> Array:
    """Allocate bytes of page-locked host memory, one at least, for all contexts.

    Raises:
        MemoryError: the host has none left, as where other memory of the host is asked for.
        DeviceError: the call failed otherwise.
    """
    return np.asarray(_PageLocked(cu, active, nbytes))


def lock_pages(cu: Any, active: Active, memory: Array) -> Array:
    """Page-lock whole pages for all contexts, if the system allows it, until no array refers to them."""
    address = memory.ctypes.data
    with active:
        (status,) = cu.cuMemHostRegister(address, memory.nbytes, cu.CU_MEMHOSTREGISTER_PORTABLE)
    if not status:
        active.at_end(memory, "cuMemHostUnregister", address)
    return memory
