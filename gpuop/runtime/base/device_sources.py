"""Leaves whose values are in device memory."""

from __future__ import annotations

from typing import Any, NoReturn

from gpuop.base.errors import DeviceError
from gpuop.base.records import dataclass
from gpuop.ir.layout import Layout
from gpuop.ir.types import FieldType
from gpuop.ir.values import LeafSource
from gpuop.runtime.base.backend import Array, Backend, Buffer
from gpuop.runtime.base.host_arrays import array_of


def marked(backend: Backend) -> Any:
    """Return a mark for other queues after the work enqueued so far; None if there are no others."""
    return backend.record() if backend.queues else None


def taken_from(owner: Backend, memory: Buffer, mark: Any, backend: Backend) -> Buffer:
    """Return a value's memory for another queue, which waits for the mark (from `marked`) and nothing later."""
    return backend.take(memory, owner, owner.main.alone if mark is None else mark)


@dataclass(frozen=True, eq=False)
class Evaluated(LeafSource):
    """Computed values in device memory; other devices get a copy."""

    kind: FieldType
    backend: Backend
    memory: Buffer
    mark: Any = None  # from `marked`

    def buffer(self, device: Backend) -> Buffer | None:
        if device.main is not self.backend.main:
            return None
        return taken_from(self.backend, self.memory, self.mark, device)

    def read(self) -> tuple[Array, None]:
        return array_of(self.kind, self.backend.download(self.kind, self.memory)), None


@dataclass(frozen=True, eq=False)
class Shared(LeafSource):
    """Another library's memory on a device; `layout` None: values lie there as gpuop stores them."""

    backend: Backend
    memory: Buffer
    layout: Layout | None

    @property
    def borrowed(self) -> bool:
        return True

    def buffer(self, device: Backend) -> Buffer:
        if device.main is not self.backend.main:
            raise DeviceError(f"this field is in memory of {self.backend.name}, and {device.name} cannot use it")
        return device.take(self.memory, self.backend, None)

    def read(self) -> NoReturn:
        raise AssertionError("shared memory is used where it is")


@dataclass(frozen=True)
class DeviceValue:
    """A value on its device; it is valid until a parameter that it depends on changes.

    Attributes:
        backend: the queue in which it was enqueued.
        mark: the result of `marked`.
    """

    backend: Backend
    buffer: Buffer
    versions: tuple[tuple[LeafSource, int], ...]
    mark: Any

    def holds_on(self, backend: Backend) -> bool:
        same = self.backend.main is backend.main
        if not self.versions:  # most values: a generator would be more calls
            return same
        return same and all(source.version == version for source, version in self.versions)

    def taken(self, backend: Backend) -> Buffer:
        """Return the buffer, for a queue of the device."""
        return taken_from(self.backend, self.buffer, self.mark, backend)
