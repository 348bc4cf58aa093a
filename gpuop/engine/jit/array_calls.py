"""Calls of pipelines with arrays on the host, which NumPy can read, and with arrays that are on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpuop.dsl.fields.from_arrays import readable
from gpuop.dsl.fields.sources import Deferred
from gpuop.engine.evaluate import copy_into
from gpuop.engine.interop import array_facts, array_like, importer, lend, library_of, share
from gpuop.engine.jit.call import PipelineCall, PreparedCall
from gpuop.engine.jit.layout_choice import better_in_planes, read_around
from gpuop.engine.jit.prepared_call import (
    Convert,
    DeviceArgument,
    DeviceResult,
    HostResult,
    PreparedDeviceCall,
    PreparedHostCall,
    Reach,
    is_apart,
)
from gpuop.engine.jit.prepared_staged_call import PreparedStagedCall, StagedArray
from gpuop.engine.jit.prepared_stream_call import NewArray, Place, PreparedStreamCall
from gpuop.fusion.windows.buffer_pool import reused
from gpuop.ir.bfloat16 import BFLOAT16, as_array, fill
from gpuop.ir.dtype_names import PARTS
from gpuop.ir.layout import Layout, interleaved, planar, row_major
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf, Node
from gpuop.passes.coarsening_factor import ACCESS
from gpuop.runtime.base.backend import ALIGNED, Argument, Array, Backend, Buffer, aligned, download
from gpuop.runtime.base.device_sources import Shared
from gpuop.runtime.base.host_arrays import STORED_OTHERWISE, planes_of, stored
from gpuop.runtime.base.stages import size_of
from gpuop.runtime.base.stream_arrays import StreamArrays
from gpuop.runtime.execute import Prepared

FEW = 1024  # bytes that are copied in less time than another layout is planned for


class HostCall(PipelineCall):
    """A call whose arrays are in host memory, which the device uses in place where it can.

    Attributes:
        outs: NumPy arrays for the results, the caller's or new ones.
        in_place: those of them that kernels write directly, by value.
        usual: True if all arrays are contiguous and aligned, and apart, so that types have decided how each is used.
        converted: the conversions of leaves whose arrays are not used in place.
    """

    usual = True

    def __init__(self, *args: Any, **options: Any) -> None:
        self.converted: dict[int, Convert] = {}
        super().__init__(*args, **options)

    def _readable(self, array: Any) -> Array:
        return readable(array)

    def _of_array(self, number: int, kind: FieldType, source: Deferred, array: Array) -> Argument:
        """Return the argument of a host array: its own memory where the device and the field type permit, else a copy."""
        original, shape = array, kind.array_shape
        self.usual &= array.flags.c_contiguous and array.flags.aligned
        if array.shape == source.kind.array_shape != shape and array.flags.c_contiguous:
            array = array.reshape(shape)
        plain = array.dtype == kind.shared_dtype and array.shape == shape and array.flags.aligned
        if plain and self._suits(number, kind):
            layout = self.trace.layout(number, kind, array)
            wrapped = None if layout is None else self.backend.wrap(array)
            if wrapped is not None:
                if layout is not None and layout != planar(kind):
                    self.layouts[number] = layout
                return wrapped
        self.converted[number] = (
            partial(_copied, self.backend, kind, tuple(shape), kind.planes == 1 and kind.dtype not in STORED_OTHERWISE)
            if plain
            else partial(_uploaded, self.backend, source)
        )
        return self.converted[number](original)

    def repacked(self) -> tuple[list[int], list[int]]:
        copied = (number for number, _, _ in self.own_leaves if number in self.converted)
        results = (v for v in dict.fromkeys(self.program.results) if v not in self.in_place)
        planes = {v for v, kind in self.program.types.items() if kind.planes > 1 and kind.field_shape}
        return [v for v in copied if v in planes], [v for v in results if v in planes]

    def _suits(self, number: int, kind: FieldType) -> bool:
        """Return whether kernels are about as fast on the layout of NumPy arrays as on planes, which cost a copy.

        The planes of one point lie as its tensor does in either layout, and few bytes are copied.
        """
        if kind.planes == 1 or not kind.field_shape:
            return True
        if kind.nbytes <= FEW:
            return False
        target, planes = self.backend.target, self._planned({})
        if number not in read_around(planes):
            return True
        types, values = self.program.types, (*self.program.leaves, *self.program.results)
        layouts = {v: interleaved(types[v]) for v in values if types[v].planes > 1 and self.trace.takes(v, False)}
        return number not in better_in_planes(planes, self._planned(layouts), target)

    def _place_results(self) -> None:
        outputs, types = self.program.results, self.program.types
        if self.out is None:
            self.outs = [reused(tuple(kind.array_shape), self._dtype_of(kind)) for kind in self.trace.kinds]
        else:
            self.outs = [readable(array) for array in self.out]
        self.in_place: dict[int, Array] = {}
        for v, array in zip(outputs, self.outs, strict=True):
            apart = not any(np.may_share_memory(array, argument) for argument in self.arrays)
            aligned = array.flags.c_contiguous and array.ctypes.data % ACCESS == 0  # for non-temporal stores
            self.usual &= apart and aligned
            usable = apart and aligned and array.dtype == types[v].shared_dtype and self._suits(v, types[v])
            if usable and v not in self.memory and self.trace.takes(v, types[v].planes == 1):
                wrapped = self.backend.wrap(stored(types[v], array))
                if wrapped is not None:
                    self.memory[v], self.in_place[v] = wrapped, array
                    if types[v].planes > 1 and types[v].field_shape:
                        self.layouts[v] = interleaved(types[v])

    def _dtype_of(self, kind: FieldType) -> np.dtype[Any]:
        """Return the dtype of a new array: other libraries have dtypes that NumPy lacks."""
        return kind.array_dtype if self.sample is None else kind.shared_dtype

    def _taken(self, values: dict[int, Buffer]) -> Sequence[Any]:
        self.backend.settle(self.memory.values())
        for n, (v, kind) in enumerate(zip(self.program.results, self.trace.kinds, strict=True)):
            array, there = self.outs[n], self.in_place.get(v)
            if there is None and self.out is None:
                self.outs[n] = as_array(download(kind, values[v], self.backend), self._dtype_of(kind))
            elif there is None:
                fill(array, download(kind, values[v], self.backend))
            elif array is not there:
                array[...] = there.reshape(array.shape)
        if self.out is not None:
            return self.out
        return self.outs if self.sample is None else [array_like(self.sample, array) for array in self.outs]

    def prepared(self) -> PreparedCall | None:
        outputs, types = self.program.results, self.program.types
        plan = self.trace.prepared.reference(self._key(self.layouts))
        if not self.usual or plan is None or self._compiled().once or len(set(outputs)) < len(outputs):
            return None
        arguments = [(number, position, self.converted.get(number)) for number, position, _ in self.own_leaves]
        results = [
            HostResult(
                v,
                kind,
                tuple(kind.array_shape),
                self._dtype_of(kind),
                v in self.in_place,
                partial(stored, types[v]) if types[v].dtype in STORED_OTHERWISE else None,
            )
            for v, kind in zip(outputs, self.trace.kinds, strict=True)
        ]
        staged = self._prepared_staged_call(plan, results)
        if staged is not None:
            return staged
        listed = all(result.direct for result in results) and self._compiled().has_all_memory
        return PreparedHostCall(
            *(self.backend, plan, arguments, self.other_leaves, results, self.trace.several, self.sample is not None),
            listed and self._compiled().list_on(self.backend) is not None,
        )

    def _prepared_staged_call(
        self, plan: Callable[[], Prepared | None], results: Sequence[HostResult]
    ) -> PreparedStagedCall | None:
        """Return the prepared call by one copy there and one back; None if arrays are large, or are converted otherwise."""
        stages, prepared = self.backend.stages, self._compiled()
        leaves = [(number, position, _source_of(node).kind) for number, position, node in self.own_leaves]
        kinds = [*(kind for _, _, kind in leaves), *(result.kind for result in results)]
        copied = all(isinstance(c, partial) and c.func is _copied for c in self.converted.values())
        computed = not {result.value for result in results} & self.program.leaves.keys()
        plain = all(kind.dtype not in (*PARTS, BFLOAT16) and kind.nbytes for kind in kinds)
        if stages is None or not (copied and computed and plain) or self.sample is not None or self.in_place:
            return None
        arguments, memory, sent = dict[Any, StagedArray](), list[tuple[int, int]](), 0
        for number, position, kind in leaves:
            place = arguments.setdefault((position, kind), StagedArray.of(position, sent, kind))
            memory.append((number, place.begin))
            sent += aligned(kind.nbytes) if place.begin == sent else 0
        outputs, end = list[StagedArray](), sent
        for n, result in enumerate(results):
            outputs.append(StagedArray.of(n, end, result.kind))
            memory.append((result.value, end))
            end += aligned(result.kind.nbytes)
        between, room = prepared.places_between()
        size = size_of(end + room)
        if size is None or prepared.list_on(self.backend) is None:
            return None
        memory += ((value, end + begin) for value, begin in between.items())
        return PreparedStagedCall(
            *(self.backend, plan, [*arguments.values()], outputs, self.other_leaves, results),
            *(memory, self.trace.several, stages, size, sent, end),
        )


def _source_of(leaf: Node) -> Deferred:
    assert isinstance(leaf, Leaf) and isinstance(leaf.source, Deferred)
    return leaf.source


def _copied(backend: Backend, kind: FieldType, shape: tuple[int, ...], as_stored: bool, array: Array) -> Buffer:
    """Return a copy of an array in memory of the device, which has the shape of the type but for folded axes, and its dtype."""
    if as_stored and array.flags.c_contiguous:
        return backend.upload(kind, array.reshape(1, -1))
    return backend.upload(kind, planes_of(kind, array.reshape(shape)))


def _uploaded(backend: Backend, source: Deferred, array: Array) -> Buffer:
    """Return a copy of an array in memory of the device."""
    kind, values = source.make(array)
    return backend.upload(kind, planes_of(kind, values()))


def _reach(memory: Any) -> tuple[int, int]:
    """Return the begin and the end of the memory of an array behind the address of its first element, in bytes."""
    first, last = memory.array.span
    return first - memory.array.address, last - memory.array.address


class DeviceCall(PipelineCall):
    """A call whose arrays are in the device's memory; its results are not waited for.

    Attributes:
        shared: the memory of the caller's arrays for the results, if there are any.
    """

    def _readable(self, array: Any) -> Any:
        return array

    def _of_array(self, number: int, kind: FieldType, source: Deferred, array: Any) -> Argument:
        shared = share(array, kind, self.backend)
        if shared.layout is not None:
            self.layouts[number] = shared.layout
        return shared.memory

    def _place_results(self) -> None:
        outputs, types, planar = self.program.results, self.program.types, self.trace.planar
        layouts: dict[int, Layout] = {}
        if self.out is None:
            several = (v for v in outputs if types[v].planes > 1 and v not in planar)
            layouts = {v: replace(interleaved(types[v]), behind=0) for v in several}  # libraries align new arrays
        else:
            self.shared = [share(array, types[v], self.backend) for v, array in zip(outputs, self.out, strict=True)]
            direct = {v: s for v, s in zip(outputs, self.shared, strict=True) if v not in planar and self._is_apart(s)}
            self.memory = {v: s.memory for v, s in direct.items()}
            layouts = {v: s.layout for v, s in direct.items() if s.layout is not None}
        self.layouts |= layouts

    def prepared(self) -> PreparedCall | None:
        outputs, types = self.program.results, self.program.types
        plan, into = self.trace.prepared.reference(self._key(self.layouts)), self.out is not None
        direct = (
            all(self.memory.get(v) is s.memory for v, s in zip(outputs, self.shared, strict=True)) if into else True
        )
        borrowed = any(isinstance(node, Leaf) and node.source.borrowed for _, node in self.other_leaves)
        if plan is None or self._compiled().once or len({*outputs}) < len(outputs) or not direct or borrowed:
            return None
        arguments = [
            (n, position, node.type, self.layouts.get(n), _reach(self.arguments[n]))
            for n, position, node in self.own_leaves
        ]
        facts = [(_reach(self.memory[v]), array.dtype) for v, array in zip(outputs, self.out or (), strict=into)]
        results = [
            DeviceResult(v, kind, types[v], tuple(kind.array_shape), self.layouts.get(v), *(facts[n] if into else ()))
            for n, (v, kind) in enumerate(zip(outputs, self.trace.kinds, strict=True))
        ]
        in_stream = self._prepared_stream_call(plan, arguments, results)
        if in_stream is not None:
            return in_stream
        convert = importer(self.out[0] if self.out else self.sample)
        return PreparedDeviceCall(
            self.backend, plan, arguments, self.other_leaves, results, self.trace.several, convert, into
        )

    def _prepared_stream_call(
        self, plan: Callable[[], Prepared | None], arguments: Sequence[DeviceArgument], results: Sequence[DeviceResult]
    ) -> PreparedStreamCall | None:
        """Return the prepared call in the stream of the caller's library; None if that cannot run in streams, or not this."""
        library, prepared = self.backend.arrays_of(library_of(self.sample)), self._compiled()
        if library is None or prepared.list_on(self.backend) is None:
            return None
        outs = () if self.out is None else zip(results, self.out, strict=True)
        try:
            places = [_place_of(library, self.arrays[p], n, p, reach) for n, p, _, _, reach in arguments]
            into = [_place_of(library, array, r.value, n, r.reach) for n, (r, array) in enumerate(outs)]
            new = [_new_array(library, result) for result in results] if self.out is None else []
        except _NotInStreams:
            return None
        between, room = prepared.places_between()
        if room:
            new.append(NewArray((room,), library.byte, [*between.items()]))
        alone = (library.has_memory or not room) and all(
            isinstance(self.arguments[n], tuple) for n, _ in self.other_leaves
        )
        return PreparedStreamCall(
            self.backend, plan, places, self.other_leaves, into, new, len(results), self.trace.several, library, alone
        )

    def _is_apart(self, out: Shared) -> bool:
        """Return whether the memory of a result overlaps no argument of the call."""
        return is_apart([a.array.span for a in self.arguments.values() if hasattr(a, "array")], *out.memory.array.span)

    def _taken(self, values: dict[int, Buffer]) -> Sequence[Any]:
        outputs, types = self.program.results, self.program.types
        if self.out is None:
            results = zip(outputs, self.trace.kinds, strict=True)
            return [array_like(self.sample, self._lent(kind, values[v], self.layouts.get(v))) for v, kind in results]
        for v, kind, s, array in zip(outputs, self.trace.kinds, self.shared, self.out, strict=True):
            if self.memory.get(v) is not s.memory:
                copy_into(s, Shared(self.backend, values[v], self.layouts.get(v)), types[v])
            array_like(array, self._lent(kind, s.memory, s.layout))  # so that the caller's stream waits
        return self.out

    def _lent(self, kind: FieldType, buffer: Buffer, layout: Layout | None) -> Any:
        return lend(self.backend, buffer, kind, layout)


class _NotInStreams(Exception):
    """An array that is none of the library on the device, or a result that it has no array for."""


def _place_of(library: StreamArrays, array: Any, value: int, position: int, reach: Reach) -> Place:
    address, strides = library.place(array)
    if not address:
        raise _NotInStreams
    return Place(value, position, strides, address % ALIGNED, *reach, shape=array.shape, dtype=array.dtype)


def _new_array(library: StreamArrays, result: DeviceResult) -> NewArray:
    shape, strides, dtype = array_facts(result.kind, result.layout or planar(result.kind.folded))
    named = library.dtype(dtype)
    if named is None or strides != row_major(shape) or not result.kind.nbytes:
        raise _NotInStreams
    return NewArray(shape, named, [(result.value, 0)])
