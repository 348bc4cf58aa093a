"""A line that says how far a stream is."""

from __future__ import annotations

import sys
import time

OFTEN, SELDOM = 0.2, 10.0  # seconds from one line to the next: on a terminal, where it is overwritten, and elsewhere


class Progress:
    """Says on stderr what is done, of how much, and when it will end.

    Args:
        name: of what runs.
        plan: how it is cut, which is said first.
        shown: False says nothing.
    """

    def __init__(self, name: str, plan: str, shown: bool) -> None:
        self.name, self.shown = name, shown
        self.terminal = sys.stderr.isatty()
        self.done = self.before = self.total = 0
        self.begun = self.said = time.monotonic()
        if shown:
            sys.stderr.write(f"{name}: {plan}\n")

    def begin(self, total: int, before: int) -> None:
        """So many windows there are, of which some were done before."""
        self.total, self.done, self.before = total, before, before
        if self.shown and before:
            sys.stderr.write(f"{self.name}: {before} of {total} windows were done before\n")

    def step(self) -> None:
        """A window is done."""
        self.done += 1
        now = time.monotonic()
        if self.shown and now - self.said > (OFTEN if self.terminal else SELDOM):
            self.said = now
            self._say(now)

    def _say(self, now: float) -> None:
        new = self.done - self.before
        left = (now - self.begun) / new * (self.total - self.done) if new else float("nan")
        line = f"{self.name}: {self.done} of {self.total} windows, {left:.0f} s left"
        sys.stderr.write(f"\r{line}   " if self.terminal else f"{line}\n")
        sys.stderr.flush()

    def end(self) -> None:
        if self.shown:
            seconds = time.monotonic() - self.begun
            before = f", {self.before} of them before," if self.before else ""
            line = f"{self.name}: {self.done} of {self.total} windows{before} in {seconds:.1f} s"
            sys.stderr.write(f"\r{line}   \n" if self.terminal else f"{line}\n")
