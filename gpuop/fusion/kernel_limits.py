"""Limits of a kernel on a device."""

from __future__ import annotations

from dataclasses import replace

from gpuop.base.config import config
from gpuop.base.records import dataclass
from gpuop.fusion.variant_selection import Choices, First
from gpuop.ir.kernel import Pin
from gpuop.ir.target import Target
from gpuop.ir.target_expressions import GENERIC
from gpuop.passes.schedules.methods import PLAIN

GENERAL = First(GENERIC)
REGISTERS = 240  # a thread of a GPU has 255 or 256, and compilers need some for themselves
CUDA_ARGUMENTS = 500  # arguments of 8 bytes in the 4 KiB that every driver takes


@dataclass(frozen=True)
class Limits:
    """Limits of one kernel, by default those that every device has.

    Attributes:
        arguments: the number of arguments of 8 bytes; a buffer is one, and so is each number of a by-value parameter. OpenCL
            guarantees 1,024 bytes.
        local_bytes: local memory of a work-group, for kernels side by side. OpenCL guarantees so much.
        registers: registers of a thread, of 32 bits; None where caches hold the values, so that their number matters little.
        target: the target of schedules; None if kernels have no stages.
        pin: the schedule that a user chose.
        choices: the variants of operators and schedules of kernels, by measurements.
    """

    arguments: int = 96
    local_bytes: int = 32768
    registers: int | None = None
    target: Target | None = None
    pin: Pin | None = None
    choices: Choices = GENERAL

    @property
    def has_stages(self) -> bool:
        """True if kernels may have stages, and launches two iterations at once."""
        return self.target is not None and PLAIN not in (config.schedule, self.pin and self.pin.method)


def limits_of(target: Target, arguments: int) -> Limits:
    """The limits of a kernel on a device; it may have stages if there are schedules for them."""
    staged = target if target.device == "gpu" or target.vector_length > 1 else None
    registers = REGISTERS if target.device == "gpu" else None
    return Limits(arguments, target.local_memory_bytes, registers, staged, choices=First(target))


LEAST = Limits()


def limits_ahead(target: Target) -> Limits:
    """The limits of a kernel on all devices of a target, without a device."""
    if target.widening == "scalar":
        return replace(LEAST, choices=First(target))
    return limits_of(target, CUDA_ARGUMENTS if target.backend == "cuda" else LEAST.arguments)
