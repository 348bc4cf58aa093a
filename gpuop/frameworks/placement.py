"""The device that takes the arrays of a framework."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from gpuop.engine.interop import device_in_use
from gpuop.runtime.devices import devices, use_device


def on_host() -> AbstractContextManager[Any]:
    """The context in which kernels run on arrays of the CPU: on the device in use, unless that is one of CUDA."""
    return use_device(_host()) if device_in_use().startswith("cuda") else nullcontext()


def on_cuda(ordinal: int) -> AbstractContextManager[Any]:
    """The context in which kernels run on a device of CUDA."""
    name = f"cuda:{ordinal}"
    return nullcontext() if device_in_use() == name else use_device(name)


@functools.cache
def has_cuda() -> bool:
    """Return whether kernels can run on a device of CUDA."""
    return any(device.name.startswith("cuda") and device.problem is None for device in devices())


@functools.cache
def _host() -> str:
    names = [device.name for device in devices() if "opencl:cpu" in device.aliases]
    return names[0] if names else "reference"
