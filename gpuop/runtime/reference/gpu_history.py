"""The access history of shared GPU memory, for races and reads of unwritten elements.

Only a barrier orders the threads of a work-group, and nothing orders threads of different ones. A touch is a number: the thread
and the phase of its group, the number of barriers it has passed. The last touches of each element are stored; arrays of local
memory discard those before the last barrier by comparing numbers, as these grow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Values = NDArray[Any]


@dataclass
class Touch:
    """The threads of one memory access.

    Attributes:
        cell: the element of each thread.
        thread: its number in the launch, which determines its group: `size` is the number of threads of a group.
        phase: the phase of its group.
    """

    cell: Ints
    thread: Ints
    phase: Ints
    size: int


@dataclass(frozen=True)
class Conflict:
    """The first of the threads that race, by its position in `Touch`, its access, and the access of the other thread."""

    at: int
    does: str
    other: int
    did: str


class Touches:
    """The last thread that accessed each element in one way, and another one of the same phase."""

    def __init__(self, cells: int) -> None:
        self.thread = np.full(cells, -1, np.int64)
        self.phase = np.zeros(cells, np.int64)
        self.second = np.full(cells, -1, np.int64)  # of the same phase
        self.any = False  # whether a touch is not separated by a barrier from later ones

    def note(self, now: Touch) -> None:
        self.any = True
        before, then = self.thread.take(now.cell), self.phase.take(now.cell)
        over = (before < 0) | ((then != now.phase) & (before // now.size == now.thread // now.size))
        self.second[now.cell[over]] = -1
        self.thread[now.cell], self.phase[now.cell] = now.thread, now.phase
        last = self.thread.take(now.cell)
        among = last != now.thread  # of several at once the last stays
        self.second[now.cell[among]] = now.thread[among]
        others = ~over & (before != last)
        self.second[now.cell[others]] = before[others]

    def others(self, now: Touch) -> Ints | None:
        """Return for each thread another one that no barrier separates from it, or -1; None if all have -1."""
        if not self.any:
            return None
        first, second = self.thread.take(now.cell), self.second.take(now.cell)
        threads = np.where(first != now.thread, first, second)
        apart = (self.phase.take(now.cell) != now.phase) & (threads // now.size == now.thread // now.size)
        threads[apart] = -1
        return threads if (threads >= 0).any() else None

    def holds(self, now: Touch) -> Mask:
        """Return whether a thread is itself one of the two, in this phase."""
        own = (self.thread.take(now.cell) == now.thread) | (self.second.take(now.cell) == now.thread)
        return np.asarray(own & (self.phase.take(now.cell) == now.phase))


class MemoryHistory:
    """The readers, writers and updaters of the elements of some memory.

    Attributes:
        written: the elements that have a value.
    """

    def __init__(self, cells: int, initial: bool) -> None:
        self.written = np.full(cells, initial, np.bool_)
        self.complete = initial
        self.reads, self.writes, self.updates = Touches(cells), Touches(cells), Touches(cells)
        self.later: list[Touch] = []  # reads that are not checked yet

    def unwritten(self, cell: Ints) -> Mask | None:
        """Return the threads with an unwritten element; None if there are none."""
        if self.complete:
            return None
        there = self.written.take(cell)
        if there.all():
            self.complete = bool(self.written.all())
            return None
        return np.asarray(~there)

    def pass_barrier(self) -> None:
        """Record that all threads that accessed the memory have waited for one another."""
        self.later.clear()
        for touches in (self.reads, self.writes, self.updates):
            touches.any = False

    def readers(self, now: Touch) -> Ints | None:
        for touch in self.later:
            self.reads.note(touch)
        self.later.clear()
        return self.reads.others(now)

    def read(self, now: Touch) -> Conflict | None:
        """Record reads. A thread may read its own write of this phase: other writers of the element wrote the same value."""
        others = self.writes.others(now)
        conflict = None
        if others is not None:
            conflict = _first(now, np.where(self.writes.holds(now), -1, others), "reads", "writes")
        conflict = conflict or _first(now, self.updates.others(now), "reads", "changes")
        self.later.append(now)
        return conflict

    def update(self, now: Touch) -> Conflict | None:
        conflict = _first(now, self.writes.others(now), "changes", "writes")
        conflict = conflict or _first(now, self.readers(now), "changes", "reads")
        self.updates.note(now)
        self.written[now.cell] = True
        return conflict

    def write(self, now: Touch, changed: Mask, lost: Mask) -> Conflict | None:
        """Record writes. Equal values are no race: it does not matter which of them is the last.

        Args:
            changed: whether a thread's value differs from the element's value before.
            lost: whether it differs from the element's value after all writes.
        """
        conflict = _first(now, self.readers(now), "writes", "reads")
        conflict = conflict or _first(now, self.updates.others(now), "writes", "changes")
        others = self.writes.others(now)
        if others is not None:
            conflict = conflict or _first(now, np.where(changed, others, -1), "writes", "writes")
        if conflict is None and lost.any():
            at = int(np.argmax(lost))
            last = np.flatnonzero(now.cell == now.cell[at])[-1]
            conflict = Conflict(at, "writes", int(now.thread[last]), "writes")
        self.writes.note(now)
        self.written[now.cell] = True
        return conflict


class UnorderedHistory(MemoryHistory):
    """Of memory that threads touch in any order: none of it is a race."""

    def read(self, now: Touch) -> None:
        return None

    def update(self, now: Touch) -> None:
        self.written[now.cell] = True

    def write(self, now: Touch, changed: Mask, lost: Mask) -> None:
        self.written[now.cell] = True


def _first(now: Touch, others: Ints | None, does: str, did: str) -> Conflict | None:
    if others is None:
        return None
    threads = np.flatnonzero(others >= 0)
    return Conflict(int(threads[0]), does, int(others[threads[0]]), did) if threads.size else None
