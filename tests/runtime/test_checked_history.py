"""The bookkeeping of races, against all pairs of accesses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from gpuop.runtime.reference.races import LocalHistory, MemoryAccess
from tests.nightly import seeds

THREADS, GROUPS, ELEMENTS = 8, 2, 2


@dataclass
class Done:
    """An access by one thread."""

    kind: str
    cell: int
    thread: int
    group: int
    phase: int
    value: int
    own: bool = False  # a read of what the thread itself wrote in this phase


def conflict(a: Done, b: Done) -> bool:
    """Return whether a pair is a race, by definition."""
    if a.cell != b.cell or a.thread == b.thread or (a.group == b.group and a.phase != b.phase):
        return False
    kinds = {a.kind, b.kind}
    if kinds == {"write"}:
        return a.value != b.value
    return ("write" in kinds and not (a.own or b.own)) or kinds == {"read", "update"}


def statement(rng: Any, phases: Any) -> list[Done]:
    """Some threads read, write or update elements of their groups' memory."""
    kind, share = str(rng.choice(["read", "write", "update"], p=[0.4, 0.5, 0.1])), rng.choice([0.1, 0.8])
    done = []
    for thread in np.flatnonzero(rng.random(THREADS) < share):
        group = int(thread) * GROUPS // THREADS
        cell = int(rng.integers(ELEMENTS)) * GROUPS + group
        done.append(Done(kind, cell, int(thread), group, int(phases[group]), int(rng.integers(60) == 0)))
    return done


def found(history: LocalHistory, done: list[Done], memory: Any) -> bool:
    cell, thread, group, phase, value = (
        np.array([getattr(d, name) for d in done], np.int64) for name in ("cell", "thread", "group", "phase", "value")
    )
    access = MemoryAccess(cell, thread, group, phase, 0)
    if done[0].kind == "read":
        return history.read(access) is not None
    if done[0].kind == "update":
        return history.update(access) is not None
    before = memory[cell]
    memory[cell] = value
    return history.write(access, before != value, memory[cell] != value) is not None


@pytest.mark.parametrize("seed", seeds(0, 300))
def test_as_by_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    history, memory = LocalHistory(ELEMENTS * GROUPS, THREADS), np.zeros(ELEMENTS * GROUPS, int)
    phases, log = np.zeros(GROUPS, int), list[Done]()
    for _ in range(40):
        passing = rng.random(GROUPS) < 0.4
        phases[passing] += 1
        history.pass_barrier(passing)
        done = statement(rng, phases)
        if not done:
            continue
        wrote = {(d.thread, d.cell, d.phase) for d in log if d.kind == "write"}
        for d in done:
            d.own = d.kind == "read" and (d.thread, d.cell, d.phase) in wrote
        expected = any(conflict(a, b) for i, a in enumerate(done) for b in (*log, *done[:i]))
        assert found(history, done, memory) == expected
        if expected:
            return
        log += done
