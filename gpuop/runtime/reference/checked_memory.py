"""Checked memory: indices outside, reads of unwritten local memory, and data races."""

from __future__ import annotations

import numpy as np

from gpuop.ir.nodes import GRID_AXES, Array, FieldParam, Read
from gpuop.runtime.reference.array_memory import ArrayMemory, Lanes, Mask, Values
from gpuop.runtime.reference.diagnostics import Diagnostics
from gpuop.runtime.reference.positions import Positions
from gpuop.runtime.reference.races import History, LocalHistory, MemoryAccess, Race

Outputs = dict[FieldParam, History]


class CheckedMemory(ArrayMemory):
    """The memory of some threads, which raises a SemanticError for the first thread that misuses it.

    Args:
        outputs: the outputs of the launch that several threads may access at one place.
    """

    def __init__(self, where: Positions, fields: dict[FieldParam, Values], outputs: Outputs, say: Diagnostics) -> None:
        super().__init__(where, fields, say.kernel, lowered=False)
        self.outputs, self.say = outputs, say
        self.threads = say.kernel.launched.threads
        self.number = where.number
        self.phases = {fence: np.zeros(where.groups, np.int64) for fence in ("local", "global")}
        self.histories: dict[Array, LocalHistory] = {}

    def first(self, mask: Mask) -> int:
        """Return the first of some threads, in the order of the grid."""
        threads = np.flatnonzero(mask)
        return int(threads[np.argmin(self.number[threads])])

    def outside(self, index: Values, n: int, active: Mask) -> int | None:
        """Return the first thread whose index is not in 0 … n - 1, if there is one."""
        index = self.all(np.asarray(index))
        bad = active & ((index < 0) | (index >= n))
        return self.first(bad) if bad.any() else None

    # --- fields -------------------------------------------------------------------------------------------------

    def read(self, read: Read, point: Lanes | None, element: Values | None, active: Mask) -> Lanes:
        field, grid = read.field, read.field.type.field_shape
        if point is not None and read.border == "unchecked":
            for axis, index, n in zip(GRID_AXES[3 - len(grid) :], point, grid, strict=True):
                at = self.outside(index, n, active)
                if at is not None:
                    self.say.outside_field(int(self.number[at]), field, axis, int(self.all(index)[at]), n)
        if element is not None:
            at = self.outside(element, field.type.planes, active)
            if at is not None:
                self.say.outside_tensor(int(self.number[at]), field, int(self.all(element)[at]))
        return super().read(read, point, element, active)

    def write(
        self, field: FieldParam, point: Lanes | None, element: Values | None, values: Lanes, active: Mask
    ) -> None:
        history = self.outputs.get(field)
        if history is None:
            super().write(field, point, element, values, active)
            return
        for k, value in enumerate(values):
            cells, keep = self.flat(field, point, np.asarray(k) if element is None else element, active)
            access = self.access(cells, keep, "global")
            self.put(field, history, access, [self.fields[field].reshape(-1)], [self.all(value)[keep]])

    # --- arrays -------------------------------------------------------------------------------------------------

    def declare(self, array: Array) -> None:
        super().declare(array)
        if array.space == "local":
            self.histories[array] = LocalHistory(array.elements * self.where.groups, self.threads)

    def cells(self, array: Array, index: Lanes, active: Mask, does: str) -> Values:
        """Return the cell of each thread's element in the memory of all groups; a read of local memory needs a written one."""
        for axis, (i, n) in enumerate(zip(index, array.extents, strict=True)):
            at = self.outside(i, n, active)
            if at is not None:
                where = [int(self.all(j)[at]) for j in index]
                self.say.outside_array(int(self.number[at]), does, array, where, axis)
        cells = self.place(array, index)[0] * self.where.groups + self.where.member
        if array in self.histories and does != "writes":
            bad = active & ~self.histories[array].written[cells]
            if bad.any():
                at = self.first(bad)
                self.say.unwritten(int(self.number[at]), does, array, int(cells[at]) // self.where.groups)
        return cells

    def load(self, memory: Array | FieldParam, index: Lanes, active: Mask) -> Lanes:
        assert isinstance(memory, Array)
        cells = self.cells(memory, index, active, "reads")
        if memory in self.histories:
            self.check(memory, self.histories[memory].read(self.access(cells, active, "local")))
        return super().load(memory, index, active)

    def store(self, memory: Array | FieldParam, index: Lanes, values: Lanes, active: Mask) -> None:
        assert isinstance(memory, Array)
        cells = self.cells(memory, index, active, "writes")
        if memory not in self.histories:
            super().store(memory, index, values, active)
            return
        lanes = [lane.reshape(-1) for lane in self.arrays[memory]]
        access = self.access(cells, active, "local")
        self.put(memory, self.histories[memory], access, lanes, [self.all(v)[active] for v in values])

    def atomic(
        self,
        op: str,
        memory: Array | FieldParam,
        index: Lanes,
        element: Values | None,
        args: Lanes,
        active: Mask,
        wanted: bool,
    ) -> Values:
        if isinstance(memory, FieldParam):
            cells, keep = self.flat(memory, index, element, active)
            history, access = self.outputs[memory], self.access(cells, keep, "global")
            self.check(memory, history.read(access) if op == "read" else history.update(access))
        else:
            cells = self.cells(memory, index, active, "updates")
            if memory in self.histories:
                self.check(memory, self.histories[memory].update(self.access(cells, active, "local")))
        return super().atomic(op, memory, index, element, args, active, wanted)

    # --- order --------------------------------------------------------------------------------------------------

    def barrier(self, fence: str, active: Mask) -> None:
        """Record a barrier; a local fence orders local memory only."""
        member, groups = self.where.member, self.where.groups
        came = np.bincount(member[active], minlength=groups)
        torn = (came > 0) & (came < np.bincount(member, minlength=groups))
        if torn.any():
            group = member == np.argmax(torn)
            here, missing = self.first(group & active), self.first(group & ~active)
            self.say.torn(fence, int(self.number[here]), int(self.number[missing]))
        for shared in {"local", fence}:
            self.phases[shared][came > 0] += 1
        for history in self.histories.values():
            history.pass_barrier(came > 0)

    def access(self, cells: Values, keep: Mask, fence: str) -> MemoryAccess:
        member = self.where.member[keep]
        phase = self.phases[fence][member]
        return MemoryAccess(cells[keep], self.number[keep], self.where.first + member, phase, self.say.line)

    def put(
        self, memory: Array | FieldParam, history: History, access: MemoryAccess, lanes: Lanes, values: Lanes
    ) -> None:
        """Write a value for each access, and check whether other threads write others."""
        before = [lane[access.cell] for lane in lanes]
        for lane, value in zip(lanes, values, strict=True):
            lane[access.cell] = value
        after = [lane[access.cell] for lane in lanes]
        self.check(memory, history.write(access, _differ(before, values), _differ(after, values)))

    def check(self, memory: Array | FieldParam, race: Race | None) -> None:
        if race is not None:
            groups = self.where.groups if isinstance(memory, Array) else 1
            self.say.race(race, memory, race.cell // groups)


def _differ(a: Lanes, b: Lanes) -> Mask:
    """Return the threads whose values differ in any lane; NaN equals NaN."""
    pairs = zip(a, b, strict=True)
    return np.asarray(np.logical_or.reduce([(x != y) & ((x == x) | (y == y)) for x, y in pairs]))
