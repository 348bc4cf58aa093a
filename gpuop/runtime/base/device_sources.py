"""Leaves whose values are on a device already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from gpuop.errors import DeviceError
from gpuop.ir.layout import Layout
from gpuop.ir.types import FieldType
from gpuop.ir.values import LeafSource
from gpuop.runtime.base.backend import Array, Backend, Buffer
from gpuop.runtime.base.host_arrays import array_of


@dataclass(frozen=True, eq=False)
class Evaluated(LeafSource):
    """Values that were computed, in a device's own memory; other devices get a copy."""

    kind: FieldType
    backend: Backend
    memory: Buffer
    mark: Any = None  # as `Backend.take` takes it

    def buffer(self, device: Backend) -> Buffer | None:
        return device.take(self.memory, self.backend, self.mark) if device.main is self.backend.main else None

    def read(self) -> tuple[Array, None]:
        return array_of(self.kind, self.backend.download(self.kind, self.memory)), None


@dataclass(frozen=True, eq=False)
class Shared(LeafSource):
    """Memory of another library's on a device; `layout` None: values lie there as in gpuop's own."""

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
        raise AssertionError("what is shared is used where it is")
