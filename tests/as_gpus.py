"""Plans of GPUs, however small the grid, as devices of the tests.

"opencl:0 as a gpu" and "reference:sm_90 as a gpu" run text of OpenCL and interpret; "cuda:sm_90 on the host" runs text of CUDA.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import Any
from unittest import mock

import gpuop as gp
from gpuop.base.config import config
from gpuop.fusion.kernel_limits import limits_of
from gpuop.runtime import devices
from gpuop.runtime.base.backend import Backend
from gpuop.runtime.devices import Device, reference_gpus
from gpuop.runtime.opencl.device import OpenCL
from tests.runtime.cuda_on_host.host_device import ON_HOST, CudaOnHost

AS_A_GPU = " as a gpu"


@cache
def as_a_gpu(device: str, checked: bool = False) -> Backend:
    """A driver's device, planned for as with GPUOP_PLAN_FOR=gpu, or an interpreter; kernels of small grids are widened too."""
    backends = (*devices.discover(), *reference_gpus())
    opener = next(opener for own, opener in backends if own.name == device.removesuffix(AS_A_GPU))
    with mock.patch.object(config, "plan_for", "gpu"):
        driver = opener.func is OpenCL
        backend = OpenCL(device, *opener.args[1:], checked=checked) if driver else opener(checked=checked)
    backend.name = device
    assert backend.target.device == "gpu"
    backend.target = replace(backend.target, least_threads=1)
    backend.limits = limits_of(backend.target, backend.limits.arguments)
    return backend


@contextmanager
def used(device: str, opener: Any = None) -> Iterator[Backend]:
    """A device by its name, or one of the tests, which there is until the end of the `with`: as a gpu, or CUDA's on the host.

    Args:
        opener: of another device of the tests.
    """
    result = devices.discover()
    if device.endswith(AS_A_GPU) or device == ON_HOST:
        opener = partial(CudaOnHost, device) if device == ON_HOST else partial(as_a_gpu, device)
    if opener is not None:
        result = [*result, (Device(device, f"{device} of the tests"), opener)]
    opened = mock.patch.dict(devices._open)  # what is opened inside by that name goes with it
    with mock.patch.object(devices, "_discovered", result), opened, gp.use_device(device) as backend:
        yield backend
