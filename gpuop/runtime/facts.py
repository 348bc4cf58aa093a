"""What is known of an OpenCL device when code is generated for it."""

from __future__ import annotations

from typing import Any

from gpuop.ir.target import Target

GPU = 1 << 2  # CL_DEVICE_TYPE_GPU
WARP = 32
POCL = "Portable Computing Language"


def target_of(platform: str, device: Any) -> Target:
    """The target of pyopencl's device, of a platform of this name."""
    gpu = bool(device.type & GPU)
    # PoCL's functions of scalars are 17 times slower than those of vectors (sin · exp + pow, PoCL 3.1), while plain arithmetic
    # is as fast one by one; and vectors of doubles give wrong remainders. Intel's compiler makes vectors of neighbouring
    # threads by itself, as fast as written ones.
    on_cpu = "functions" if platform == POCL else "scalar"
    return Target(
        "opencl",
        device="gpu" if gpu else "cpu",
        simd_width=WARP if gpu else max(device.native_vector_width_float, 1),
        local_memory_bytes=device.local_mem_size,
        has_fp16="cl_khr_fp16" in device.extensions.split(),
        has_fp64=bool(device.double_fp_config),
        lanes="unrolled" if gpu else on_cpu,
    )
