"""Limits of a device: work-groups, memory, and unsupported types."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set

from gpuop.base.errors import DeviceError, Loc, located
from gpuop.base.records import dataclass
from gpuop.ir.kernel import Kernel


@dataclass(frozen=True)
class GroupLimits:
    """The limits of a device's work-groups.

    Attributes:
        name: the device's name in messages; `description` says more.
        threads: the most threads of a work-group; `extents` along (columns, rows, layers × elements).
        memory: the most bytes of "local" and "constant" memory for a kernel.
    """

    name: str
    description: str
    threads: int
    extents: tuple[int, ...]
    memory: dict[str, int]

    def check_kernel(self, kernel: Kernel) -> None:
        """Raise a DeviceError at the user's line if the kernel's work-groups or memory exceed the limits."""
        self.check_group(kernel.name, kernel.work_group, kernel.loc)
        for space, limit in self.memory.items():
            total = 0
            for declared in kernel.shared(space):
                total += declared.array.nbytes
                if total > limit:
                    message = f"{self.name} has {limit} bytes of {space} memory, and with `{declared.array.hint}` {total} are used"
                    raise DeviceError(located(message, declared.loc))

    def check_group(self, name: str, group: Sequence[int], loc: Loc | None = None) -> None:
        fits = all(n <= most for n, most in zip(reversed(group), self.extents, strict=False))
        if math.prod(group) > self.threads or not fits:
            shape = "×".join(map(str, group))
            message = f"{self.name} runs work-groups of up to {self.threads} threads, and `{name}` asks for {shape}"
            raise DeviceError(located(message, loc))

    def check_types(self, name: str, missing: Set[str]) -> None:
        if missing:
            raise DeviceError(
                f"operator `{name}` computes with {', '.join(sorted(missing))}, which {self.name} ({self.description}) "
                "lacks; use types of 32 bits, or another device"
            )
