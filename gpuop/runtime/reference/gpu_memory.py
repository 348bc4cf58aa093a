"""The memory of interpreted GPU kernels, which reports accesses that a GPU would get wrong silently or crash on.

Indices are those of the printed text: only clamps and masks in the text itself apply.
"""

from __future__ import annotations

import numpy as np

from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Array, Atomic, FieldParam, Wide
from gpuop.runtime.reference.array_memory import Lanes, Mask, Values
from gpuop.runtime.reference.gpu_reports import GpuReports, Memory
from gpuop.runtime.reference.positions import Positions
from gpuop.runtime.reference.races import History, LocalHistory, MemoryAccess, OrderedMemory, Race

UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}  # by bytes: an index below 0 becomes a large number


class GpuMemory(OrderedMemory):
    """The memory of some work-groups.

    Args:
        outputs: the access histories of the fields that the launch writes.
    """

    def __init__(
        self,
        where: Positions,
        fields: dict[FieldParam, Values],
        outputs: dict[FieldParam, History],
        kernel: Kernel,
        report: GpuReports,
    ) -> None:
        self.size = kernel.work_group.points
        number = np.arange(where.count) + where.first * self.size
        super().__init__(where, fields, kernel, True, number, outputs)
        self.report = report
        self.flats = {field: planes.reshape(-1) for field, planes in fields.items()}
        self.poison: dict[Array, Values] = {}  # for each element the code of its unwritten origin, or 0
        self.origins: list[Array] = []  # local arrays, by the numbers in these codes

    def outside(self, index: Values, n: int, active: Mask) -> Mask | None:
        """Return the threads whose index is not in 0 … n - 1; None if there are none."""
        bad = index.view(UNSIGNED[index.dtype.itemsize]) >= n
        if not bad.any():
            return None
        bad = active & bad
        return bad if bad.any() else None

    def check(self, does: str, field: FieldParam, place: Values, active: Mask) -> None:
        """Check that a flat offset is in the field."""
        size = self.flats[field].size
        bad = self.outside(place, size, active)
        if bad is not None:
            at, thread = self.first_named(bad)
            self.report.outside(does, field, int(self.all(place)[at]), size, thread)

    # --- fields -------------------------------------------------------------------------------------------------

    def load(self, memory: Memory, index: Lanes, active: Mask) -> Lanes:
        if isinstance(memory, FieldParam):
            return super().load(memory, index, active)
        cells = self.cells("reads", memory, index, active)
        (lane,) = self.arrays[memory]
        if memory in self.histories:
            now = self.access(memory, cells, active)
            self.report_race(self.histories[memory].read(now), memory)
        return [np.asarray(lane.reshape(-1).take(cells, mode="clip"))]

    def loaded(self, field: FieldParam, place: Values, active: Mask) -> Values:
        """Return the elements at flat offsets, for active threads; the values of others are undefined."""
        flat = self.flats[field]
        self.check("reads", field, place, active)
        if field in self.outputs:
            self.read_by(self.outputs[field], field, self.all(place), active)
        return np.asarray(flat.take(place, mode="clip")) if flat.size else np.zeros(place.shape, flat.dtype)

    def store(self, memory: Memory, index: Lanes, values: Lanes, active: Mask) -> None:
        if isinstance(memory, FieldParam):
            super().store(memory, index, values, active)
            return
        for k, value in enumerate(values):  # the lanes of a vector
            place = index if len(values) == 1 else [*index[:-1], np.asarray(index[-1] + k)]
            cells = self.cells("writes", memory, place, active)
            (lane,) = self.arrays[memory]
            self.put(self.histories.get(memory), memory, lane.reshape(-1), cells, value, active)

    def stored(self, field: FieldParam, place: Values, value: Values, active: Mask) -> None:
        self.check("writes", field, place, active)
        self.put(self.outputs[field], field, self.flats[field], place, value, active)

    # --- threads ------------------------------------------------------------------------------------------------

    def read_by(self, history: History, field: FieldParam, cells: Values, active: Mask) -> None:
        """Check that elements of an output that active threads read are written, in a defined order."""
        now = self.access(field, cells, active)
        self.report_unwritten(history, field, now)
        self.report_race(history.read(now), field)

    def report_unwritten(self, history: History, field: FieldParam, now: MemoryAccess) -> None:
        bad = history.unwritten(now.cell)
        if bad is not None:
            at = int(np.argmax(bad))
            self.report.unwritten(field, int(now.cell[at]), self.named(now.thread[at]))

    def put(
        self, history: History | None, memory: Memory, flat: Values, cells: Values, value: Values, active: Mask
    ) -> None:
        """Write elements, for active threads."""
        new = self.all(value)[active].astype(flat.dtype)
        if history is None:
            flat[cells[active]] = new
            return
        self.report_race(history.put(self.access(memory, cells, active), [flat], [new]), memory)

    def report_race(self, race: Race | None, memory: Memory) -> None:
        if race is not None:
            here, other = self.named(race.thread), self.named(race.other)
            self.report.race(race.does, race.did, memory, self.element_of(memory, race.cell), here, other)

    def named(self, thread: int) -> str:
        """Return the name of a thread, from its number in the launch."""
        return self.report.numbered(int(thread))

    def first_named(self, bad: Mask) -> tuple[int, str]:
        """Return the first of some threads, and its name in messages."""
        at = self.first(bad)
        return at, self.named(self.number[at])

    def barrier(self, fence: str, active: Mask) -> None:
        self.report_torn("a barrier", self.where.member, active)
        self.pass_barrier(fence, active)

    def report_torn(self, what: str, member: Values, active: Mask) -> None:
        """Check that all threads of a group (or a part of it) reach this statement together, or none."""
        torn = self.torn(member, active)
        if torn is not None:
            here, missing = (self.named(self.number[at]) for at in torn)
            self.report.torn(what, here, missing)

    # --- arrays -------------------------------------------------------------------------------------------------

    def declare(self, array: Array) -> None:
        super().declare(array)
        if array.space == "local":
            cells = array.elements * self.where.groups
            self.histories[array] = LocalHistory(cells, self.count + self.where.first * self.size, initial=True)
            first = sum(each.elements for each in self.origins) * self.where.groups
            self.poison[array] = np.arange(first + 1, first + cells + 1).reshape(array.elements, -1)
            self.origins.append(array)
        else:
            self.poison.pop(array, None)

    def origin(self, code: int) -> tuple[Array, int]:
        """Return the local array and the element of a code of `poison`."""
        place = (code - 1) // self.where.groups
        for array in self.origins:
            if place < array.elements:
                return array, place
            place -= array.elements
        raise AssertionError(f"{code} is no code")

    def cells(self, does: str, array: Array, index: Lanes, active: Mask) -> Values:
        """Return the cell of each thread's element in the memory of all owners; those of inactive threads are undefined."""
        place = np.zeros((), np.int64)
        for axis, (i, n) in enumerate(zip(index, array.extents, strict=True)):
            bad = self.outside(i, n, active)
            if bad is not None:
                at, thread = self.first_named(bad)
                self.report.outside_axis(does, array, [int(self.all(j)[at]) for j in index], axis, thread)
            place = place * n + i
        if array.space == "constant":
            return self.all(place)
        owners = self.count if array.space == "private" else self.where.groups
        return np.asarray(place * owners + self.owner(array))

    def wide(self, stmt: Wide, index: Lanes, element: Values | None, left: Values | None, active: Mask) -> None:
        """Access all elements of a wide type at once, whatever remains: GPU text has no other access."""
        field, offset, does = stmt.field, self.all(index[0]), "reads" if stmt.loads else "writes"
        _, count = self.width(stmt)
        bad = active & self.unaligned(field, offset, count)
        if bad.any():
            at, thread = self.first_named(bad)
            self.report.misaligned(does, field, int(offset[at]), count, thread)
        self.check(does, field, offset, active)
        self.check(does, field, offset + (count * stmt.parts - 1), active)
        super().wide(stmt, index, element, None, active)

    def atomic(self, stmt: Atomic, index: Lanes, element: Values | None, args: Lanes, active: Mask) -> Values:
        memory = stmt.memory
        if isinstance(memory, FieldParam):
            self.check("changes", memory, index[0], active)
            cells, history = self.all(index[0]), self.outputs.get(memory)
        else:
            cells, history = self.cells("changes", memory, index, active), self.histories.get(memory)
        if history is not None:
            now = self.access(memory, cells, active)
            if isinstance(memory, FieldParam):
                self.report_unwritten(history, memory, now)
            elif (bad := self.poison[memory].reshape(-1)[now.cell] > 0).any():
                at = int(np.argmax(bad))
                self.report.unwritten(memory, self.element_of(memory, now.cell[at]), self.named(now.thread[at]))
            self.report_race(history.update(now), memory)
        return super().atomic(stmt, index, element, args, active)
