"""One pipeline measured: contestants made, compared, and run in turns."""

from __future__ import annotations

import gc
import random
import signal
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


def measure(
    pipeline: Pipeline, shape: tuple[int, ...], makers: Mapping[str, Maker], backend: Any, rounds: int, seconds: float
) -> dict[str, Any]:
    """Times, and what else is known, of every contestant; `left_out` says who could not take part, and why."""
    deadline = time.monotonic() + seconds
    arrays = pipeline.inputs(shape)
    left_out: dict[str, str] = {}
    found: dict[str, dict[str, Any]] = {}
    made: dict[str, Contestant] = {}
    expected: tuple[Array, ...] = ()
    for name in (UNFUSED, *(n for n in makers if n != UNFUSED)):
        if name not in makers:
            continue
        allowed = min(MADE_IN, deadline - time.monotonic())
        try:
            with within(max(allowed, 1.0)):
                began = time.perf_counter()
                contestant = makers[name](arrays)
                first = time.perf_counter() - began
            results = contestant.results()
            expected = expected or results
            differs = _differs(pipeline, contestant, results, expected)
        except Exception as wrong:  # noqa: BLE001 - whatever a peer raises
            left_out[name] = f"{type(wrong).__name__}: {wrong}".splitlines()[0][:200]
            continue
        finally:
            gc.collect()
        if differs:
            left_out[name] = f"wrong: {differs}"
            continue
        made[name] = contestant
        found[name] = {
            "first": first,
            "lines": lines_of(contestant.code),
            "kernels": contestant.kernels,
            "bits": _same_inside(contestant.crop, results, expected),
        }
    moved = sum(a.nbytes for a in (*arrays, *expected))
    copies = {"copy": copy_of(moved, backend), "copy of the input": copy_of(2 * sum(a.nbytes for a in arrays), backend)}
    times = in_turns({**copies, **made}, rounds, deadline)
    for name, taken in times.items():
        found.setdefault(name, {}).update(summary(taken))
    return {"shape": shape, "bytes": moved, "contestants": found, "left_out": left_out}


def _differs(
    pipeline: Pipeline, contestant: Contestant, results: tuple[Array, ...], expected: tuple[Array, ...]
) -> str:
    if contestant.bits and not all(map(same_bits, results, expected)):
        return "other bits than the unfused operators"
    return pipeline.differs(results, expected, contestant.crop)


def same_bits(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


def _same_inside(crop: int, results: tuple[Array, ...], expected: tuple[Array, ...]) -> bool:
    inner = slice(crop, -crop or None)
    return all(
        same_bits(a[inner, ..., inner] if crop else a, b[inner, ..., inner] if crop else b)
        for a, b in zip(results, expected, strict=True)
    )


def check(pipeline: Pipeline, maker: Maker) -> str:
    """What a contestant computes of small arrays, beside NumPy: how it differs, or nothing."""
    arrays = pipeline.inputs(SMALL[len(pipeline.shapes["cpu"])])
    return pipeline.differs(maker(arrays).results(), as_tuple(pipeline.expected(*arrays)))


def in_turns(contestants: Mapping[str, Contestant], rounds: int, deadline: float) -> dict[str, list[float]]:
    """Milliseconds of a run, in each round; the order is another one each time. Slow ones run in fewer rounds."""
    order = list(contestants)
    chance = random.Random(0)
    taken: dict[str, list[float]] = {name: [] for name in order}
    runs = {name: repeats(contestants[name]) for name in order}
    fastest = min((t for n, (_, t) in runs.items() if n == AS_IT_IS), default=0.0)
    for turn in range(rounds):
        chance.shuffle(order)
        for name in order:
            times, once = runs[name]
            late = time.monotonic() > deadline or (once > 1.0 and once > 5 * fastest and turn >= 2)
            if taken[name] and late:
                continue
            contestants[name].run(1)  # its own data in the caches, and the clock up
            began = time.perf_counter()
            contestants[name].run(times)
            taken[name].append(1e3 * (time.perf_counter() - began) / times)
    return taken


def repeats(contestant: Contestant) -> tuple[int, float]:
    """How many runs make a turn, and the seconds of one."""
    contestant.run(1)
    began = time.perf_counter()
    contestant.run(1)
    once = time.perf_counter() - began
    return max(1, min(MOST, int(TURN / max(once, 1e-9)))), once


def summary(taken: list[float]) -> dict[str, Any]:
    low, high = np.percentile(taken, [25, 75])
    return {"ms": median(taken), "spread": float(high - low), "least": min(taken), "rounds": len(taken)}
