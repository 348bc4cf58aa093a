"""What a device must offer, and nothing more; everything above it is written against this."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.fusion.limits import LEAST
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import FieldType

Array = NDArray[Any]
Buffer = Any  # a device's own handle of memory
Argument = Any  # a Buffer, or the tuple of scalars of a by-value parameter


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel with its arguments set.

    Attributes:
        run: enqueues the kernel, in order, and returns at once; what it returns is for `Backend.seconds`.
        adjust: (position of a by-value argument, its scalars): what later runs get.
    """

    run: Callable[[], Any]
    adjust: Callable[[int, Argument], None]


class Backend(ABC):
    """A device. Buffers hold fields as planes: one contiguous grid for each tensor element."""

    name: str
    description: str
    target: str  # the dialect of its source; "" for the reference
    limits = LEAST  # of the kernels that are planned for it

    @abstractmethod
    def empty(self, kind: FieldType) -> Buffer:
        """Memory for a field; contents undefined. DeviceError when there is none."""

    @abstractmethod
    def upload(self, kind: FieldType, planes: Array) -> Buffer:
        """A buffer with these planes, which may change afterwards."""

    @abstractmethod
    def write(self, buffer: Buffer, planes: Array) -> None:
        """Overwrite a buffer."""

    @abstractmethod
    def download(self, kind: FieldType, buffer: Buffer) -> Array:
        """The planes of a field, in memory of the caller's; waits."""

    @abstractmethod
    def copy(self, kind: FieldType, source: Buffer, target: Buffer) -> None:
        """Copy a buffer on the device, in order with launches."""

    @abstractmethod
    def compile(self, kernel: Kernel) -> Any:
        """Something that `bind` takes. CompileError with numbered source; DeviceError for types it lacks."""

    @abstractmethod
    def bind(self, program: Any, arguments: Sequence[Argument]) -> Launch:
        """A launch with these arguments."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for everything enqueued."""

    def measuring(self) -> Backend:
        """The same device and memory, where `seconds` knows how long a launch took, if the device can say so."""
        return self

    def launch(self, runs: Iterable[Callable[[], Any]]) -> None:
        """Run launches in order. DeviceError when memory is exhausted only now."""
        for run in runs:
            run()

    def seconds(self, ran: Any) -> float | None:
        """What the device took for a run of a launch that is done; None where it does not say."""
        return None


def download(kind: FieldType, value: Argument, backend: Backend) -> Array:
    """The array of a value, which is a buffer or a parameter's scalars; waits."""
    if isinstance(value, tuple):
        return array_of(kind, np.array(value, kind.storage.numpy))
    return array_of(kind, backend.download(kind, value))


def planes_of(kind: FieldType, array: Array) -> Array:
    """An array of `array_shape` as planes (tensor elements × points), contiguous."""
    flat = np.ascontiguousarray(array).reshape(kind.field_shape.points, kind.tensor_points)
    if kind.dtype == "complex64":
        flat = flat.view(np.float32)
    stored = flat.view(np.uint8) if kind.dtype == "bool" else flat
    return np.ascontiguousarray(stored.T)


def array_of(kind: FieldType, planes: Array) -> Array:
    """The inverse of `planes_of`: an array of `array_shape` in the field's dtype."""
    flat = np.ascontiguousarray(planes.reshape(kind.planes, kind.field_shape.points).T)
    if kind.dtype == "complex64":
        flat = flat.view(np.complex64)
    elif kind.dtype == "bool":
        flat = flat.view(np.bool_)
    return flat.reshape(tuple(kind.array_shape))
