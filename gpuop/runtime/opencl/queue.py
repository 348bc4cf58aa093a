"""OpenCL queues: in order, with timestamps, which cost a tenth of a microsecond a launch; and the host memory that they use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PRIORITY = 0x1096  # CL_QUEUE_PRIORITY_KHR
PRIORITIES = {"high": 1, "normal": 2, "low": 4}


def new_queue(cl: Any, context: Any, device: Any, priority: str) -> Any:
    """Return a pyopencl queue, with a priority if the driver has priorities."""
    timed = cl.command_queue_properties.PROFILING_ENABLE
    if "cl_khr_priority_hints" not in device.extensions:
        return cl.CommandQueue(context, properties=timed)
    properties = [cl.queue_properties.PROPERTIES, timed, PRIORITY, PRIORITIES[priority]]
    return cl.CommandQueue(context, properties=properties)


class OwnersByMark:
    """Host memory that queues of a device use until marks are reached.

    Args:
        reached: returns whether a mark is reached.
    """

    def __init__(self, reached: Callable[[Any], bool]) -> None:
        self.reached = reached
        self.owners: dict[Any, Any] = {}  # by mark

    def add(self, mark: Any, owner: Any) -> None:
        self.owners[mark] = owner
        self.let_go()

    def let_go(self) -> None:
        """Release the memory of reached marks, in whichever order the queues reach them."""
        for mark in filter(self.reached, list(self.owners)):
            self.owners.pop(mark, None)
