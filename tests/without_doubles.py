"""OpenCL devices as they are without double, as with GPUOP_HIDE=fp64."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from unittest import mock

from gpuop.base.config import config
from gpuop.runtime import devices
from gpuop.runtime.base.backend import Backend
from gpuop.runtime.opencl.device import OpenCL
from tests.as_gpus import used

NAMES = [device.name for device, opener in devices.discover() if getattr(opener, "func", None) is OpenCL]


@cache
def _opened(name: str, plan_for: str) -> Backend:
    opener = next(opener for device, opener in devices.discover() if device.name == name)
    with mock.patch.object(config, "hide", "fp64"), mock.patch.object(config, "plan_for", plan_for):
        backend = OpenCL(f"{name} without double", *opener.args[1:])
    assert not backend.target.has_fp64 and "double" not in backend.features
    return backend


@contextmanager
def without_doubles(name: str, plan_for: str = "device") -> Iterator[Backend]:
    """Use a device of `NAMES`, which refuses kernels with double, until the end of the `with`; it may plan as a GPU."""
    with used(f"{name} without double", lambda **options: _opened(name, plan_for)) as backend:
        yield backend
