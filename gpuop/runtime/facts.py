"""What is known of an OpenCL device when code is generated for it."""

from __future__ import annotations

from typing import Any

from gpuop.ir.target import Target

GPU = 1 << 2  # CL_DEVICE_TYPE_GPU
WARP = 32
# Measured against one point per thread (4096², two cores). Intel's compiler makes vectors of neighbouring threads by itself, but
# written ones of plain arithmetic are 1.1 to 1.5 times as fast, and functions no slower. PoCL's functions of vectors are 14 to
# 17 times as fast as those of scalars, while arithmetic gains nothing, and vectors of doubles give wrong remainders.
CPU_LANES = {"Intel(R) OpenCL": "vector", "Portable Computing Language": "functions"}


def target_of(platform: str, device: Any) -> Target:
    """The target of pyopencl's device, of a platform of this name."""
    gpu = bool(device.type & GPU)
    return Target(
        "opencl",
        device="gpu" if gpu else "cpu",
        simd_width=WARP if gpu else max(device.native_vector_width_float, 1),
        local_memory_bytes=device.local_mem_size,
        has_fp16="cl_khr_fp16" in device.extensions.split(),
        has_fp64=bool(device.double_fp_config),
        lanes="unrolled" if gpu else CPU_LANES.get(platform, "scalar"),
    )
