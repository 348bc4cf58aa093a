"""Drivers of CPUs that run what is planned for GPUs, as devices of the tests: "opencl:0 as a gpu"."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from unittest import mock

import gpuop as gp
from gpuop.config import config
from gpuop.fusion.kernel_limits import limits_of
from gpuop.runtime import devices
from gpuop.runtime.base.backend import Backend

AS_A_GPU = " as a gpu"


@cache
def as_a_gpu(name: str) -> Backend:
    """A driver's device, planned for as with GPUOP_PLAN_FOR=gpu; kernels of small grids are widened too."""
    opener = next(opener for device, opener in devices.discover() if device.name == name)
    with mock.patch.object(config, "plan_for", "gpu"):
        backend: Backend = opener()
    assert backend.target.device == "gpu"
    backend.target = replace(backend.target, least_threads=1)
    backend.limits = limits_of(backend.target, backend.limits.arguments)
    return backend


@contextmanager
def used(device: str) -> Iterator[Backend]:
    """A device by its name, or by one with " as a gpu" behind it."""
    name, form, _ = device.partition(AS_A_GPU)
    opened = {name: as_a_gpu(name)} if form else {}
    with mock.patch.dict(devices._open, opened), gp.use_device(name) as backend:
        yield backend
