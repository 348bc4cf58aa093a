"""Prepared calls: what the types of arrays decide is decided once; a later call checks, takes memory, launches and returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from itertools import repeat
from typing import Any

import numpy as np

from gpuop.base.records import dataclass
from gpuop.dsl.fields.from_arrays import readable
from gpuop.engine.evaluate import argument
from gpuop.engine.interop import array_like, lend, share
from gpuop.fusion.windows.buffer_pool import reused
from gpuop.ir.bfloat16 import as_array, fill
from gpuop.ir.kernel import Pin
from gpuop.ir.layout import Layout
from gpuop.ir.types import FieldType
from gpuop.ir.values import Node
from gpuop.passes.coarsening_factor import ACCESS
from gpuop.passes.schedules.pinning import pinned
from gpuop.runtime.base.backend import Argument, Array, Backend, Buffer, download
from gpuop.runtime.execute import Prepared
from gpuop.runtime.tuning.chooser import choice_settings

Convert = Callable[[Array], Any]
Reach = tuple[int, int]
DeviceArgument = tuple[int, int, FieldType, Layout | None, Reach]  # of a `PreparedDeviceCall`
LISTS = (tuple, list)


@dataclass(frozen=True, slots=True)
class HostResult:
    """A result of prepared calls, in an array of the host.

    Attributes:
        value: its number in the program.
        kind: its type, as users see it.
        direct: True if kernels write into the array.
        convert: returns the array as kernels see it; None: they see it as it is.
    """

    value: int
    kind: FieldType
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    direct: bool
    convert: Convert | None

    def fits(self, array: Any, others: Sequence[Array]) -> bool:
        """Return whether an array of the caller can be the result: of its type, aligned, and apart from others."""
        if type(array) is not np.ndarray or array.shape != self.shape or array.dtype != self.dtype:
            return False
        if not array.flags.carray or (self.direct and array.ctypes.data % ACCESS):
            return False
        return not any(map(np.may_share_memory, repeat(array), others))


@dataclass(frozen=True, slots=True, eq=False)
class PreparedHostCall:
    """Calls of a pipeline with contiguous and aligned arrays of the host, in one queue.

    Attributes:
        plan: a weak reference to the compiled plan.
        arguments: leaves of the caller's arrays: number, position of the array, and its conversion; None: it is used in place.
        others: other leaves.
        several: True if a tuple is returned.
        foreign: True if the arrays are of a library that shares memory with NumPy.
        listed: True if the memory of all values is there before the launches, which are all of kernels.
        pin, settings: what the plan was made for besides the device.
    """

    backend: Backend
    plan: Callable[[], Prepared | None]
    arguments: Sequence[tuple[int, int, Convert | None]]
    others: Sequence[tuple[int, Node]]
    results: Sequence[HostResult]
    several: bool
    foreign: bool
    listed: bool
    pin: Pin | None = field(default_factory=pinned)
    settings: tuple[Any, ...] = field(default_factory=choice_settings)

    def result(self, inputs: Sequence[Any], out: Any) -> Any:
        """Run a call; NotImplemented, and nothing has run, if these arrays lie otherwise, or the plan is gone."""
        prepared, backend = self.plan(), self.backend
        arrays = _host_arrays(inputs) if self.foreign else inputs
        if prepared is None or arrays is None:
            return NotImplemented
        outs = self._new() if out is None else checked(self.results, out, arrays)
        values = self._arguments(arrays) if outs else None
        if not outs or values is None:
            return NotImplemented
        memory: dict[int, Buffer] = {}
        for n, result in enumerate(self.results):
            if result.direct:
                memory[result.value] = backend.wrap(result.convert(outs[n]) if result.convert else outs[n])
        spare = prepared.take_spare() if prepared.between else None
        memory_in_use = arrays, outs, memory, spare
        try:
            there = memory | spare if spare else memory
            values = (prepared.lists[backend] if self.listed else prepared.on(backend)).run(values, there)
            backend.settle(memory.values())
            for n, result in enumerate(self.results):
                if not result.direct:
                    array = download(result.kind, values[result.value], backend)
                    outs[n] = as_array(array, result.dtype) if out is None else fill(outs[n], array)
        except BaseException:
            backend.keep(memory_in_use)  # enqueued work may still use the arrays
            raise
        if spare:
            prepared.spare.append(spare)
        if self.foreign and out is None:
            outs = [array_like(inputs[0], array) for array in outs]
        return tuple(outs) if self.several else outs[0]

    def _arguments(self, arrays: Sequence[Array]) -> dict[int, Argument] | None:
        values: dict[int, Argument] = {}
        for number, position, convert in self.arguments:
            array = arrays[position]
            flags = array.flags
            if not (flags.c_contiguous and flags.aligned):
                return None
            values[number] = self.backend.wrap(array) if convert is None else convert(array)
        for number, node in self.others:
            values[number] = argument(node, self.backend)
        return values

    def _new(self) -> list[Any] | None:
        """Return new arrays for the results that kernels write directly; None if one is not aligned."""
        arrays: list[Any] = []
        for result in self.results:
            array = reused(result.shape, result.dtype) if result.direct else None
            if array is not None and array.__array_interface__["data"][0] % ACCESS:
                return None
            arrays += (array,)
        return arrays


@dataclass(frozen=True, slots=True)
class DeviceResult:
    """A result of prepared calls, in memory of the device.

    Attributes:
        value: its number in the program.
        kind, stored: its type, as users see it and as the program has it.
        layout: of the memory that kernels write.
        reach: the begin and the end of that memory behind the address of its first element, in bytes, if it is the caller's.
        dtype: of the caller's arrays for results.
    """

    value: int
    kind: FieldType
    stored: FieldType
    shape: tuple[int, ...]
    layout: Layout | None
    reach: Reach = (0, 0)
    dtype: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class PreparedDeviceCall:
    """Calls of a pipeline with arrays in the device's memory, in one queue; their results are not waited for.

    Attributes:
        plan, others, several, pin, settings: as of a `PreparedHostCall`.
        arguments: leaves of the caller's arrays: number, position of the array, type, layout, and reach as of a `DeviceResult`.
        convert: the function of the caller's library that returns an array in the memory of a result.
        into: True if the caller has arrays for the results.
    """

    backend: Backend
    plan: Callable[[], Prepared | None]
    arguments: Sequence[DeviceArgument]
    others: Sequence[tuple[int, Node]]
    results: Sequence[DeviceResult]
    several: bool
    convert: Callable[[Any], Any]
    into: bool
    pin: Pin | None = field(default_factory=pinned)
    settings: tuple[Any, ...] = field(default_factory=choice_settings)

    def result(self, inputs: Sequence[Any], out: Any) -> Any:
        """As of a `PreparedHostCall`."""
        prepared, backend = self.plan(), self.backend
        if prepared is None or self.into is (out is None):
            return NotImplemented
        values: dict[int, Argument] = {}
        spans: list[Reach] = []
        for number, position, kind, layout, (first, last) in self.arguments:
            shared = share(inputs[position], kind, backend)
            if shared.layout != layout:
                return NotImplemented
            values[number], address = shared.memory, shared.memory.array.address
            spans += ((address + first, address + last),)
        outs = out if type(out) in LISTS else (out,)
        memory = self._memory(outs, spans) if self.into else {}
        if memory is None:
            return NotImplemented
        for number, node in self.others:
            values[number] = argument(node, backend)
        references = [*inputs], outs, memory, dict(values)
        try:
            values = (prepared if prepared.backend is backend else prepared.on(backend)).run(values, memory)
            # the stream of the caller waits for what is lent
            arrays = [self.convert(lend(backend, values[each.value], each.kind, each.layout)) for each in self.results]
        except BaseException:
            backend.keep(references)  # enqueued work may still use the arrays
            raise
        results = arrays if out is None else outs
        return tuple(results) if self.several else results[0]

    def _memory(self, outs: Sequence[Any], spans: list[Reach]) -> dict[int, Buffer] | None:
        """Return the memory of the caller's arrays for the results; None if one does not fit, or overlaps `spans` or another."""
        if len(outs) != len(self.results):
            return None
        memory: dict[int, Buffer] = {}
        for result, array in zip(self.results, outs):  # noqa: B905 - the same number
            if tuple(array.shape) != result.shape or array.dtype != result.dtype:
                return None
            shared = share(array, result.stored, self.backend)
            if shared.layout != result.layout:
                return None
            address, (first, last) = shared.memory.array.address, result.reach
            if not is_apart(spans, address + first, address + last):
                return None
            memory[result.value] = shared.memory
        return memory


def _host_arrays(inputs: Sequence[Any]) -> list[Array] | None:
    """Arrays of other libraries as those of NumPy; None if PyTorch keeps a record of the use of one."""
    arrays: list[Array] = []
    for array in inputs:
        if getattr(array, "requires_grad", False):
            return None
        arrays += (readable(array),)
    return arrays


def checked(results: Sequence[HostResult], out: Any, arrays: Sequence[Array]) -> list[Any] | None:
    """Return the caller's arrays for the results; None if one does not fit, or shares memory with another."""
    outs = [out]
    if type(out) in LISTS:
        outs = [*out]
        if len(outs) != len(results):
            return None
    others = [*arrays]
    for result, array in zip(results, outs):  # noqa: B905 - the same number
        if not result.fits(array, others):
            return None
        others += (array,)
    return outs


def is_apart(spans: list[Reach], first: int, last: int) -> bool:
    """Return whether memory overlaps none of these spans, and add it to them."""
    for start, end in spans:
        if end > first and start < last:
            return False
    spans += ((first, last),)
    return True
