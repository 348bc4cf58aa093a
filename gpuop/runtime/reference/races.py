"""Detection of data races: accesses to shared memory without a happens-before order, by barrier epochs.

Only a barrier orders the threads of a work-group, and nothing orders threads of different ones. So an access is a thread, its
group, and its phase, the number of barriers the group has passed: two accesses of different threads are ordered if the groups
are the same and the phases differ. The last epochs of each cell are stored, as in FastTrack (Flanagan and Freund, PLDI 2009);
two threads of each suffice to find one that is not the current thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

    def note(self, access: MemoryAccess) -> None:
        for k in (0, 1):
            cell = access.cell
            over = (self.group[k, cell] == access.group) & (self.phase[k, cell] != access.phase)
            free = over | (self.thread[k, cell] < 0)
            if k == 1:
                free &= self.thread[0, cell] != access.thread
            new = access.only(free)
            order = slice(None, None, -1)  # the first of several threads stays
            self.thread[k, new.cell[order]] = new.thread[order]
            self.group[k, new.cell[order]] = new.group[order]
            self.phase[k, new.cell[order]] = new.phase[order]
            self.line[k, new.cell] = access.line


class History:
    """The readers, writers and updaters of the cells of an output.

    Attributes:
        written: the cells that any thread has written.
    """

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self.last: dict[str, _Last] = {}
        self.written = np.zeros(cells, np.bool_)

    def read(self, access: MemoryAccess) -> Race | None:
        """Record reads. A thread may read its own write of this phase: other writers of the cell wrote the same value."""
        if "writes" in self.last:
            access = access.only(~self.last["writes"].holds(access))
        race = self._race(access, "reads", "writes") or self._race(access, "reads", "updates")
        self._note("reads", access)
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

    def _note(self, what: str, access: MemoryAccess) -> None:
        if what not in self.last:
            self.last[what] = _Last(self.cells)
        self.last[what].note(access)

    def _race(self, access: MemoryAccess, does: str, did: str, among: Mask | None = None) -> Race | None:
        last = self.last.get(did)
        if last is None:
            return None
        others = last.others(access)
        threads = np.flatnonzero(others >= 0 if among is None else (others >= 0) & among)
        if not threads.size:
            return None
        at = threads[np.argmin(access.thread[threads])]
        cell, k = int(access.cell[at]), others[at]
        one_group = bool(last.group[k, cell] == access.group[at])
        return Race(
            cell, int(access.thread[at]), does, int(last.thread[k, cell]), did, int(last.line[k, cell]), one_group
        )


class UnorderedOutput(History):
    """Of an output that threads touch in any order: none of it is a race."""

    def read(self, access: MemoryAccess) -> None:
        return None

    def update(self, access: MemoryAccess) -> None:
        self.written[access.cell] = True

    def write(self, access: MemoryAccess, changed: Mask, lost: Mask) -> None:
        self.written[access.cell] = True


class LocalHistory(History):
    """The accesses to cells of an array in local memory: an element in each group; `cell % groups` is the group's number."""

    def __init__(self, cells: int, threads: int) -> None:
        super().__init__(cells)
        self.threads = threads
        self.more = np.zeros(0, np.int64)  # (cell, thread) of the third and later writers of an equal value

    def read(self, access: MemoryAccess) -> Race | None:
        return super().read(access.only(~np.isin(self._pairs(access), self.more)))

    def write(self, access: MemoryAccess, changed: Mask, lost: Mask) -> Race | None:
        race = super().write(access, changed, lost)
        third = access.only(~self.last["writes"].holds(access))
        self.more = np.union1d(self.more, self._pairs(third))
        return race

    def pass_barrier(self, groups: Mask) -> None:
        self.more = self.more[~groups[self.more // self.threads % len(groups)]]

    def _pairs(self, access: MemoryAccess) -> Ints:
        return np.asarray(access.cell * self.threads + access.thread)


def _between(access: MemoryAccess, lost: Mask) -> Race | None:
    """Return two threads of one statement that write different values."""
    if not lost.any():
        return None
    at = np.flatnonzero(lost)[0]
    last = np.flatnonzero(access.cell == access.cell[at])[-1]
    one_group = bool(access.group[at] == access.group[last])
    return Race(
        int(access.cell[at]),
        int(access.thread[at]),
        "writes",
        int(access.thread[last]),
        "writes",
        access.line,
        one_group,
    )
