"""Memory of a GPU's kernels, which reports what a GPU would do silently, or die of.

Indices are those of the text that is printed: nothing is clamped or masked here but what the text itself does.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Array, FieldParam
from gpuop.runtime.reference.array_memory import ArrayMemory, Lanes, Mask, Values
from gpuop.runtime.reference.gpu_reports import GpuReports, Memory
from gpuop.runtime.reference.positions import Positions

UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}  # by bytes: an index below 0 is a large number


class GpuMemory(ArrayMemory):
    """The memory of some work-groups."""

    def __init__(self, where: Positions, fields: dict[FieldParam, Values], kernel: Kernel, report: GpuReports) -> None:
        super().__init__(where, fields, kernel, lowered=True)
        self.report = report
        self.flats = {field: planes.reshape(-1) for field, planes in fields.items()}

    def first(self, bad: Mask) -> tuple[int, str]:
        """The first of some threads, and what messages call it."""
        at = int(np.argmax(bad))
        return at, self.report.thread(self.where, at)

    def outside(self, index: Values, n: int, active: Mask) -> Mask | None:
        """The threads whose index is none of 0 … n - 1; None where there are none."""
        bad = index.view(UNSIGNED[index.dtype.itemsize]) >= n
        if not bad.any():
            return None
        bad = active & bad
        return bad if bad.any() else None

    def check(self, does: str, field: FieldParam, place: Values, active: Mask) -> None:
        """A flat place is one of the field's."""
        size = self.flats[field].size
        bad = self.outside(place, size, active)
        if bad is not None:
            at, thread = self.first(bad)
            self.report.outside(does, field, int(self.all(place)[at]), size, thread)

    # --- fields -------------------------------------------------------------------------------------------------

    def load(self, memory: Memory, index: Lanes, active: Mask) -> Lanes:
        if isinstance(memory, FieldParam):
            return [self.loaded(memory, index[0], active)]
        cells = self.cells("reads", memory, index, active)
        (lane,) = self.arrays[memory]
        return [np.asarray(lane.reshape(-1).take(cells, mode="clip"))]

    def loaded(self, field: FieldParam, place: Values, active: Mask) -> Values:
        """Elements at flat places, of active threads; others get any."""
        flat = self.flats[field]
        self.check("reads", field, place, active)
        return np.asarray(flat.take(place, mode="clip")) if flat.size else np.zeros(place.shape, flat.dtype)

    def near(self, field: FieldParam, index: Lanes, ahead: Iterable[int], active: Mask) -> Lanes:
        offset, *limits = index
        steps = (np.maximum(k, limits[1]) if len(limits) > 1 else k for k in ahead)
        left = (np.minimum(k, limits[0] - 1) if limits else k for k in steps)
        return [self.loaded(field, np.asarray(offset + k), active) for k in left]

    def store(self, memory: Memory, index: Lanes, values: Lanes, active: Mask) -> None:
        if isinstance(memory, FieldParam):
            for k, value in enumerate(values):
                keep = active & (k < index[1]) if len(index) > 1 else active  # a vector's lanes that are inside
                self.stored(memory, self.all(np.asarray(index[0] + k)), value, keep)
            return
        for k, value in enumerate(values):  # several: a vector's
            place = index if len(values) == 1 else [*index[:-1], np.asarray(index[-1] + k)]
            cells = self.cells("writes", memory, place, active)
            (lane,) = self.arrays[memory]
            lane.reshape(-1)[cells[active]] = self.all(value)[active]

    def stored(self, field: FieldParam, place: Values, value: Values, active: Mask) -> None:
        self.check("writes", field, place, active)
        self.flats[field][place[active]] = self.all(value)[active]

    # --- arrays -------------------------------------------------------------------------------------------------

    def cells(self, does: str, array: Array, index: Lanes, active: Mask) -> Values:
        """The place of each thread's element in the memory of all owners; of threads that are not active, any."""
        place = np.zeros((), np.int64)
        for axis, (i, n) in enumerate(zip(index, array.extents, strict=True)):
            bad = self.outside(i, n, active)
            if bad is not None:
                at, thread = self.first(bad)
                self.report.outside_axis(does, array, [int(self.all(j)[at]) for j in index], axis, thread)
            place = place * n + i
        if array.space == "constant":
            return self.all(place)
        owners = self.count if array.space == "private" else self.where.groups
        return np.asarray(place * owners + self.owner(array))

    def wide(
        self,
        field: FieldParam,
        array: Array,
        loads: bool,
        index: Lanes,
        element: Values | None,
        left: Values | None,
        active: Mask,
    ) -> None:
        """One access of as many elements as the array has, whatever is left: the text of GPUs has no other."""
        offset = self.all(index[0])
        size = array.type.dtype.bits // field.type.storage.bits
        count = array.elements * size
        does = "reads" if loads else "writes"
        bad = active & ((offset + (self.layout(field).behind or 0)) % count != 0)
        if bad.any():
            at, thread = self.first(bad)
            self.report.misaligned(does, field, int(offset[at]), count, thread)
        self.check(does, field, offset, active)
        self.check(does, field, offset + (count - 1), active)
        for k in range(array.elements):
            here, there = [np.asarray(k)], [offset + (size * k + n) for n in range(size)]
            if loads:
                parts = [self.loaded(field, place, active) for place in there]
                self.store(array, here, [parts[0] if size == 1 else word(parts)], active)
            else:
                (value,) = self.load(array, here, active)
                for n, place in enumerate(there):
                    self.stored(field, place, value if size == 1 else (value >> 8 * n).astype(np.uint8), active)

    def atomic(
        self,
        op: str,
        memory: Memory,
        index: Lanes,
        element: Values | None,
        args: Lanes,
        active: Mask,
        wanted: bool,
    ) -> Values:
        if isinstance(memory, FieldParam):
            self.check("changes", memory, index[0], active)
        else:
            self.cells("changes", memory, index, active)
        return super().atomic(op, memory, index, element, args, active, wanted)


def word(parts: Lanes) -> Values:
    """Four bytes as a word."""
    shifted = [part.astype(np.uint32) << 8 * n for n, part in enumerate(parts)]
    return shifted[0] | shifted[1] | shifted[2] | shifted[3]
