"""What a kernel may use of a device."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpuop.base.config import config
from gpuop.fusion.variant_selection import Choices, First
from gpuop.ir.schedule_override import Pin
from gpuop.ir.target import Target
from gpuop.ir.target_expressions import GENERIC
from gpuop.passes.schedules import PLAIN

GENERAL = First(GENERIC)
REGISTERS = 240  # a GPU's thread has 255 or 256, and compilers need some for themselves
CUDA_ARGUMENTS = 500  # arguments of 8 bytes in the 4 KiB that every driver takes


@dataclass(frozen=True)
class Limits:
    """Limits of one kernel, by default those that every device has.

    Attributes:
        arguments: of 8 bytes; a buffer is one, and so is each number of a by-value parameter. OpenCL guarantees 1,024 bytes.
        local_bytes: of a work-group, for kernels that are put side by side. OpenCL guarantees so much local memory.
        registers: of a thread, of 32 bits; None where it matters little how many values are kept, as caches hold them.
        target: what schedules are chosen for; None where kernels have no stages.
        pin: the schedule that a user chose.
        choices: which variants of operators run, and how kernels do, by what was measured.
    """

    arguments: int = 96
    local_bytes: int = 32768
    registers: int | None = None
    target: Target | None = None
    pin: Pin | None = None
    choices: Choices = GENERAL

    @property
    def has_stages(self) -> bool:
        """Whether kernels may have stages, and iterations take two turns at once."""
        return self.target is not None and PLAIN not in (config.schedule, self.pin and self.pin.method)


def limits_of(target: Target, arguments: int) -> Limits:
    """What one kernel may use of a device; where there are schedules for them, it may have stages."""
    staged = target if target.device == "gpu" or target.vector_length > 1 else None
    registers = REGISTERS if target.device == "gpu" else None
    return Limits(arguments, target.local_memory_bytes, registers, staged, choices=First(target))


LEAST = Limits()


def limits_ahead(target: Target) -> Limits:
    """What one kernel may use of all devices of a target, where none is at hand."""
    if target.widening == "scalar":
        return replace(LEAST, choices=First(target))
    return limits_of(target, CUDA_ARGUMENTS if target.backend == "cuda" else LEAST.arguments)
