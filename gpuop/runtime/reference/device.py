"""The reference device: a NumPy interpreter of recorded kernels, always available, which defines the results of all devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from gpuop.base.errors import DeviceError
from gpuop.fusion.kernel_limits import LEAST
from gpuop.fusion.variant_selection import First
from gpuop.ir.analysis.stages import stages
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import FieldParam
from gpuop.ir.target import Target
from gpuop.ir.types import FieldType
from gpuop.runtime.base.backend import Argument, Array, Backend, Buffer, Launch, Memory
from gpuop.runtime.base.copy_trace import CopySpan
from gpuop.runtime.base.current_queue import clone_queue
from gpuop.runtime.base.host_arrays import array_in
from gpuop.runtime.base.trace import note_launch
from gpuop.runtime.reference.checked import run_checked
from gpuop.runtime.reference.interpreter import run
from gpuop.runtime.reference.unused_loads import without_unused


class Reference(Backend):
    """The reference device. Work is done when it is enqueued."""

    name = model = "reference"
    description = "NumPy interpreter of the recorded program"
    target = Target("reference", device="cpu", simd_width=1, has_arrays=True)
    limits = replace(LEAST, choices=First(target))
    interprets = True
    only_enqueues = False  # it runs in Python, and may be stopped anywhere
    lowered = False  # whether it interprets lowered kernels

    def __init__(self, checked: bool = False) -> None:
        self.checked = checked

    def empty(self, kind: FieldType) -> Buffer:
        try:
            return np.empty((kind.planes, kind.field_shape.points), kind.storage.numpy)
        except MemoryError:
            raise DeviceError(f"reference: no memory for a field of {kind} ({kind.nbytes} bytes)") from None

    def upload(self, kind: FieldType, planes: Array) -> Buffer:
        with CopySpan("upload", self):
            return np.array(planes)

    def write(self, buffer: Buffer, planes: Array) -> None:
        with CopySpan("upload", self):
            buffer[...] = planes

    def download(self, kind: FieldType, buffer: Buffer) -> Array:
        with CopySpan("download", self):
            return np.array(buffer)

    def copy(self, kind: FieldType, source: Buffer, target: Buffer) -> None:
        with CopySpan("copy", self):
            target[...] = source

    def compile(self, kernel: Kernel) -> Any:
        return without_unused(kernel) if self.checked else kernel

    def bind(self, program: Any, arguments: Sequence[Argument]) -> Launch:
        return self.bound(program, arguments)

    def bound(self, kernel: Kernel, arguments: Sequence[Argument]) -> Launch:
        fields = {}
        for param, argument in zip((*kernel.inputs, *kernel.written), arguments, strict=True):
            scalars = np.array(argument, param.type.storage.numpy)[:, None] if param.by_value else argument
            fields[param] = scalars
        fields |= {param: self.empty(param.type) for param in kernel.intermediates}
        steps = stages(kernel)

        def launch() -> None:
            for output in kernel.outputs:
                if output.fill is not None:
                    fields[output.param][...] = output.fill
            note_launch(kernel.name, kernel.domain)
            for step in steps:
                self.run(step, fields)

        def adjust(position: int, scalars: Argument) -> None:
            fields[kernel.inputs[position]][...] = np.array(scalars)[:, None]

        return Launch((launch,), adjust)

    def run(self, kernel: Kernel, fields: dict[FieldParam, Array]) -> None:
        """Run a stage of a kernel, over planes of its fields."""
        if self.checked:
            run_checked(kernel, fields)
        else:
            run(kernel, fields, self.lowered)

    @contextmanager
    def arrays(self, inputs: Sequence[Memory], outputs: Sequence[Memory]) -> Iterator[list[Any]]:
        read = [array_in(kind, buffer, False) for kind, buffer in inputs]
        yield read + [array_in(kind, buffer, True) for kind, buffer in outputs]

    def synchronize(self) -> None:
        pass

    def record(self) -> float:
        return perf_counter()

    def reached(self, mark: float) -> bool:
        return True

    def wait(self, mark: float) -> None:
        pass

    def between(self, first: float, last: float) -> float:
        return last - first

    def follow(self, mark: float) -> None:
        pass

    def keep(self, owner: object) -> None:
        pass

    def another(self, priority: str) -> Reference:
        return clone_queue(self)
