"""GPUs without hardware: kernels are planned and lowered for a GPU, and the printable form is interpreted and checked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from gpuop.base.records import dataclass
from gpuop.codegen.generate import SHARED, WARP, target_named
from gpuop.fusion.kernel_limits import CUDA_ARGUMENTS, limits_of
from gpuop.ir.extents import Extents, resized
from gpuop.ir.kernel import Kernel
from gpuop.ir.target import Target
from gpuop.ir.types import FieldType
from gpuop.passes.assertions import assertions, failure, report_asserts
from gpuop.passes.dynamic_extents import opened
from gpuop.passes.pipeline import lower
from gpuop.runtime.base.backend import Argument, Launch
from gpuop.runtime.base.device_limits import GroupLimits
from gpuop.runtime.reference.device import Reference
from gpuop.runtime.reference.gpu_threads import run_as_gpu

CONSTANT = 65536  # bytes of constant memory of NVIDIA GPUs
THREADS, EXTENTS = 1024, (1024, 1024, 64)  # the most threads of their work-groups
OPENCL_WORDS = 4352 // 8 - 1  # arguments of their OpenCL kernels, in words
TARGETS = {
    "reference:sm_90": (target_named("cuda:sm_90"), CUDA_ARGUMENTS),
    "reference:sm_75": (target_named("cuda:sm_75"), CUDA_ARGUMENTS),
    "reference:gpu": (Target("opencl", simd_width=WARP, local_memory_bytes=SHARED, widening="unrolled"), OPENCL_WORDS),
}  # by device name: the target of plans, and the arguments of a kernel


@dataclass(frozen=True, slots=True)
class _Program:
    """A recorded kernel, and its interpreted form."""

    recorded: Kernel
    printable: Kernel


class ReferenceGPU(Reference):
    """Plans as a GPU does, and interprets printable kernels, thread by thread of each work-group."""

    def __init__(self, name: str, checked: bool = False) -> None:
        super().__init__(checked)
        self.name = self.model = name
        self.target, arguments = TARGETS[name]
        self.limits = limits_of(self.target, arguments)
        self.description = described(name)
        memory = {"local": self.target.local_memory_bytes, "constant": CONSTANT}
        self.groups = GroupLimits(name, self.description, THREADS, EXTENTS, memory)
        self.max_work_group_size = THREADS

    def check(self, kernel: Kernel) -> None:
        self.groups.check_kernel(kernel)

    def compile(self, kernel: Kernel) -> _Program:
        self.check(kernel)
        asserted = self.checked and kernel.domain.threads > 0
        ready = report_asserts(kernel) if asserted else kernel
        printable = lower(self.opened(ready), self.target)
        self.check(printable)  # schedules choose work-groups of their own
        return _Program(kernel, printable)

    def opened(self, kernel: Kernel) -> Kernel:
        """Return a kernel of dynamic fields for a GPU, whose text does not depend on the extents."""
        result = opened(kernel, self.target) if kernel.dynamic else None
        if result is None or result.kernel is None:
            return kernel
        grids = dict(result.kernel.named)
        names = dict.fromkeys(name for each in grids.values() for name in each if name)
        values = dict(zip(names, result.values, strict=True))
        return resized(result.kernel, Extents(values, grids), values)

    def bind(self, program: _Program, arguments: Sequence[Argument]) -> Launch:
        recorded, printable = program.recorded, program.printable
        if len(printable.outputs) == len(recorded.outputs):
            return self.bound(printable, arguments)
        kind = FieldType(len(assertions(recorded)), (), "uint32")
        report = self.empty(kind)
        launch = self.bound(printable, [*arguments, report])
        return Launch((*launch.parts, partial(_raise_failed, recorded, report)), launch.adjust)

    def run(self, kernel: Kernel, fields: dict[Any, Any]) -> None:
        run_as_gpu(self.name, kernel, fields)


def _raise_failed(kernel: Kernel, report: np.ndarray[Any, Any]) -> None:
    error = failure(kernel, report.reshape(-1).tolist())
    if error is not None:
        raise error


def described(name: str) -> str:
    """Return the name of a device for people."""
    return f"NumPy interpreter of what is made for {TARGETS[name][0]}, which checks each access to memory"
