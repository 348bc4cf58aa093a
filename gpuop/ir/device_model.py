"""Device model: rates of a device, as far as time predictions need them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Copy = tuple[int, float]  # bytes that are read and written, and the seconds that this takes


@dataclass(frozen=True)
class DeviceFacts:
    """Measured once for each device (`runtime/profile/device_facts.py`).

    Attributes:
        launch: seconds of a launch that does next to nothing.
        copies: of a few sizes, smallest first: what fits in caches moves faster.
        seconds: of one thing of a kind of `fusion/report/workload.py`, as often as all threads together do it: an operation on
            floats, a read of a neighbour, "exp float32".
    """

    launch: float
    copies: tuple[Copy, ...]
    seconds: Callable[[str], float]

    def moving(self, nbytes: float) -> float:
        """Seconds in which so many bytes are read or written, at a rate between those of the copies nearest in size."""
        (size, taken), *larger = self.copies
        rate = size / taken
        for more, seconds in larger:
            if nbytes > size:
                share = min((nbytes - size) / (more - size), 1.0)
                rate += share * (more / seconds - rate)
            size = more
        return nbytes / rate
