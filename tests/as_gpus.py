"""What is planned for GPUs however small the grid, as devices of the tests: "opencl:0 as a gpu", "reference:sm_90 as a gpu"."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from unittest import mock

import gpuop as gp
from gpuop.config import config
from gpuop.fusion.kernel_limits import limits_of
from gpuop.runtime import devices
from gpuop.runtime.base.backend import Backend
from gpuop.runtime.discovery import Device, reference_gpus
from gpuop.runtime.opencl.opencl_device import OpenCL

AS_A_GPU = " as a gpu"


@cache
def as_a_gpu(device: str, checked: bool = False) -> Backend:
    """A driver's device, planned for as with GPUOP_PLAN_FOR=gpu, or an interpreter; kernels of small grids are widened too."""
    known = (*devices.discover(), *reference_gpus())
    opener = next(opener for own, opener in known if own.name == device.removesuffix(AS_A_GPU))
    with mock.patch.object(config, "plan_for", "gpu"):
        driver = opener.func is OpenCL
        backend = OpenCL(device, *opener.args[1:], checked=checked) if driver else opener(checked=checked)
    backend.name = device
    assert backend.target.device == "gpu"
    backend.target = replace(backend.target, least_threads=1)
    backend.limits = limits_of(backend.target, backend.limits.arguments)
    return backend


@contextmanager
def used(device: str) -> Iterator[Backend]:
    """A device by its name, or by one with " as a gpu" behind it, which there is until the end of the `with`."""
    found, form = devices.discover(), partial(as_a_gpu, device)
    if device.endswith(AS_A_GPU):
        found = [*found, (Device(device, f"{device} of the tests"), form)]
    opened = mock.patch.dict(devices._open)  # what is opened inside by that name goes with it
    with mock.patch.object(devices, "_found", found), opened, gp.use_device(device) as backend:
        yield backend
