"""The kernels of a plan as pyopencl kernels of their own, which a run takes, sets and enqueues without further calls."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import TYPE_CHECKING, Any

from gpuop.codegen.c.dialect import Source
from gpuop.runtime.base.launch_list import LaunchList, ListedLaunch, Values
from gpuop.runtime.opencl.programs import set_arguments

if TYPE_CHECKING:
    from gpuop.runtime.opencl.device import OpenCL


class _Kernel:
    """A kernel with the numbers that it was given last, which a run with the same ones leaves.

    Args:
        source, kernel: the text, and the pyopencl kernel.
    """

    __slots__ = ("by_value", "kernel", "memory", "numbers", "source")

    def __init__(self, source: Source, kernel: Any) -> None:
        self.source, self.kernel = source, kernel
        self.numbers: list[Any] | None = None
        self.by_value = [n for n, param in enumerate(source.arguments) if param.by_value]
        nothing = [(0,) * param.type.planes if param.by_value else None for param in source.arguments]
        starts = source.flattened(nothing, _itself)[1]
        self.memory = [(n, starts[n]) for n, param in enumerate(source.arguments) if not param.by_value]

    def set(self, arguments: Sequence[Any]) -> None:
        numbers = [arguments[n] for n in self.by_value]
        if self.numbers is None or not all(map(is_, numbers, self.numbers)):
            set_arguments(self.kernel, 0, self.source.flattened(arguments, _itself)[0])
            self.numbers = numbers
            return
        set_one = self.kernel.set_arg
        for n, place in self.memory:
            set_one(place, arguments[n])


class OpenCLLaunches(LaunchList):
    """Launches in the queue of a device.

    Attributes:
        idle: sets of kernels that no run uses: another thread's run sets the arguments of its own.
    """

    def __init__(self, device: OpenCL, launches: Sequence[ListedLaunch]) -> None:
        self.device, self.launches = device, launches
        self.idle: list[list[_Kernel]] = []

    def run(self, values: Values, memory: Values, stream: int = 0) -> dict[int, Any]:
        device, values = self.device, {**values, **memory}
        enqueue = device.cl.enqueue_nd_range_kernel
        try:
            try:
                kernels = self.idle.pop()
            except IndexError:
                kernels = [_Kernel(each.program.source, each.program.code.kernel()) for each in self.launches]
            for kernel, each in zip(kernels, self.launches, strict=True):
                source, arguments = kernel.source, each.pick(values)
                if source.direct:
                    kernel.kernel.set_args(*arguments)
                else:
                    kernel.set(arguments)
                if source.fills:
                    for fill in source.filled(arguments):
                        device.fill(*fill)
                enqueue(device.queue, kernel.kernel, source.threads, source.group)
        except device.cl.Error as refusal:
            raise device.refused(refusal) from None
        self.idle.append(kernels)
        return values


def _itself(buffer: Any) -> Any:
    return buffer
