"""A smaller program that fails in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .algebra import as_input
from .program import Env, Failure, Program, Step, failure
from .values import Rejected

TRIALS = 150


def shrunk(program: Program, device: str, failed: Failure, trials: int = TRIALS) -> tuple[Program, Failure]:
    """Take steps away, replace them by their values and by simpler ones, while the program fails as it did."""
    again = True
    while again and trials > 0:
        again = False
        for candidate in _candidates(program):
            if trials <= 0:
                break
            if not _defined(candidate):
                continue
            trials -= 1
            result = failure(candidate, device)
            if result is not None and result.what == failed.what:
                program, failed, again = candidate, result, True
                break
    return program, failed


def _defined(program: Program) -> bool:
    try:
        return bool(program.expected())
    except (Rejected, KeyError, ValueError, IndexError):
        return False


def _candidates(program: Program) -> Iterator[Program]:
    steps = program.steps
    for size in (len(steps) // 2, len(steps) // 4, 1):
        for k in range(len(steps) - size, -1, -size) if size else ():
            yield replace(program, steps=steps[:k] + steps[k + size :])
    for k, step in enumerate(steps):
        cut = _cut(steps[: k + 1], step)
        if cut:
            yield replace(program, steps=steps[:k] + cut + steps[k + 1 :])
        for smaller in step.smaller():
            yield replace(program, steps=steps[:k] + smaller + steps[k + 1 :])


def _cut(before: tuple[Step, ...], step: Step) -> tuple[Step, ...]:
    """Inputs of the values that a step makes."""
    env = Env()
    try:
        with np.errstate(all="ignore"):
            for s in before:
                s.run(env)
    except (Rejected, KeyError):
        return ()
    return tuple(as_input(name, value) for name, value in step.alternatives(env).items() if not value.ends)
