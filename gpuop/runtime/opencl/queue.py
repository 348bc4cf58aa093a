"""Queues of OpenCL: in order, with the times of what runs in them, which cost a tenth of a microsecond a launch; what they use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PRIORITY = 0x1096  # CL_QUEUE_PRIORITY_KHR
PRIORITIES = {"high": 1, "normal": 2, "low": 4}


def new_queue(cl: Any, context: Any, device: Any, priority: str) -> Any:
    """A queue of pyopencl's, of a priority where the driver knows any."""
    timed = cl.command_queue_properties.PROFILING_ENABLE
    if "cl_khr_priority_hints" not in device.extensions:
        return cl.CommandQueue(context, properties=timed)
    properties = [cl.queue_properties.PROPERTIES, timed, PRIORITY, PRIORITIES[priority]]
    return cl.CommandQueue(context, properties=properties)


class KeptOwners:
    """Memory of the host's that queues of a device use until marks are reached.

    Args:
        reached: whether a mark is.
    """

    def __init__(self, reached: Callable[[Any], bool]) -> None:
        self.reached = reached
        self.owners: dict[Any, Any] = {}  # by marks

    def add(self, mark: Any, owner: Any) -> None:
        self.owners[mark] = owner
        self.let_go()

    def let_go(self) -> None:
        """Keep nothing any more for marks that are reached, in whichever order the queues come to them."""
        for mark in filter(self.reached, list(self.owners)):
            self.owners.pop(mark, None)
