"""DLPack capsules, taken and given: how array libraries share memory (https://dmlc.github.io/dlpack/latest/c_api.html)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuop.errors import DeviceError
from gpuop.ir.layout import row_major

CPU, CUDA, PINNED = 1, 2, 3  # DLDeviceType
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # DLDataTypeCode, by NumPy's kind
NAME, USED = b"dltensor", b"used_dltensor"


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


@dataclass(frozen=True, eq=False)
class Memory:
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


class _Taken:
    """Tells the producer when nobody refers to its memory any more."""

    def __init__(self, address: int) -> None:
        self.address = address

    def __del__(self) -> None:
        managed = _Managed.from_address(self.address)
        if managed.deleter:
            managed.deleter(self.address)


def take(capsule: Any) -> Memory:
    """The memory that a capsule of `__dlpack__` stands for.

    Raises:
        DeviceError: elements that NumPy has no type for.
    """
    address = _api.PyCapsule_GetPointer(capsule, NAME)
    _api.PyCapsule_SetName(capsule, USED)
    owner, tensor = _Taken(address), _Managed.from_address(address).tensor
    kinds = {code: kind for kind, code in CODES.items()}
    if tensor.code not in kinds or tensor.lanes != 1 or tensor.bits < 8:
        raise DeviceError(f"an array of DLPack's type {tensor.code} with {tensor.bits} bits has no dtype of fields")
    dtype = np.dtype(np.bool_ if tensor.code == CODES["b"] else f"{kinds[tensor.code]}{tensor.bits // 8}")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else row_major(shape)
    start = (tensor.data or 0) + tensor.byte_offset
    return Memory(start, shape, strides, dtype, (tensor.device_type, tensor.device_id), False, owner)


# --- given ------------------------------------------------------------------------------------------------------------

_given: dict[int, tuple[Any, Callable[[], None]]] = {}  # what lives until the consumer is done, by address


def _release(address: int) -> None:
    _, done = _given.pop(address)
    done()


_deleter = _Deleter(_release)
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


def give(memory: Memory, done: Callable[[], None]) -> Any:
    """A capsule for `__dlpack__`.

    Args:
        done: called when the consumer, or nobody, needs the memory any more.
    """
    sizes = ctypes.c_int64 * max(len(memory.shape), 1)
    shape, strides = sizes(*memory.shape), sizes(*memory.strides)
    managed, tensor = _Managed(), _Tensor()
    tensor.data, tensor.ndim = memory.address, len(memory.shape)
    tensor.device_type, tensor.device_id = memory.device
    tensor.code, tensor.bits, tensor.lanes = CODES[memory.dtype.kind], 8 * memory.dtype.itemsize, 1
    tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
    tensor.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
    managed.tensor, managed.deleter = tensor, _deleter
    address = ctypes.addressof(managed)
    _given[address] = (managed, shape, strides, memory.owner), done
    return _raw.PyCapsule_New(address, NAME, _abandoned)
