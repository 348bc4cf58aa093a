"""Calls of CUDA's driver: their statuses as errors, and calls that run nothing of Python's."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from gpuop.base.errors import DeviceError
from gpuop.base.finalizers import at_end

DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def returned(result: tuple[Any, ...]) -> Any:
    """What a call of the driver returns beside its status.

    Raises:
        DeviceError: it failed.
    """
    status, *values = result
    if status:
        raise DeviceError(f"CUDA: {status.name}: {_text(status)}")
    return values[0] if values else None


def _text(status: Any) -> str:
    from cuda.bindings import driver as cu

    _, text = cu.cuGetErrorString(status)
    return text.decode() if text else "an error that the driver does not know"


class _Statuses(dict[int, None]):
    """What a status is taken for: None for 0, an error for others."""

    def __missing__(self, status: int) -> None:
        from cuda.bindings import driver as cu

        returned((cu.CUresult(status),))


def unasked(name: str, *arguments: Any) -> Any:
    """A function of the driver's, as a call of C's alone that gives its status: nobody asks whether an end failed."""
    function = ctypes.CDLL(DRIVER)[name]
    function.argtypes = arguments
    return function


def alone(name: str, *arguments: Any) -> Callable[..., None]:
    """A function of the driver's, as a call of C's alone: cuda-bindings' may run Python, where handlers of signals run too.

    Args:
        arguments: their types, of `ctypes`.

    Raises:
        DeviceError: the call failed; from what is returned.
    """
    function: Callable[..., None] = unasked(name, *arguments)
    function.restype = _Statuses({0: None}).__getitem__  # type: ignore[attr-defined]
    return function


class Active:
    """Makes a context current in the thread that enters."""

    __slots__ = ("pop", "push")

    def __init__(self, push: Callable[[], None], pop: Callable[[], None]) -> None:
        self.push, self.pop = push, pop

    def at_end(self, thing: Any, name: str, handle: int) -> None:
        """Call a function of the driver's with a handle when nobody refers to a thing any more."""
        at_end(thing, self.push, partial(unasked(name, ctypes.c_void_p), handle), self.pop)

    def __enter__(self) -> None:
        self.push()

    def __exit__(self, *_: object) -> None:
        self.pop()
