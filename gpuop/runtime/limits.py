"""What a device has for a work-group, and a refusal at the user's line where a kernel asks for more."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass

from gpuop.errors import DeviceError, Loc, located
from gpuop.ir.kernel import Kernel


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """Of a device.

    Attributes:
        threads: of a work-group.
        sizes: of a work-group along (columns, rows, layers).
        local, constant: bytes of memory that a kernel declares.
    """

    threads: int
    sizes: tuple[int, ...]
    local: int
    constant: int

    def check(self, kernel: Kernel, device: str) -> None:
        """DeviceError at the user's line for work-groups and memory that the device does not have."""
        self.check_group(kernel.name, kernel.work_group, device, kernel.loc)
        for space, limit in (("local", self.local), ("constant", self.constant)):
            total = 0
            for declared in kernel.shared(space):
                total += declared.array.nbytes
                if total > limit:
                    message = f"{device} has {limit} bytes of {space} memory, and with `{declared.array.hint}` {total} are used"
                    raise DeviceError(located(message, declared.loc))

    def check_group(self, name: str, group: Sequence[int], device: str, loc: Loc | None = None) -> None:
        """DeviceError for a work-group of (layers, rows, columns) that the device does not have."""
        fits = all(n <= most for n, most in zip(reversed(group), self.sizes, strict=False))
        if math.prod(group) > self.threads or not fits:
            shape = "×".join(map(str, group))
            message = f"{device} runs work-groups of up to {self.threads} threads, and `{name}` asks for {shape}"
            raise DeviceError(located(message, loc))


def check_types(name: str, missing: Set[str], device: str) -> None:
    """DeviceError for types that a device lacks."""
    if missing:
        raise DeviceError(
            f"operator `{name}` computes with {', '.join(sorted(missing))}, which {device} lacks; "
            "use float32 fields, or another device"
        )
