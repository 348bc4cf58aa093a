"""OpenCL devices, and their properties."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpuop.base.cache.atomic_files import private_folder
from gpuop.base.config import config
from gpuop.codegen.c.dialect import ATOMICS_OF_64_BITS
from gpuop.ir.target import Target
from gpuop.runtime.base.device_limits import GroupLimits
from gpuop.runtime.opencl import icd

INT64_ATOMICS = {"cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics"}
GPU = 1 << 2  # CL_DEVICE_TYPE_GPU
WARP = 32
GPUS_LOCAL_MEMORY = 49152  # bytes of a work-group, as NVIDIA's OpenCL has
# Measured against one point per thread (4096², two cores). The Intel compiler makes vectors of neighbouring threads itself, but
# explicit vectors of plain arithmetic are 1.1 to 1.5 times as fast, and functions no slower. PoCL's vector functions are 14 to
# 17 times as fast as scalar ones, while arithmetic of own points gains nothing, and vectors of doubles give wrong remainders.
# Stencils gain 3 to 10 times on both.
# Drivers that compile at the first launch, for its work-groups, and cache that on disk themselves; their
# binaries would be compiled for groups of any size as well.
LATE = {"Portable Computing Language"}
CPU_LANES = {"Intel(R) OpenCL": "vector", "Portable Computing Language": "functions"}


def device_list() -> list[tuple[str, Any]]:
    """Return (platform name, pyopencl device) for every device of every driver. ImportError without pyopencl."""
    icd.prepare()
    if not _can_cache():
        os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
        if "POCL_CACHE_DIR" not in os.environ:  # without a folder to write to, PoCL offers no devices
            os.environ["POCL_CACHE_DIR"] = folder = tempfile.mkdtemp(prefix="gpuop-pocl-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
    import pyopencl as cl

    try:
        platforms = cl.get_platforms()
    except cl.Error:  # no platform at all
        return []
    devices = []
    for platform in platforms:
        try:
            devices += [(platform.name.strip("\0 "), device) for device in platform.get_devices()]
        except cl.Error:
            continue
    return devices


def _can_cache() -> bool:
    """Return whether pyopencl has a folder for its own cache; it creates no kernel if that cannot be written."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "pytools")
        private_folder(folder)
    except (OSError, RuntimeError):
        return False
    return os.access(folder, os.W_OK)


def target_of(platform: str, device: Any) -> Target:
    """Return the target of a pyopencl device, of a platform of this name."""
    gpu = bool(device.type & GPU)
    return Target(
        "opencl",
        device="gpu" if gpu else "cpu",
        simd_width=WARP if gpu else max(device.native_vector_width_float, 1),
        local_memory_bytes=device.local_mem_size,
        has_fp16="cl_khr_fp16" in device.extensions.split(),
        has_fp64=_has_doubles(device),
        has_arrays=not gpu,
        widening="unrolled" if gpu else CPU_LANES.get(platform, "scalar"),
        makes_lanes=not gpu,
    )


def _has_doubles(device: Any) -> bool:
    return bool(device.double_fp_config) and config.hide != "fp64"


def planned_for(own: Target) -> Target:
    """Return the target to plan for: the device's own, or with GPUOP_PLAN_FOR=gpu a GPU whose kernels a CPU can run.

    GPU kernels compute transforms where libraries would on a CPU, and access 16 bytes at multiples of 16, as the driver's
    own memory allows and an array of the user may not.
    """
    if config.plan_for != "gpu" or own.device == "gpu":
        return own
    local = min(own.local_memory_bytes, GPUS_LOCAL_MEMORY)
    return replace(own, device="gpu", simd_width=WARP, local_memory_bytes=local, has_arrays=False, widening="unrolled")


def groups_of(name: str, description: str, device: Any) -> GroupLimits:
    return GroupLimits(
        name,
        description,
        device.max_work_group_size,
        tuple(device.max_work_item_sizes),
        {"local": device.local_mem_size, "constant": device.max_constant_buffer_size},
    )


def features_of(device: Any) -> frozenset[str]:
    """Return the features of `Source.needs` that a device supports."""
    wide = {*device.extensions.split()} >= INT64_ATOMICS
    return frozenset({"double"} if _has_doubles(device) else ()) | ({ATOMICS_OF_64_BITS} if wide else set())
