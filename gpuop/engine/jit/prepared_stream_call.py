"""Prepared calls with arrays of a library that runs its functions in a stream of the device, as gpuop then does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from itertools import zip_longest
from typing import Any, NamedTuple

from gpuop.base.records import dataclass
from gpuop.engine.evaluate import argument
from gpuop.engine.jit.prepared_call import LISTS, Reach, is_apart
from gpuop.ir.kernel import Pin
from gpuop.ir.values import Node
from gpuop.passes.schedules.pinning import pinned
from gpuop.runtime.base.backend import ALIGNED, Argument, Backend, Buffer
from gpuop.runtime.base.stream_arrays import Address, StreamArrays
from gpuop.runtime.execute import Prepared
from gpuop.runtime.tuning.chooser import choice_settings


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an array of prepared calls.

    Attributes:
        value: number of the value in the program.
        position: of the array among the arguments, or among the results.
        strides: in units of the library.
        behind: the distance from an aligned address, in bytes.
        first, last: the begin and the end of the memory behind the address of the first element, in bytes.
        shape, dtype: of a result, as the library has them.
    """

    value: int
    position: int
    strides: Any
    behind: int
    first: int
    last: int
    shape: tuple[int, ...] = ()
    dtype: Any = None


class NewArray(NamedTuple):
    """A new array of the library that each call makes: for a result, or for intermediate values.

    Attributes:
        values: the numbers of the values in it, with the begin of their memory in bytes.
    """

    shape: tuple[int, ...]
    dtype: Any
    values: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True, eq=False)
class PreparedStreamCall:
    """Calls of a pipeline of kernels alone, with arrays of one library in the device's memory; results are not waited for.

    Attributes:
        plan: a weak reference to the compiled plan.
        arguments: leaves of the caller's arrays.
        others: other leaves.
        results: places of results, if the caller has arrays for them.
        new: other results, then intermediate values.
        count: of results.
        several: True if a tuple is returned.
        library: of the arrays.
        alone: True if the library has all memory that the kernels use.
        pin, settings: what the plan was made for besides the device.
    """

    backend: Backend
    plan: Callable[[], Prepared | None]
    arguments: Sequence[Place]
    others: Sequence[tuple[int, Node]]
    results: Sequence[Place]
    new: Sequence[NewArray]
    count: int
    several: bool
    library: StreamArrays
    alone: bool
    pin: Pin | None = field(default_factory=pinned)
    settings: tuple[Any, ...] = field(default_factory=choice_settings)

    def result(self, inputs: Sequence[Any], out: Any) -> Any:
        """As of a `PreparedHostCall`."""
        prepared, backend, library = self.plan(), self.backend, self.library
        stream = library.stream()
        if prepared is None or stream is None or (out is None) is bool(self.results):
            return NotImplemented
        values: dict[int, Argument] = {}
        spans: list[Reach] = []
        for each in self.arguments:
            address, strides = library.place(inputs[each.position])
            if strides != each.strides or address % ALIGNED != each.behind or not address:
                return NotImplemented
            values[each.value] = Address(address)
            spans += ((address + each.first, address + each.last),)
        outs: Sequence[Any] = out if type(out) in LISTS else (out,)
        memory: dict[int, Buffer] = {}
        if self.results and not self._into(outs, memory, spans):
            return NotImplemented
        arrays = self._arrays(memory)
        if arrays is None:
            return NotImplemented
        for number, node in self.others:
            values[number] = argument(node, backend)
        references = [*inputs], outs, arrays, values, memory
        launches = prepared.lists[backend]
        try:
            direct = library.direct(stream) if self.alone and launches.any_stream else None
            if direct is None:
                library.follow(stream)
                launches.run(values, memory)
                library.lead(stream)
            else:
                launches.run(values, memory, direct)
        except BaseException:
            backend.keep(references)  # enqueued work may still use the arrays
            raise
        results = outs if self.results else arrays[: self.count]
        return tuple(results) if self.several else results[0]

    def _arrays(self, memory: dict[int, Buffer]) -> list[Any] | None:
        """Add the memory of new arrays, those of results first; None if the library has none, or not aligned."""
        library, arrays = self.library, list[Any]()
        for shape, dtype, inside in self.new:
            try:
                array, address = library.empty(shape, dtype)
            except (MemoryError, RuntimeError):  # PyTorch raises the latter; gpuop may have memory to give back
                return None
            if not address or address % ALIGNED:
                return None
            for value, begin in inside:
                memory[value] = Address(address + begin)
            arrays += (array,)
        return arrays

    def _into(self, outs: Sequence[Any], memory: dict[int, Buffer], spans: list[Reach]) -> bool:
        """Add the memory of the caller's arrays for the results; False if one does not fit, or overlaps another array."""
        for result, array in zip_longest(self.results, outs):
            if result is None:
                return False
            address, strides = self.library.place(array)
            if strides != result.strides or address % ALIGNED != result.behind or not address:
                return False
            if array.shape != result.shape or array.dtype != result.dtype:
                return False
            if not is_apart(spans, address + result.first, address + result.last):
                return False
            memory[result.value] = Address(address)
        return True
