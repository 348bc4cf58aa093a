"""DLPack capsules, imported and exported: memory shared with array libraries
(https://dmlc.github.io/dlpack/latest/c_api.html)."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from gpuop.base.errors import DeviceError
from gpuop.base.finalizers import at_end
from gpuop.ir.bfloat16 import BITS, CODED
from gpuop.ir.layout import row_major

CPU, CUDA, PINNED = 1, 2, 3  # DLDeviceType
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # DLDataTypeCode, by NumPy kind
BFLOAT = 4  # DLDataTypeCode
KINDS = {code: kind for kind, code in CODES.items()}
NAME, USED = b"dltensor", b"used_dltensor"

# DLTensor: data, device type and number, dimensions, type code, bits and lanes, shape, strides, byte offset.
# DLManagedTensor: a DLTensor, a context, and the deleter. Unpacked at once, as ctypes is slow for each field.
_TENSOR = struct.Struct("PiiiBBHPPQ")
_MANAGED = struct.Struct(_TENSOR.format + "PP")
_ADDRESS, _DEVICE = struct.Struct("P"), struct.Struct("ii")
_CODE, _CODE_AT = struct.Struct("B"), struct.calcsize("Piii")
_DELETER = _MANAGED.size - _ADDRESS.size  # the offset of the deleter's address
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_tensor_at = (ctypes.c_char * _TENSOR.size).from_address


class DLPackMemory(NamedTuple):
    """The memory of an array; strides are in elements.

    Attributes:
        owner: an object that must live as long as the memory is used.
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
        """The addresses of the first byte and of the end."""
        reach = [(n - 1) * step * self.dtype.itemsize for n, step in zip(self.shape, self.strides, strict=True) if n]
        low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
        return self.address + low, self.address + high + self.dtype.itemsize


# --- imported ---------------------------------------------------------------------------------------------------------

_api = ctypes.pythonapi
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_api.PyCapsule_SetName.argtypes = (ctypes.py_object, ctypes.c_char_p)


_deleter_at = cache(_Deleter)  # each library has one


class _ImportedMemory:
    """A handle of imported memory; the producer's deleter runs when no reference to it is left."""

    __slots__ = ("__weakref__",)


def _owner(address: int) -> _ImportedMemory:
    """Return an owner whose finalizer is one C call: an exception that a signal handler raises in a Python destructor is lost."""
    owner = _ImportedMemory()
    (deleter,) = _ADDRESS.unpack(ctypes.string_at(address + _DELETER, _ADDRESS.size))
    if deleter:
        at_end(owner, partial(_deleter_at(deleter), address))
    return owner


def take(capsule: Any) -> DLPackMemory:
    """Import the memory of a `__dlpack__` capsule.

    Raises:
        DeviceError: an element type that NumPy does not have.
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
    if (code, bits, lanes) == (BFLOAT, 16, 1):
        return CODED
    if code not in KINDS or lanes != 1 or bits < 8:
        raise DeviceError(f"an array of DLPack's type {code} with {bits} bits has no dtype of fields")
    return np.dtype(np.bool_ if code == CODES["b"] else f"{KINDS[code]}{bits // 8}")


# --- exported ---------------------------------------------------------------------------------------------------------


class _ExportedMemory:
    """The base of a NumPy array that describes exported memory: NumPy refers to it until the consumer is done."""

    __slots__ = ("__array_interface__", "__weakref__", "owner")
    __array_interface__: dict[str, Any]
    owner: Any


def give(memory: DLPackMemory, done: Callable[[], None]) -> Any:
    """Return a capsule for `__dlpack__`.

    It is a capsule of NumPy with another device: its deleter is C code, which takes the interpreter lock in any thread, and
    does nothing once the interpreter has ended. One in Python would crash there, and lose exceptions of signal handlers.

    Args:
        done: called when the memory is not needed any more, by the consumer or because there is none.
    """
    base, dtype = _ExportedMemory(), BITS if memory.dtype == CODED else memory.dtype
    strides = tuple(n * dtype.itemsize for n in memory.strides)
    base.__array_interface__ = {
        "data": (memory.address, False), "shape": memory.shape, "strides": strides, "typestr": dtype.str, "version": 3
    }  # fmt: skip
    base.owner = memory.owner
    at_end(base, done)
    capsule = np.asarray(base).__dlpack__()
    tensor = _tensor_at(_api.PyCapsule_GetPointer(capsule, NAME))
    _DEVICE.pack_into(tensor, _ADDRESS.size, *memory.device)
    if memory.dtype == CODED:
        _CODE.pack_into(tensor, _CODE_AT, BFLOAT)
    return capsule
