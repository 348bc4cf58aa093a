"""Trials of all kinds, to be run in part by tests and in full by `benchmarks/interrupts.py`; each gives what is torn."""

from __future__ import annotations

import _weakrefset
import random
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import gpuop as gp

from .bytecodes import Places
from .cases import Interrupted, Trial
from .drivers import failing

ACTIONS = ("step", "reset", "save", "load", "read")


class Result:
    """The number of interrupts, and the torn values."""

    def __init__(self) -> None:
        self.interrupts, self.torn = 0, list[str]()

    def add(self, what: str, faults: list[str]) -> bool:
        self.interrupts += 1
        self.torn += [f"{what}: {'; '.join(faults)}"] * bool(faults)
        return not faults

    def __str__(self) -> str:
        return "\n".join([f"{self.interrupts} interrupts, {len(self.torn)} torn", *self.torn[:5]])


@contextmanager
def trials(name: str, device: str) -> Iterator[Trials]:
    with tempfile.TemporaryDirectory() as folder:
        yield Trials(name, device, folder)


class Trials:
    """Trials of one graph, which is made anew when something is torn."""

    def __init__(self, name: str, device: str, folder: str) -> None:
        self.name, self.device, self.folder, self.result = name, device, folder, Result()
        self.renew()

    def renew(self) -> None:
        self.trial = Trial(self.name, self.device, self.folder)
        for _ in range(3):
            assert not self.trial.expected(self.trial.step)

    def check(self, what: str, *may: object) -> None:
        trial = self.trial
        self.count(what, trial.problems(*may) or trial.goes_on())  # type: ignore[arg-type]

    def count(self, what: str, faults: list[str]) -> None:
        if not self.result.add(f"{self.name} on {self.device}, {what}", faults):
            self.renew()

    def everywhere(self, action: str, most: int, first: bool = False) -> None:
        """Interrupt an action at every place of its bytecode, or at that many of them; or when the graph is new."""
        places = Places()
        places.run(self._prepared(action, first)[0])
        self.trial.problems(*self.last)
        for n in range(1, places.count + 1, max(1, places.count // most)):
            do = self._prepared(action, first)[0]
            places = Places(n)
            if not places.run(do):
                self.trial.problems(*self.last)
            elif action == "step" and n % 3 < 2 and not first:
                then = ("load", "reset")[n % 3]
                result = self.trial.at_once(getattr(self.trial, then), *self.last[1:])
                self.count(f"{then} after {action} at {places.where}", result)
            else:
                self.check(f"{action} at {places.where}", *self.last)

    def _prepared(self, action: str, first: bool) -> tuple[object, ...]:
        if first:
            self.trial = Trial(self.name, self.device, self.folder)
        method = getattr(self.trial, action)
        do, then = method()
        self.last = (method, self.trial.now, then)
        return do, then

    def randomly(self, times: int, seed: int = 0) -> None:
        """Interrupt steps at random moments, by a signal."""
        rng = random.Random(seed)
        before = signal.signal(signal.SIGALRM, _interrupt)
        try:
            while self.result.interrupts < times:
                action = rng.choice(["step"] * 9 + ["reset", "read"])
                do, _ = self._prepared(action, False)
                if _interrupted(do, rng.expovariate(1 / 0.0003)):
                    self.check(action, *self.last)
                else:
                    self.trial.problems(*self.last)
        finally:
            signal.signal(signal.SIGALRM, before)

    def failures(self, action: str, most: int = 10**9) -> None:
        """Have every call of the driver fail in turn, with every error."""
        with failing(self.device) as (calls, errors):
            self.renew()
            for error in errors:
                calls.error, n = error, 1
                while n:
                    do, _ = self._prepared(action, False)
                    calls.count, calls.fail_at = 0, n
                    try:
                        do()  # type: ignore[operator]
                        n = 0
                    except gp.GpuopError:
                        n += 1
                    finally:
                        calls.fail_at = -1
                    if n:
                        self.check(f"{action}, call {n - 1} fails with {error}", *self.last)
                    else:
                        self.trial.problems(*self.last)
        self.renew()


_armed: list[bool] = []  # while an alarm is wanted: one that another thread's handler brings late is not


def _interrupt(_: int, frame: FrameType | None) -> None:
    if _armed and frame is not None and frame.f_code.co_filename == _weakrefset.__file__:
        signal.setitimer(signal.ITIMER_REAL, 1e-5)  # Python drops what a weak reference's callback raises
    elif _armed:
        raise Interrupted


def _interrupted(do: object, after: float) -> bool:
    try:
        _armed.append(True)
        signal.setitimer(signal.ITIMER_REAL, max(after, 1e-6))
        do()  # type: ignore[operator]
        _armed.clear()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupted:
        return True
    finally:
        _armed.clear()
    return False
