"""The kernels of a plan as pyopencl kernels of their own, which a run takes, sets and enqueues without further calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpuop.runtime.base.launch_list import LaunchList, ListedLaunch, Values

if TYPE_CHECKING:
    from gpuop.runtime.opencl.device import OpenCL


class OpenCLLaunches(LaunchList):
    """Launches in the queue of a device.

    Attributes:
        idle: sets of kernels that no run uses: another thread's run sets the arguments of its own.
    """

    def __init__(self, device: OpenCL, launches: Sequence[ListedLaunch]) -> None:
        self.device, self.launches = device, launches
        self.idle: list[list[Any]] = []

    def run(self, values: Values, memory: Values, stream: int = 0) -> dict[int, Any]:
        device, values = self.device, {**values, **memory}
        enqueue = device.cl.enqueue_nd_range_kernel
        try:
            try:
                kernels = self.idle.pop()
            except IndexError:
                kernels = [each.program.code.kernel() for each in self.launches]
            for kernel, each in zip(kernels, self.launches, strict=True):
                source, arguments = each.program.source, each.pick(values)
                if source.direct:
                    kernel.set_args(*arguments)
                else:
                    kernel.set_args(*source.flattened(arguments, _itself)[0])
                if source.fills:
                    for fill in source.filled(arguments):
                        device.fill(*fill)
                enqueue(device.queue, kernel, source.threads, source.group)
        except device.cl.Error as refusal:
            raise device.refused(refusal) from None
        self.idle.append(kernels)
        return values


def _itself(buffer: Any) -> Any:
    return buffer
