"""Who touched the memory that threads of a GPU share, so that races and reads of what nobody wrote are seen.

Only a barrier orders the threads of a work-group, and nothing those of different ones. A touch is a number that tells the thread
and how many barriers its group had passed, its phase. Of each element the last of them are kept; arrays of local memory forget
what is before the last barrier by comparing numbers, as these grow.
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
    """Threads that touch memory now.

    Attributes:
        cell: the element that each of them touches.
        thread: its number in the launch, which tells its group: groups have so many threads as `size`.
        phase: of its group.
    """

    cell: Ints
    thread: Ints
    phase: Ints
    size: int


@dataclass(frozen=True)
class Conflict:
    """The first of the threads that race, by its position in `Touch`, what it does, and what another one did."""

    at: int
    does: str
    other: int
    did: str


class Touches:
    """The last thread that did something to each element, and another one that did so in its phase."""

    def __init__(self, cells: int) -> None:
        self.thread = np.full(cells, -1, np.int64)
        self.phase = np.zeros(cells, np.int64)
        self.second = np.full(cells, -1, np.int64)  # of this phase too
        self.any = False  # whether there are any that no barrier separates from what comes

    def note(self, now: Touch) -> None:
        self.any = True
        before, then = self.thread.take(now.cell), self.phase.take(now.cell)
        over = (before < 0) | ((then != now.phase) & (before // now.size == now.thread // now.size))
        self.second[now.cell[over]] = -1
        self.thread[now.cell], self.phase[now.cell] = now.thread, now.phase
        last = self.thread.take(now.cell)
        among = last != now.thread  # several at once, of which the last stays
        self.second[now.cell[among]] = now.thread[among]
        others = ~over & (before != last)
        self.second[now.cell[others]] = before[others]

    def others(self, now: Touch) -> Ints | None:
        """For each thread another one that no barrier separates from it, or -1; None where all have -1."""
        if not self.any:
            return None
        first, second = self.thread.take(now.cell), self.second.take(now.cell)
        found = np.where(first != now.thread, first, second)
        apart = (self.phase.take(now.cell) != now.phase) & (found // now.size == now.thread // now.size)
        found[apart] = -1
        return found if (found >= 0).any() else None

    def holds(self, now: Touch) -> Mask:
        """Whether a thread is itself one of the two, in this phase."""
        own = (self.thread.take(now.cell) == now.thread) | (self.second.take(now.cell) == now.thread)
        return np.asarray(own & (self.phase.take(now.cell) == now.phase))


class MemoryHistory:
    """Who read, wrote and updated the elements of some memory.

    Attributes:
        written: the elements that hold something.
    """

    def __init__(self, cells: int, initial: bool) -> None:
        self.written = np.full(cells, initial, np.bool_)
        self.complete = initial
        self.reads, self.writes, self.updates = Touches(cells), Touches(cells), Touches(cells)
        self.later: list[Touch] = []  # reads that nobody has asked for yet

    def unwritten(self, cell: Ints) -> Mask | None:
        """The threads whose element nobody has written; None where there are none."""
        if self.complete:
            return None
        there = self.written.take(cell)
        if there.all():
            self.complete = bool(self.written.all())
            return None
        return np.asarray(~there)

    def pass_barrier(self) -> None:
        """All threads that have touched the memory have waited for one another."""
        self.later.clear()
        for touches in (self.reads, self.writes, self.updates):
            touches.any = False

    def readers(self, now: Touch) -> Ints | None:
        for touch in self.later:
            self.reads.note(touch)
        self.later.clear()
        return self.reads.others(now)

    def read(self, now: Touch) -> Conflict | None:
        """Threads read. What a thread has written in this phase it may read: if others have too, they wrote the same."""
        others = self.writes.others(now)
        found = None
        if others is not None:
            found = _first(now, np.where(self.writes.holds(now), -1, others), "reads", "writes")
        found = found or _first(now, self.updates.others(now), "reads", "changes")
        self.later.append(now)
        return found

    def update(self, now: Touch) -> Conflict | None:
        found = _first(now, self.writes.others(now), "changes", "writes")
        found = found or _first(now, self.readers(now), "changes", "reads")
        self.updates.note(now)
        self.written[now.cell] = True
        return found

    def write(self, now: Touch, changed: Mask, lost: Mask) -> Conflict | None:
        """Equal values are no race: it does not matter which of them is the last.

        Args:
            changed: where a thread's value is not what the element held before.
            lost: where it is not what the element holds now, after all of them.
        """
        found = _first(now, self.readers(now), "writes", "reads")
        found = found or _first(now, self.updates.others(now), "writes", "changes")
        others = self.writes.others(now)
        if others is not None:
            found = found or _first(now, np.where(changed, others, -1), "writes", "writes")
        if found is None and lost.any():
            at = int(np.argmax(lost))
            last = np.flatnonzero(now.cell == now.cell[at])[-1]
            found = Conflict(at, "writes", int(now.thread[last]), "writes")
        self.writes.note(now)
        self.written[now.cell] = True
        return found


def _first(now: Touch, others: Ints | None, does: str, did: str) -> Conflict | None:
    if others is None:
        return None
    found = np.flatnonzero(others >= 0)
    return Conflict(int(found[0]), does, int(others[found[0]]), did) if found.size else None
