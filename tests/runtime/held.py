"""Queues of OpenCL that are held: what is enqueued waits until they are let go, so what happens meanwhile is no matter of luck."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gpuop as gp

OPENCL = [d.name for d in gp.devices() if d.name.startswith("opencl")]


@contextmanager
def held(queue: Any) -> Iterator[Any]:
    """Nothing that this queue gets from now on runs before the call of what is given."""
    gate = queue.cl.UserEvent(queue.context)
    queue.follow(gate)
    open_gates = []

    def let_go() -> None:
        if not open_gates:
            open_gates.append(gate)
            gate.set_status(queue.cl.command_execution_status.COMPLETE)

    try:
        yield let_go
    finally:
        let_go()
