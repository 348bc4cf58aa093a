"""Calls of pipelines with arrays that are on a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuop.dsl.fields.sources import Deferred
from gpuop.engine.evaluate import copy_into
from gpuop.engine.interop import array_like, lend, share
from gpuop.engine.jit.call import PipelineCall
from gpuop.ir.layout import Layout, interleaved
from gpuop.ir.types import FieldType
from gpuop.runtime.base.backend import Argument, Buffer
from gpuop.runtime.base.device_sources import Shared


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
        wanted, types, planar = self.program.wanted, self.program.types, self.trace.planar
        layouts: dict[int, Layout] = {}
        if self.out is None:
            layouts = {v: interleaved(types[v]) for v in wanted if types[v].planes > 1 and v not in planar}
        else:
            self.shared = [share(array, types[v], self.backend) for v, array in zip(wanted, self.out, strict=True)]
            direct = {v: s for v, s in zip(wanted, self.shared, strict=True) if v not in planar and self._is_apart(s)}
            self.memory = {v: s.memory for v, s in direct.items()}
            layouts = {v: s.layout for v, s in direct.items() if s.layout is not None}
        self.layouts |= layouts

    def _is_apart(self, out: Shared) -> bool:
        """Return whether the memory of a result overlaps no argument of the call."""
        first, last = out.memory.array.span
        spans = (a.array.span for a in self.arguments.values() if hasattr(a, "array"))
        return all(end <= first or start >= last for start, end in spans)

    def _taken(self, values: dict[int, Buffer]) -> Sequence[Any]:
        wanted, types = self.program.wanted, self.program.types
        if self.out is None:
            results = zip(wanted, self.trace.kinds, strict=True)
            return [array_like(self.sample, self._lent(kind, values[v], self.layouts.get(v))) for v, kind in results]
        for v, kind, s, array in zip(wanted, self.trace.kinds, self.shared, self.out, strict=True):
            if self.memory.get(v) is not s.memory:
                copy_into(s, Shared(self.backend, values[v], self.layouts.get(v)), types[v])
            array_like(array, self._lent(kind, s.memory, s.layout))  # so that the caller's stream waits
        return self.out

    def _lent(self, kind: FieldType, buffer: Buffer, layout: Layout | None) -> Any:
        return lend(self.backend, buffer, kind, layout)
