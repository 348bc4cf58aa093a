"""Binomial checkpointing: the states of an iteration from last to first, few of them in memory (Griewank and Walther).

With c checkpoints and every iteration run at most r times, `binomial(c + r, c)` iterations can be reversed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import comb

from gpuop.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Action:
    """Some iterations on from a checkpoint, which has a number; number 0 is the first state.

    Attributes:
        target: the checkpoint that keeps the state; None: the state is the next one wanted, and is kept no longer.
    """

    source: int
    iterations: int
    target: int | None


def actions(times: int, checkpoints: int) -> Iterator[Action]:
    """Return the actions after which the states before the iterations times − 1, times − 2 … 0 have been at hand, in this order.

    Args:
        checkpoints: the most states in memory besides the one at hand, the first state among them; 1 or more.
    """
    waiting = [
        (0, times, checkpoints)
    ]  # a checkpoint, the iterations after it, and the checkpoints for these, it included
    while waiting:
        source, length, left = waiting.pop()
        if length == 1:
            yield Action(source, 0, None)
            continue
        ahead = _ahead(length, left)
        waiting.append((source, ahead, left))
        if length - ahead == 1:
            yield Action(source, ahead, None)
        else:
            yield Action(source, ahead, checkpoints - left + 1)
            waiting.append((checkpoints - left + 1, length - ahead, left - 1))


def _ahead(length: int, checkpoints: int) -> int:
    """The iterations from a checkpoint to the next one."""
    runs = 1
    while comb(checkpoints + runs, checkpoints) < length:
        runs += 1
    return min(comb(checkpoints + runs - 1, checkpoints), length - comb(checkpoints + runs - 2, checkpoints - 1))


@lru_cache(maxsize=256)
def recomputed(times: int, checkpoints: int) -> int:
    """Return the number of iterations that the actions run."""
    return sum(action.iterations for action in actions(times, checkpoints))
