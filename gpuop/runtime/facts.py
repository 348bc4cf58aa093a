"""What is known of an OpenCL device when code is generated for it."""

from __future__ import annotations

from typing import Any

from gpuop.ir.target import Target

GPU = 1 << 2  # CL_DEVICE_TYPE_GPU
WARP = 32


def target_of(device: Any) -> Target:
    """The target of pyopencl's device."""
    gpu = bool(device.type & GPU)
    return Target(
        "opencl",
        device="gpu" if gpu else "cpu",
        simd_width=WARP if gpu else max(device.preferred_vector_width_float, 1),
        local_memory_bytes=device.local_mem_size,
        has_fp16="cl_khr_fp16" in device.extensions.split(),
        has_fp64=bool(device.double_fp_config),
        lanes="unrolled" if gpu else "scalar",
    )
