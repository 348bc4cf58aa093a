"""Device model: rates of a device, as far as time predictions need them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Copy = tuple[int, float]  # bytes that are read and written, and the seconds of it


@dataclass(frozen=True)
class DeviceFacts:
    """Rates of a device, measured once (`runtime/profile/device_facts.py`).

    Attributes:
        launch: seconds of a nearly empty launch.
        copies: copies of a few sizes, smallest first; sizes that fit in caches are faster.
        seconds: seconds per unit of each kind of work in `fusion/report/workload.py`, at the throughput of the whole device: an
            operation on floats, a read of a neighbour, "exp float32".
    """

    launch: float
    copies: tuple[Copy, ...]
    seconds: Callable[[str], float]

    def moving(self, nbytes: float) -> float:
        """Seconds to read or write so many bytes, at a rate interpolated between the copies nearest in size."""
        (size, taken), *larger = self.copies
        rate = size / taken
        for more, seconds in larger:
            if nbytes > size:
                share = min((nbytes - size) / (more - size), 1.0)
                rate += share * (more / seconds - rate)
            size = more
        return nbytes / rate
