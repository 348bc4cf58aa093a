"""Prepared calls with arrays of a library that runs its functions in a stream of the device, as gpuop then does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from gpuop.base.records import dataclass
from gpuop.engine.evaluate import argument
from gpuop.engine.interop import ALIGNED
from gpuop.engine.jit.prepared_call import LISTS
from gpuop.ir.kernel import Pin
from gpuop.ir.values import Node
from gpuop.passes.schedules.pinning import pinned
from gpuop.runtime.base.backend import Argument, Backend, Buffer
from gpuop.runtime.base.stream_arrays import Address, StreamArrays
from gpuop.runtime.execute import Prepared
from gpuop.runtime.tuning.chooser import choice_settings


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an array of prepared calls.

    Attributes:
        value: number of the value in the program.
        position: of the array among the arguments, or among the results.
        strides: in units of the library; None for results in new arrays.
        behind: the distance from an aligned address, in bytes.
        first, last: the begin and the end of the memory behind the address of the first element, in bytes.
        shape, dtype: of a result, as the library has them.
    """

    value: int
    position: int
    strides: Any = None
    behind: int = 0
    first: int = 0
    last: int = 0
    shape: tuple[int, ...] = ()
    dtype: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class PreparedStreamCall:
    """Calls of a pipeline of kernels alone, with arrays of one library in the device's memory; results are not waited for.

    Attributes:
        plan: a weak reference to the compiled plan.
        arguments: leaves of the caller's arrays.
        others: other leaves.
        results: places of results.
        several: True if a tuple is returned.
        library: of the arrays.
        into: True if the caller has arrays for the results.
        pin, settings: what the plan was made for besides the device.
    """

    backend: Backend
    plan: Callable[[], Prepared | None]
    arguments: Sequence[Place]
    others: Sequence[tuple[int, Node]]
    results: Sequence[Place]
    several: bool
    library: StreamArrays
    into: bool
    pin: Pin | None = field(default_factory=pinned)
    settings: tuple[Any, ...] = field(default_factory=choice_settings)

    def result(self, inputs: Sequence[Any], out: Any) -> Any:
        """As of a `PreparedHostCall`."""
        prepared, backend, library = self.plan(), self.backend, self.library
        stream = library.stream()
        if prepared is None or stream is None or self.into is (out is None):
            return NotImplemented
        values: dict[int, Argument] = {}
        for each in self.arguments:
            address, strides = library.place(inputs[each.position])
            if strides != each.strides or address % ALIGNED != each.behind or not address:
                return NotImplemented
            values[each.value] = Address(address)
        outs: Sequence[Any] = out if type(out) in LISTS else (out,)
        fitting = self._into(outs, values) if self.into else self._new()
        if fitting is None:
            return NotImplemented
        outs, memory = fitting
        for number, node in self.others:
            values[number] = argument(node, backend)
        references = [*inputs], outs, dict(values)
        try:
            library.follow(stream)
            (prepared if prepared.backend is backend else prepared.on(backend)).run(values, memory)
            library.lead(stream)
        except BaseException:
            backend.keep(references)  # enqueued work may still use the arrays
            raise
        return tuple(outs) if self.several else outs[0]

    def _new(self) -> tuple[Sequence[Any], dict[int, Buffer]] | None:
        """Return new arrays for the results, and their memory; None if the library has none, or not aligned."""
        library, memory, outs = self.library, dict[int, Buffer](), list[Any]()
        for result in self.results:
            try:
                array = library.empty(result.shape, result.dtype)
            except (MemoryError, RuntimeError):  # PyTorch raises the latter; gpuop may have memory to give back
                return None
            address, _ = library.place(array)
            if not address or address % ALIGNED:
                return None
            memory[result.value] = Address(address)
            outs += (array,)
        return outs, memory

    def _into(self, outs: Sequence[Any], values: dict[int, Argument]) -> tuple[Sequence[Any], dict[int, Buffer]] | None:
        """Return the caller's arrays for the results, and their memory; None if one does not fit, or overlaps another array."""
        if len(outs) != len(self.results):
            return None
        spans = [(values[each.value] + each.first, values[each.value] + each.last) for each in self.arguments]
        memory: dict[int, Buffer] = {}
        for result, array in zip(self.results, outs):  # noqa: B905 - the same number
            address, strides = self.library.place(array)
            if strides != result.strides or address % ALIGNED != result.behind or not address:
                return None
            if array.shape != result.shape or array.dtype != result.dtype:
                return None
            first, last = address + result.first, address + result.last
            for start, end in spans:
                if end > first and start < last:
                    return None
            spans += ((first, last),)
            memory[result.value] = Address(address)
        return outs, memory
