"""Queues that are held: what is enqueued waits until they are let go, so what happens meanwhile is no matter of luck."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.runtime.cuda.driver import returned

DRIVERS = [d.name for d in gp.devices() if d.name != "reference"]
# the drivers whose kernels work in the memory of the host, so that calls copy nothing and wait for no queue
IN_PLACE = [name for name in DRIVERS if name.startswith("opencl") and gp.device(name).target.device == "cpu"]


@contextmanager
def held(queue: Any) -> Iterator[Callable[[], None]]:
    """Nothing that this queue gets from now on runs before the call of what is given.

    What loads code or locks pages may wait for all of CUDA's streams: it comes before. Streams that share a connection to the GPU
    wait for each other too: there are enough with CUDA_DEVICE_MAX_CONNECTIONS=32, and few processes may have so many.
    """
    if queue.name.startswith("cuda") and int(os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS", 8)) < 32:
        pytest.skip("run with CUDA_DEVICE_MAX_CONNECTIONS=32")
    gates = [_cuda_gate(queue) if queue.name.startswith("cuda") else _opencl_gate(queue)]

    def let_go() -> None:
        while gates:
            gates.pop()()

    try:
        yield let_go
    finally:
        let_go()


def _opencl_gate(queue: Any) -> Callable[[], None]:
    gate = queue.cl.UserEvent(queue.context)
    queue.follow(gate)
    return partial(gate.set_status, queue.cl.command_execution_status.COMPLETE)


_words: list[Any] = []  # which CUDA looks at until it sees 1


def _cuda_gate(queue: Any) -> Callable[[], None]:
    word = queue.host_memory(4).view(np.uint32)
    word[0] = 0
    _words.append(word)
    memory, at_least = queue.memory, 0  # CU_STREAM_WAIT_VALUE_GEQ
    with memory.active():
        returned(memory.cu.cuStreamWaitValue32(memory.cu_stream, word.ctypes.data, 1, at_least))
    return partial(word.__setitem__, 0, 1)
