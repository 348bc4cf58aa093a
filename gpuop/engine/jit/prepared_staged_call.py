"""Prepared calls with small arrays of the host on devices with memory of their own: one copy there and one back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from gpuop.base.errors import DeviceError
from gpuop.base.records import dataclass
from gpuop.engine.evaluate import argument
from gpuop.engine.jit.prepared_call import HostResult, checked
from gpuop.ir.kernel import Pin
from gpuop.ir.layout import planar, strides_of
from gpuop.ir.types import FieldType
from gpuop.ir.values import Node
from gpuop.passes.schedules.pinning import pinned
from gpuop.runtime.base.backend import Argument, Backend
from gpuop.runtime.base.stages import Stages
from gpuop.runtime.base.stream_arrays import Address
from gpuop.runtime.execute import Prepared
from gpuop.runtime.tuning.chooser import choice_settings


@dataclass(frozen=True, slots=True)
class StagedArray:
    """The place of an array in a stage.

    Attributes:
        position: of the array among the arguments, or among the results.
        begin: of its memory, in bytes.
        shape, dtype, strides: of the memory as a NumPy array like the caller's.
    """

    position: int
    begin: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, position: int, begin: int, kind: FieldType) -> StagedArray:
        """Return the place of planes of a type, which is not complex."""
        dtype = kind.array_dtype
        strides = tuple(step * dtype.itemsize for step in strides_of(kind, planar(kind)))
        return cls(position, begin, tuple(kind.array_shape), dtype, strides)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedStagedCall:
    """Calls of a pipeline of kernels alone with NumPy arrays, which are copied to a stage of the device.

    Attributes:
        plan: a weak reference to the compiled plan.
        arguments, outputs: places of the caller's arrays, and of the results.
        others: other leaves.
        results: the results, as of a `PreparedHostCall`.
        memory: the begin of each value in a stage, in bytes, intermediate ones too.
        several: True if a tuple is returned.
        stages: of the queue.
        size: of a stage.
        sent, end: the ends of the arguments and of the results in it.
        pin, settings: what the plan was made for besides the device.
    """

    backend: Backend
    plan: Callable[[], Prepared | None]
    arguments: Sequence[StagedArray]
    outputs: Sequence[StagedArray]
    others: Sequence[tuple[int, Node]]
    results: Sequence[HostResult]
    memory: Sequence[tuple[int, int]]
    several: bool
    stages: Stages
    size: int
    sent: int
    end: int
    pin: Pin | None = field(default_factory=pinned)
    settings: tuple[Any, ...] = field(default_factory=choice_settings)

    def result(self, inputs: Sequence[Any], out: Any) -> Any:
        """As of a `PreparedHostCall`."""
        prepared, backend = self.plan(), self.backend
        if prepared is None:
            return NotImplemented
        # results may lie over arguments, which are copied first
        outs = [] if out is None else checked(self.results, out, ())
        if outs is None:
            return NotImplemented
        values: dict[int, Argument] = {}
        for number, node in self.others:
            values[number] = argument(node, backend)
        stages = self.stages
        try:
            stage = stages.taken(self.size)
        except (DeviceError, MemoryError):  # what is copied part by part may have room
            return NotImplemented
        host, base = stage.host, stage.address
        for each in self.arguments:
            np.ndarray(each.shape, each.dtype, host, each.begin, each.strides)[...] = inputs[each.position]
        for value, begin in self.memory:
            values[value] = Address(base + begin)
        try:
            stages.run(stage, prepared.lists[backend], values, self.sent, self.end)
        except BaseException:
            backend.keep((stage, values))  # enqueued work may still use the memory
            raise
        for each in self.outputs:
            values_there = np.ndarray(each.shape, each.dtype, host, each.begin, each.strides)
            if out is None:
                outs += (values_there.copy(),)
            else:
                outs[each.position][...] = values_there
        stages.idle[self.size].append(stage)
        return tuple(outs) if self.several else outs[0]
