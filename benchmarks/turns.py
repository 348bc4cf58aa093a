"""Common parts of measurements: actions timed in turns, since machines drift, and steps of graphs that compute everything."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

import gpuop as gp

Action = Callable[[], object]


def in_turns(
    actions: Mapping[str, Action],
    rounds: int,
    runs: int = 1,
    wait: Action = lambda: None,
    warm: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of a run of each action, in each round but the first ones.

    Args:
        runs: how often an action runs in a round.
        wait: for what an action has only enqueued, before and after its runs.
        warm: rounds that do not count.
        clock: `time.process_time` is that of all processors together.
    """
    taken: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds + warm):
        for name, action in actions.items():
            wait()
            start = clock()
            for _ in range(runs):
                action()
            wait()
            taken[name].append((clock() - start) / runs)
    return {name: each[warm:] for name, each in taken.items()}


def middle_half(seconds: list[float]) -> tuple[float, float]:
    """The median, and how far apart the ends of the middle half are, in milliseconds."""
    low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return 1e3 * middle, 1e3 * (high - low)


def step_of(graph: gp.ComputeGraph) -> Callable[[], None]:
    """Return a step that computes everything anew, and waits for its end."""
    graph.reset()
    bound = graph._live().bound
    for each in bound.buffer_sets:  # every launch runs at every step, in one sequence, as in a pipeline of new arrays
        launches = each.bind()
        own = [a for a, planned in zip(launches.launches, bound.plan.launches, strict=True) if not planned.over]
        launches.every_step = bound.backend.sequence(own)
    bound.occasional_due.clear()

    def run() -> None:
        graph.step()
        graph.synchronize()

    return run
