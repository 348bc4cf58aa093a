"""What a device does in a second, as far as predictions of kernels' times need it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DeviceFacts:
    """Measured once for each device (`runtime/device_facts.py`).

    Attributes:
        bandwidth: bytes that a copy reads and writes in a second.
        operations: operations on floats in a second, as `fusion/cost.py` counts them, where threads have several points.
        single_operations: the same where a thread has one, reads of neighbours and their borders among them.
        launch: seconds of a launch that does next to nothing.
    """

    bandwidth: float
    operations: float
    single_operations: float
    launch: float
