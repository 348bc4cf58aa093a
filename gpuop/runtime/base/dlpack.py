"""DLPack capsules, taken and given: how array libraries share memory (https://dmlc.github.io/dlpack/latest/c_api.html)."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from gpuop.base.errors import DeviceError
from gpuop.base.finalizers import at_end
from gpuop.ir.layout import row_major

CPU, CUDA, PINNED = 1, 2, 3  # DLDeviceType
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # DLDataTypeCode, by NumPy's kind
KINDS = {code: kind for kind, code in CODES.items()}
NAME, USED = b"dltensor", b"used_dltensor"

# DLTensor: data, device type and number, dimensions, type code, bits and lanes, shape, strides, byte offset.
# DLManagedTensor: that, a context, and the deleter. Packed at once, as ctypes takes its time for each field.
_TENSOR = struct.Struct("PiiiBBHPPQ")
_MANAGED = struct.Struct(_TENSOR.format + "PP")
_ADDRESS = struct.Struct("P")
_DELETER = _MANAGED.size - _ADDRESS.size  # the offset of the deleter's address
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DLPackMemory(NamedTuple):
    """An array's memory; strides are in elements.

    Attributes:
        owner: what must live as long as the memory is used.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    device: tuple[int, int]
    read_only: bool
    owner: Any

    @property
    def span(self) -> tuple[int, int]:
        """The addresses from the first byte to behind the last one."""
        reach = [(n - 1) * step * self.dtype.itemsize for n, step in zip(self.shape, self.strides, strict=True) if n]
        low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
        return self.address + low, self.address + high + self.dtype.itemsize


# --- taken ------------------------------------------------------------------------------------------------------------

_api = ctypes.pythonapi
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_api.PyCapsule_SetName.argtypes = (ctypes.py_object, ctypes.c_char_p)


_deleter_at = cache(_Deleter)  # libraries have one each


class _Taken:
    """Tells the producer when nobody refers to its memory any more."""

    __slots__ = ("__weakref__",)


def _owner(address: int) -> _Taken:
    """What tells the producer, by a call of C's alone: what a signal's handler raises in a destructor of Python's is lost."""
    owner = _Taken()
    (deleter,) = _ADDRESS.unpack(ctypes.string_at(address + _DELETER, _ADDRESS.size))
    if deleter:
        at_end(owner, partial(_deleter_at(deleter), address))
    return owner


def take(capsule: Any) -> DLPackMemory:
    """The memory that a capsule of `__dlpack__` stands for.

    Raises:
        DeviceError: elements that NumPy has no type for.
    """
    address = _api.PyCapsule_GetPointer(capsule, NAME)
    _api.PyCapsule_SetName(capsule, USED)
    owner = _owner(address)
    data, device, number, rank, code, bits, lanes, extents, steps, offset = _TENSOR.unpack(
        ctypes.string_at(address, _TENSOR.size)
    )
    shape = struct.unpack(f"{rank}q", ctypes.string_at(extents, 8 * rank))
    strides = struct.unpack(f"{rank}q", ctypes.string_at(steps, 8 * rank)) if steps else row_major(shape)
    return DLPackMemory(data + offset, shape, strides, _dtype(code, bits, lanes), (device, number), False, owner)


@cache
def _dtype(code: int, bits: int, lanes: int) -> np.dtype[Any]:
    if code not in KINDS or lanes != 1 or bits < 8:
        raise DeviceError(f"an array of DLPack's type {code} with {bits} bits has no dtype of fields")
    return np.dtype(np.bool_ if code == CODES["b"] else f"{KINDS[code]}{bits // 8}")


# --- given ------------------------------------------------------------------------------------------------------------

# Memory lent to a consumer, and what to call when that is done; by address
_given: dict[int, tuple[Any, Callable[[], None]]] = {}


def _release(address: int, given: Any = _given, ends: Callable[[], bool] = sys.is_finalizing) -> None:
    if not ends():  # else there is nobody to tell
        _, done = given.pop(address)
        done()


_deleter = _Deleter(_release)
_deleter_address = ctypes.cast(_deleter, ctypes.c_void_p).value
_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_raw = ctypes.PyDLL(None)
_raw.PyCapsule_IsValid.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
_raw.PyCapsule_GetPointer.restype = ctypes.c_void_p
_raw.PyCapsule_GetPointer.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
_raw.PyCapsule_New.restype = ctypes.py_object
_raw.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, _Destructor)


def _abandon(capsule: int) -> None:
    """A capsule that nobody took gives its memory back itself."""
    if _raw.PyCapsule_IsValid(capsule, NAME):
        _release(_raw.PyCapsule_GetPointer(capsule, NAME))


_abandoned = _Destructor(_abandon)
for _function in (_deleter, _abandoned):  # consumers may call them when the interpreter has let go of this module
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_function))


def give(memory: DLPackMemory, done: Callable[[], None]) -> Any:
    """A capsule for `__dlpack__`.

    Args:
        done: called when the consumer, or nobody, needs the memory any more.
    """
    rank = len(memory.shape)
    held = ctypes.create_string_buffer(_MANAGED.size + 16 * rank)
    address = ctypes.addressof(held)
    shape = address + _MANAGED.size
    dtype = memory.dtype
    _MANAGED.pack_into(
        held, 0, memory.address, *memory.device, rank, CODES[dtype.kind], 8 * dtype.itemsize, 1, shape, shape + 8 * rank, 0, 0,
        _deleter_address,
    )  # fmt: skip
    struct.pack_into(f"{2 * rank}q", held, _MANAGED.size, *memory.shape, *memory.strides)
    _given[address] = (held, memory.owner), done
    return _raw.PyCapsule_New(address, NAME, _abandoned)
