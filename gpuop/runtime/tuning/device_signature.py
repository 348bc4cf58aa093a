"""Devices in the store of tuned choices, and the distances between them."""

from __future__ import annotations

from dataclasses import dataclass

from gpuop.ir.target import Target
from gpuop.runtime.base.backend import Backend


@dataclass(frozen=True)
class DeviceSignature:
    """A device, or the devices of a target.

    Attributes:
        kind: "gpu", "cpu" or "reference".
        device, driver: empty for a target.
    """

    backend: str
    architecture: int
    kind: str
    device: str = ""
    driver: str = ""

    def distance(self, other: DeviceSignature) -> tuple[int, int] | None:
        """Return the distance of a device with choices: (0, 0) for this one; None if its choices do not apply to this one."""
        if self.kind != other.kind:
            return None
        same = (self.backend == other.backend, self.device == other.device, self.driver == other.driver)
        rank = 0 if all(same) else 1 if all(same[:2]) else 2 if same[1] else 3 if same[0] else 4
        return rank, abs(self.architecture - other.architecture)

    def __str__(self) -> str:
        name = f"{self.backend}:sm_{self.architecture}" if self.architecture else self.backend
        return f"{name} {self.device}".rstrip()


def signature_of(backend: Backend) -> DeviceSignature:
    ahead = target_signature(backend.target)
    return DeviceSignature(ahead.backend, ahead.architecture, ahead.kind, backend.model, backend.identity)


def target_signature(target: Target) -> DeviceSignature:
    """Return the signature of the devices of a target."""
    kind = "reference" if target.backend == "reference" else target.device
    return DeviceSignature(target.backend, target.architecture, kind)
