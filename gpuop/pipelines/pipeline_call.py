"""Calls of pipelines: a pipeline that is traced and compiled, run on arrays of the caller's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpuop.dsl.fields.arrays import is_array
from gpuop.dsl.fields.sources import Deferred
from gpuop.errors import SemanticError, described
from gpuop.evaluation import argument, copy_into, prepare
from gpuop.fusion.program import Program
from gpuop.interop import array_like, has_layout, lend, library_of, numpy_dtype, share
from gpuop.ir.layout import Layout, interleaved, layout_of, planar
from gpuop.ir.types import HALF, FieldType
from gpuop.ir.values import Leaf, Node
from gpuop.passes.points_per_thread import ACCESS
from gpuop.passes.schedules.pinning import pinned
from gpuop.runtime.base.backend import Argument, Array, Backend, Buffer, download, planes_of, stored
from gpuop.runtime.base.device_sources import Shared
from gpuop.runtime.execute import Prepared

LEAST_STRIDED = 1 << 16  # bytes: copies of smaller arrays take no time, and kernels for their strides do to compile
MOST_STRIDED = 8  # strides of a pipeline's arguments that kernels are compiled for; others are copied


@dataclass(frozen=True, eq=False)
class Traced:
    """What a pipeline computes for arguments of some types.

    Attributes:
        planar: values that lie in planes, as in memory of gpuop's own: those that are taken or made by what has no body (host
            functions, iterations), and arguments that are results.
        several: whether a tuple is returned.
        prepared: what was compiled, by device and the layouts of arrays.
        strided: how NumPy's arrays lie that are used in place and are not contiguous, by the number of the leaf and their strides.
    """

    program: Program
    planar: frozenset[int]
    several: bool
    prepared: dict[Any, Prepared] = field(default_factory=dict)
    strided: dict[tuple[int, tuple[int, ...]], Layout] = field(default_factory=dict)

    def layout(self, number: int, kind: FieldType, array: Array) -> Layout | None:
        """How a NumPy array lies whose memory kernels read as it is; None if it is to be copied."""
        if array.flags.c_contiguous:
            return interleaved(kind) if kind.planes > 1 else planar(kind)
        key = number, array.strides
        found = self.strided.get(key)
        if found is None and len(self.strided) < MOST_STRIDED and array.nbytes >= LEAST_STRIDED:
            found = _layout(kind, array)
            if found is not None:
                self.strided[key] = found
        return found


class PipelineCall:
    """One call of a pipeline, compiled for the layouts of its arrays.

    Attributes:
        arrays: the caller's, in the order of the arguments; on the device, or NumPy's.
        sample: one of them, if results are to be arrays of the same other library; None for NumPy's.
        layouts: of the values that are used where the caller's arrays lie, and do not lie in planes there.
        arguments: what each leaf of the program is passed as.
    """

    def __init__(self, traced: Traced, given: Sequence[Any], device: bool, backend: Backend) -> None:
        self.traced, self.program, self.backend, self.device = traced, traced.program, backend, device
        self.arrays = list(given) if self.device else [np.asarray(array) for array in given]
        self.sample = given[0] if given and library_of(given[0]) != "numpy" else None
        self.layouts: dict[int, Layout] = {}
        self.arguments = {number: self._argument(number, node) for number, node in self.program.leaves.items()}

    def _argument(self, number: int, node: Node) -> Argument:
        if not isinstance(node, Leaf) or not isinstance(node.source, Deferred):
            return argument(node, self.backend)
        array = self.arrays[node.source.placeholder.position]
        if not self.device:
            return self._of_host(number, node.type, node.source, array)
        shared = share(array, node.type, self.backend)
        if shared.layout is not None:
            self.layouts[number] = shared.layout
        return shared.memory

    def results(self) -> list[Any]:
        """Arrays of the kind that was given; those on a device are not waited for."""
        types = self.program.types
        if not self.device:
            arrays = self.on_host([np.empty(types[v].array_shape, types[v].array_dtype) for v in self.program.wanted])
            return arrays if self.sample is None else [array_like(self.sample, array) for array in arrays]
        layouts = {v: interleaved(types[v]) for v in self.program.wanted if types[v].planes > 1}
        values = self._launched(layouts, {})
        return [array_like(self.sample, self._lent(v, values[v])) for v in self.program.wanted]

    def _of_host(self, number: int, kind: FieldType, source: Deferred, array: Array) -> Argument:
        """An array of the host's, in its own memory where the device and the field's type can have it there."""
        if (
            array.dtype == kind.array_dtype
            and array.shape == tuple(kind.array_shape)
            and number not in self.traced.planar
            and array.flags.aligned
            and self._suits(kind)
        ):
            layout = self.traced.layout(number, kind, array)
            wrapped = None if layout is None else self.backend.wrap(array)
            if wrapped is not None:
                if layout is not None and layout != planar(kind):
                    self.layouts[number] = layout
                return wrapped
        kind, values = source.make(array)
        return self.backend.upload(kind, planes_of(kind, values))

    def _suits(self, kind: FieldType) -> bool:
        """Whether kernels are about as fast on NumPy's arrays: only planes make vectors, which some functions need."""
        return kind.planes == 1 or self.backend.target.widening != "functions"

    def on_host(self, outs: Sequence[Array]) -> list[Array]:
        """Compute into arrays of the host's, in their own memory where the device can."""
        wanted, types = self.program.wanted, self.program.types
        memory: dict[int, Buffer] = {}
        in_place: dict[int, Array] = {}
        for v, array in zip(wanted, outs, strict=True):
            apart = not any(np.may_share_memory(array, given) for given in self.arrays)
            aligned = array.flags.c_contiguous and array.ctypes.data % ACCESS == 0  # as kernels store past the caches
            usable = apart and aligned and self._suits(types[v])
            if usable and v not in memory and v not in self.traced.planar:
                wrapped = self.backend.wrap(stored(types[v], array))
                if wrapped is not None:
                    memory[v], in_place[v] = wrapped, array
        values = self._launched({v: interleaved(types[v]) for v in memory if types[v].planes > 1}, memory)
        self.backend.settle(memory.values())
        for v, array in zip(wanted, outs, strict=True):
            if array is not in_place.get(v):
                array[...] = in_place[v] if v in in_place else download(types[v], values[v], self.backend)
        return list(outs)

    def into(self, out: Any, name: str) -> Sequence[Any]:
        """Write the results into arrays of the caller's."""
        outs = out if isinstance(out, (tuple, list)) else (out,)
        wanted, types = self.program.wanted, self.program.types
        if len(outs) != len(wanted):
            raise SemanticError(
                f"pipeline `{name}`: `out=` takes an array for each result, {len(wanted)}, not {len(outs)}"
            )
        for v, array in zip(wanted, outs, strict=True):
            wrong = _unfit(array, types[v])
            if wrong:
                raise SemanticError(f"pipeline `{name}`: {wrong}")
        if _overlap(outs):
            raise SemanticError(
                f"pipeline `{name}`: the arrays of `out=` lie in the same memory; give each result its own"
            )
        if not self.device:
            self.on_host([np.asarray(array) for array in outs])
            return outs
        shared = [share(array, types[v], self.backend) for v, array in zip(wanted, outs, strict=True)]
        direct = {
            v: s for v, s in zip(wanted, shared, strict=True) if v not in self.traced.planar and self._is_apart(s)
        }
        layouts = {v: s.layout for v, s in direct.items() if s.layout is not None}
        values = self._launched(layouts, {v: s.memory for v, s in direct.items()})
        for v, s, array in zip(wanted, shared, outs, strict=True):
            if direct.get(v) is not s:
                copy_into(s, Shared(self.backend, values[v], self.layouts.get(v)), types[v])
            array_like(array, lend(self.backend, s.memory, types[v], s.layout))  # so that the caller's stream waits
        return outs

    def _is_apart(self, out: Shared) -> bool:
        """Whether no argument of the call lies where a result goes."""
        first, last = out.memory.array.span
        spans = (a.array.span for a in self.arguments.values() if hasattr(a, "array"))
        return all(end <= first or start >= last for start, end in spans)

    def _launched(self, layouts: dict[int, Layout], memory: dict[int, Buffer]) -> dict[int, Buffer]:
        self.layouts |= {v: layout for v, layout in layouts.items() if v not in self.traced.planar}
        pin = pinned()
        key = (self.backend, pin, tuple(self.layouts.items()))
        if key not in self.traced.prepared:
            self.traced.prepared[key] = prepare(self.program, self.backend, pin, layouts=self.layouts)
        return self.traced.prepared[key].run(self.arguments, memory)

    def _lent(self, value: int, buffer: Buffer) -> Any:
        return lend(self.backend, buffer, self.program.types[value], self.layouts.get(value))


def _layout(kind: FieldType, array: Array) -> Layout | None:
    """The layout of an array whose rows lie apart, each as in planes or in a contiguous array; None of any other.

    Elsewhere, and for halves, which some compilers cannot load from anywhere, schedules for planes do more than a copy costs.
    """
    forward = all(step > 0 for n, step in zip(array.shape, array.strides, strict=True) if n > 1)
    strides = tuple(step // array.itemsize for step in array.strides)
    whole = all(step % array.itemsize == 0 for step in array.strides)
    if not (forward and whole and has_layout(kind, strides)) or kind.storage is HALF:
        return None
    layout = layout_of(kind, strides)
    columns = layout.point[-1:]
    return layout if columns == (1,) or (layout.element == 1 and columns == (kind.planes,)) else None


def _unfit(array: Any, kind: FieldType) -> str:
    """Why a result cannot go into an array; empty where it can."""
    expected = f"`out=` takes an array of shape {tuple(kind.array_shape)} and dtype {kind.array_dtype}"
    if not is_array(array):
        return f"{expected}, not {described(array)}"
    if tuple(array.shape) != tuple(kind.array_shape) or numpy_dtype(array) != kind.array_dtype:
        return f"{expected}, not one of shape {tuple(array.shape)} and dtype {numpy_dtype(array)}"
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        return f"{expected} that can be written to; this one is read-only"
    if isinstance(array, np.ndarray) and any(
        n > 1 and not step for n, step in zip(array.shape, array.strides, strict=True)
    ):
        return f"{expected} whose elements lie apart; those of this one share memory"
    return ""


def _overlap(outs: Sequence[Any]) -> bool:
    """Whether two of NumPy's arrays share memory, or two of another library are the same."""
    pairs = ((a, b) for n, a in enumerate(outs) for b in outs[:n])
    return any(
        np.shares_memory(a, b) if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) else a is b for a, b in pairs
    )
