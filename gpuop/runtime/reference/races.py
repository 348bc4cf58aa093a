"""Detection of data races: accesses to shared memory without a happens-before order, by barrier epochs.

Only a barrier orders the threads of a work-group, and nothing orders threads of different ones. So an access is a thread, its
group, and its phase, the number of barriers the group has passed: two accesses of different threads are ordered if the groups
are the same and the phases differ. The last epochs of each cell are stored, as in FastTrack (Flanagan and Freund, PLDI 2009);
two threads of each suffice to find one that is not the current thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.base.records import dataclass
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Array, FieldParam
from gpuop.runtime.reference.array_memory import ArrayMemory
from gpuop.runtime.reference.positions import Positions

Ints = NDArray[Any]
Mask = NDArray[np.bool_]


@dataclass
class MemoryAccess:
    """The accesses of the threads that run a statement: a cell for each, with the thread and its phase."""

    cell: Ints
    thread: Ints
    group: Ints
    phase: Ints
    line: int

    def only(self, keep: Mask) -> MemoryAccess:
        if keep.all():
            return self
        return MemoryAccess(self.cell[keep], self.thread[keep], self.group[keep], self.phase[keep], self.line)


@dataclass(frozen=True)
class Race:
    """A thread that accesses a cell, and another one that accessed it, at a line, without order."""

    cell: int
    thread: int
    does: str
    other: int
    did: str
    line: int
    one_group: bool


class _Last:
    """The first two threads that accessed each cell since its group's last barrier."""

    def __init__(self, cells: int) -> None:
        self.thread = np.full((2, cells), -1, np.int64)
        self.group, self.phase, self.line = (np.zeros((2, cells), np.int32) for _ in range(3))
        self.any = False  # whether there is an access that no barrier separates from later ones

    def others(self, access: MemoryAccess) -> Ints:
        """Return which of the two is another thread without order to the access: 0, 1, or -1 for neither."""
        result = np.full(len(access.cell), -1)
        for k in (1, 0):
            thread, cell = self.thread[k, access.cell], access.cell
            together = (self.group[k, cell] != access.group) | (self.phase[k, cell] == access.phase)
            result[(thread >= 0) & (thread != access.thread) & together] = k
        return result

    def holds(self, access: MemoryAccess) -> Mask:
        """Return whether a thread is itself one of the two, in this phase."""
        same = (self.thread[:, access.cell] == access.thread) & (self.phase[:, access.cell] == access.phase)
        return np.asarray(same.any(0))

    def note(self, access: MemoryAccess) -> MemoryAccess:
        """Record accesses; return those of threads that are none of the two."""
        self.any = True
        for k in (0, 1):
            thread, cell = self.thread[k, access.cell], access.cell
            over = (self.group[k, cell] == access.group) & (self.phase[k, cell] != access.phase)
            new = access.only(over | (thread < 0))
            order = slice(None, None, -1)  # the first of several threads stays
            self.thread[k, new.cell[order]] = new.thread[order]
            self.group[k, new.cell[order]] = new.group[order]
            self.phase[k, new.cell[order]] = new.phase[order]
            self.line[k, new.cell] = access.line
            access = access.only(self.thread[k, cell] != access.thread)
            if not access.cell.size:
                break
        return access


class History:
    """The readers, writers and updaters of the cells of some memory.

    Attributes:
        written: the cells that have a value.
        complete: whether all are known to have one.
    """

    def __init__(self, cells: int, initial: bool = False) -> None:
        self.cells = cells
        self.last: dict[str, _Last] = {}
        self.written = np.full(cells, initial, np.bool_)
        self.complete = initial
        self.later: list[MemoryAccess] = []  # reads that are not noted yet: most are never looked for

    def unwritten(self, cell: Ints) -> Mask | None:
        """Return the threads with an unwritten cell; None if there are none."""
        if self.complete:
            return None
        there = self.written.take(cell)
        if there.all():
            self.complete = bool(self.written.all())
            return None
        return np.asarray(~there)

    def pass_barrier(self, groups: Mask) -> None:
        """Record that all threads of some groups, which alone access the memory, have waited for one another."""
        if groups.all():
            self.later.clear()
            for last in self.last.values():
                last.any = False

    def read(self, access: MemoryAccess) -> Race | None:
        """Record reads. A thread may read its own write of this phase: other writers of the cell wrote the same value."""
        writes = self.last.get("writes")
        if writes is not None and writes.any:
            access = access.only(~writes.holds(access))
        race = self._race(access, "reads", "writes") or self._race(access, "reads", "updates")
        self.later.append(access)
        return race

    def update(self, access: MemoryAccess) -> Race | None:
        """Record atomic updates."""
        self.written[access.cell] = True
        race = self._race(access, "updates", "writes") or self._race(access, "updates", "reads")
        self._note("updates", access)
        return race

    def write(self, access: MemoryAccess, changed: Mask, lost: Mask) -> Race | None:
        """Record writes. Equal values are no race: it does not matter which of them is the last.

        Args:
            changed: whether a thread's value differs from the cell's value before.
            lost: whether it differs from the cell's value after all writes.
        """
        self.written[access.cell] = True
        race = self._race(access, "writes", "reads") or self._race(access, "writes", "updates")
        race = race or self._race(access, "writes", "writes", changed) or _between(access, lost)
        self._note("writes", access)
        return race

    def put(self, access: MemoryAccess, lanes: Sequence[Ints], values: Sequence[Ints]) -> Race | None:
        """Write a value for each access to the lanes of some memory, and record the writes."""
        before = [lane[access.cell] for lane in lanes]
        for lane, value in zip(lanes, values, strict=True):
            lane[access.cell] = value
        after = [lane[access.cell] for lane in lanes]
        return self.write(access, _differ(before, values), _differ(after, values))

    def _note(self, what: str, access: MemoryAccess) -> MemoryAccess:
        if what not in self.last:
            self.last[what] = _Last(self.cells)
        return self.last[what].note(access)

    def _race(self, access: MemoryAccess, does: str, did: str, among: Mask | None = None) -> Race | None:
        if did == "reads":
            for read in self.later:
                self._note("reads", read)
            self.later.clear()
        last = self.last.get(did)
        if last is None or not last.any:
            return None
        others = last.others(access)
        threads = np.flatnonzero(others >= 0 if among is None else (others >= 0) & among)
        if not threads.size:
            return None
        at = threads[np.argmin(access.thread[threads])]
        cell, k = int(access.cell[at]), others[at]
        one_group = bool(last.group[k, cell] == access.group[at])
        thread, other = int(access.thread[at]), int(last.thread[k, cell])
        return Race(cell, thread, does, other, did, int(last.line[k, cell]), one_group)


class UnorderedOutput(History):
    """An output that threads touch in any order: none of it is a race."""

    def read(self, access: MemoryAccess) -> None:
        return None

    def update(self, access: MemoryAccess) -> None:
        self.written[access.cell] = True

    def write(self, access: MemoryAccess, changed: Mask, lost: Mask) -> None:
        self.written[access.cell] = True


class LocalHistory(History):
    """The accesses to cells of an array in local memory: an element in each group; `cell % groups` is the group's number."""

    def __init__(self, cells: int, threads: int, initial: bool = False) -> None:
        super().__init__(cells, initial)
        self.threads = threads
        self.more = np.zeros(0, np.int64)  # (cell, thread) of the third and later writers of an equal value

    def read(self, access: MemoryAccess) -> Race | None:
        if self.more.size:
            access = access.only(~np.isin(self._pairs(access), self.more))
        return super().read(access)

    def _note(self, what: str, access: MemoryAccess) -> MemoryAccess:
        third = super()._note(what, access)
        if what == "writes" and third.cell.size:
            self.more = np.union1d(self.more, self._pairs(third))
        return third

    def pass_barrier(self, groups: Mask) -> None:
        super().pass_barrier(groups)
        self.more = self.more[~groups[self.more // self.threads % len(groups)]]

    def _pairs(self, access: MemoryAccess) -> Ints:
        return np.asarray(access.cell * self.threads + access.thread)


class OrderedMemory(ArrayMemory):
    """Memory that records which threads access it, and the barriers between them.

    Args:
        number: the number of each thread in the launch.
        outputs: the histories of fields that the launch writes.
    """

    def __init__(
        self,
        where: Positions,
        fields: dict[FieldParam, Ints],
        kernel: Kernel,
        lowered: bool,
        number: Ints,
        outputs: dict[FieldParam, History],
    ) -> None:
        super().__init__(where, fields, kernel, lowered)
        self.number, self.outputs = number, outputs
        self.phases = {fence: np.zeros(where.groups, np.int64) for fence in ("local", "global")}
        self.histories: dict[Array, LocalHistory] = {}

    def access(self, memory: Array | FieldParam, cells: Ints, keep: Mask, line: int = 0) -> MemoryAccess:
        member = self.where.member[keep]
        phase = self.phases["local" if isinstance(memory, Array) else "global"][member]
        return MemoryAccess(cells[keep].astype(np.int64), self.number[keep], self.where.first + member, phase, line)

    def element_of(self, memory: Array | FieldParam, cell: int) -> int:
        """Return the number of an element in its field or array, from that of its cell in the memory of all groups."""
        return int(cell) // (self.where.groups if isinstance(memory, Array) else 1)

    def first(self, mask: Mask) -> int:
        """Return the first of some threads, in the order of their numbers."""
        threads = np.flatnonzero(mask)
        return int(threads[np.argmin(self.number[threads])])

    def torn(self, member: Ints, active: Mask) -> tuple[int, int] | None:
        """Return the first thread that reaches a statement in a group that does so in part, and the first that does not."""
        if active.all():
            return None
        came, all_ = (np.bincount(member[mask], minlength=int(member.max()) + 1) for mask in (active, active | True))
        torn = (came > 0) & (came < all_)
        group = member == np.argmax(torn)
        return (self.first(group & active), self.first(group & ~active)) if torn.any() else None

    def pass_barrier(self, fence: str, active: Mask) -> None:
        """Record a barrier; a local fence orders local memory only."""
        came = np.bincount(self.where.member[active], minlength=self.where.groups) > 0
        for shared in {"local", fence}:
            self.phases[shared][came] += 1
        for history in self.histories.values():
            history.pass_barrier(came)


def _differ(a: Sequence[Ints], b: Sequence[Ints]) -> Mask:
    """Return the threads whose values differ in any lane; NaN equals NaN."""
    pairs = zip(a, b, strict=True)
    return np.asarray(np.logical_or.reduce([(x != y) & ((x == x) | (y == y)) for x, y in pairs]))


def _between(access: MemoryAccess, lost: Mask) -> Race | None:
    """Return two threads of one statement that write different values."""
    if not lost.any():
        return None
    at = np.flatnonzero(lost)[0]
    last = np.flatnonzero(access.cell == access.cell[at])[-1]
    one_group = bool(access.group[at] == access.group[last])
    thread, other = int(access.thread[at]), int(access.thread[last])
    return Race(int(access.cell[at]), thread, "writes", other, "writes", access.line, one_group)
