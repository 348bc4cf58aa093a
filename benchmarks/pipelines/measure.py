"""One pipeline measured: contestants made, compared, and run in turns."""

from __future__ import annotations

import gc
import random
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Any

import numpy as np

from .contestant import Contestant, Maker, lines_of
from .copies import copy_of
from .gpuop_itself import AS_IT_IS, UNFUSED
from .pipeline import Array, Pipeline, as_tuple
from .report import kind_of

MADE_IN = 60.0  # seconds, the most for a contestant to compile and to run once
TURN = 0.03  # seconds that a turn lasts at least, if that takes no more than MOST runs
MOST = 50
SMALL = {2: (240, 336), 3: (24, 32, 48)}


class TooLong(Exception):
    """A contestant took more than its time."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Interrupt what takes longer, as soon as it returns to Python."""

    def late(*_: object) -> None:
        raise TooLong(f"not ready in {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Measured:
    """The measurements of the contestants of a pipeline.

    Attributes:
        found: what is known of each.
        left_out: who could not take part, and why.
    """

    def __init__(self, pipeline: Pipeline, shape: tuple[int, ...], seconds: float) -> None:
        self.pipeline, self.shape = pipeline, shape
        self.began = time.monotonic()
        self.deadline, self.made_by = self.began + seconds, self.began + 0.7 * seconds
        self.arrays = pipeline.inputs(shape)
        self.found: dict[str, dict[str, Any]] = {}
        self.left_out: dict[str, str] = {}
        self.made: dict[str, Contestant] = {}
        self.expected: tuple[Array, ...] = ()

    def admit(self, name: str, maker: Maker) -> None:
        """Have a contestant made, if there is time, and take it if it computes what the first one did."""
        allowed = MADE_IN if kind_of(name) == "gpuop" else min(MADE_IN, self.made_by - time.monotonic())
        if allowed <= 0:
            self.left_out[name] = "no time is left to prepare it"
            return
        try:
            with within(allowed):
                began = time.perf_counter()
                contestant = maker(self.arrays)
                first = time.perf_counter() - began
            results = contestant.results()
            self.expected = self.expected or results
            wrong, bits = self.pipeline.differs(results, self.expected, contestant.crop)
        except Exception as error:  # noqa: BLE001 - whatever a peer raises
            self.left_out[name] = message_of(error)
            return
        if wrong or (contestant.bits and not bits):
            self.left_out[name] = f"wrong: {wrong or 'other bits than the unfused operators'}"
            return
        self.made[name] = contestant
        lines, kernels = lines_of(contestant.code), contestant.kernels
        self.found[name] = {"first": first, "lines": lines, "kernels": kernels, "bits": bits}
        self.found[name] |= {"allocates": contestant.allocates}

    def compete(self, backend: Any, rounds: int) -> dict[str, Any]:
        """Run all of them in turns, beside copies, and forget them."""
        given = sum(a.nbytes for a in self.arrays)
        moved = given + sum(a.nbytes for a in self.expected)
        contestants = {"copy": copy_of(moved, backend), "copy of the input": copy_of(2 * given, backend), **self.made}
        times = in_turns(contestants, rounds, self.deadline, self.left_out)
        for name, taken in times.items():
            self.found.setdefault(name, {}).update(summary(taken))
        self.found = {name: known for name, known in self.found.items() if "ms" in known}
        self.made.clear()
        return {"shape": self.shape, "bytes": moved, "contestants": self.found, "left_out": self.left_out}


def measure(
    pipeline: Pipeline, shape: tuple[int, ...], makers: Mapping[str, Maker], backend: Any, rounds: int, seconds: float
) -> dict[str, Any]:
    """Times, and what else is known, of every contestant, after at most about so many seconds."""
    measured = Measured(pipeline, shape, seconds)
    for name in sorted(makers, key=lambda name: name != UNFUSED):  # which the others are compared with
        measured.admit(name, makers[name])
        release_unused()
    result = measured.compete(backend, rounds)
    release_unused()
    return result


def message_of(error: Exception) -> str:
    return (f"{type(error).__name__}: {error}".splitlines() or [""])[0][:200]


def release_unused() -> None:
    """Give back what libraries keep of a GPU's memory for themselves."""
    gc.collect()
    if "torch" in sys.modules and sys.modules["torch"].cuda.is_available():
        sys.modules["torch"].cuda.empty_cache()
    if "cupy" in sys.modules:
        sys.modules["cupy"].get_default_memory_pool().free_all_blocks()


def check(pipeline: Pipeline, maker: Maker) -> str:
    """The difference of a contestant from NumPy on small arrays, or nothing."""
    arrays = pipeline.inputs(SMALL[len(pipeline.shapes["cpu"])])
    return pipeline.differs(maker(arrays).results(), as_tuple(pipeline.expected(*arrays)))[0]


def in_turns(
    contestants: Mapping[str, Contestant], rounds: int, deadline: float, left_out: dict[str, str]
) -> dict[str, list[float]]:
    """Milliseconds of a run, in each round; the order is another one each time. Slow ones run in fewer rounds."""
    order, chance = list(contestants), random.Random(0)
    taken: dict[str, list[float]] = {name: [] for name in order}
    runs: dict[str, tuple[int, float]] = {}
    for turn in range(rounds):
        chance.shuffle(order)
        for name in [n for n in order if n not in left_out]:
            try:
                times, once = runs.get(name) or runs.setdefault(name, repeats(contestants[name]))
                slow = once > 1.0 and once > 5 * runs.get(AS_IT_IS, (0, once))[1] and turn >= 2
                if not taken[name] or not (slow or time.monotonic() > deadline):
                    taken[name].append(1e3 * timed(contestants[name], times))
            except Exception as error:  # noqa: BLE001 - out of memory, mostly
                left_out[name] = message_of(error)
    return {name: each for name, each in taken.items() if each}


def timed(contestant: Contestant, times: int) -> float:
    """Seconds of a run, after one that brings its own data into the caches, and the clock up."""
    contestant.run(1)
    began = time.perf_counter()
    contestant.run(times)
    return (time.perf_counter() - began) / times


def repeats(contestant: Contestant) -> tuple[int, float]:
    """The number of runs of a turn, and the seconds of one."""
    contestant.run(1)
    began = time.perf_counter()
    contestant.run(1)
    once = time.perf_counter() - began
    return max(1, min(MOST, int(TURN / max(once, 1e-9)))), once


def summary(taken: list[float]) -> dict[str, Any]:
    low, high = np.percentile(taken, [25, 75])
    return {"ms": median(taken), "spread": float(high - low), "least": min(taken), "rounds": len(taken)}
