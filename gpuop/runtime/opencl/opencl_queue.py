"""Queues of OpenCL: in order, with the times of what runs in them, which cost a tenth of a microsecond a launch."""

from __future__ import annotations

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
