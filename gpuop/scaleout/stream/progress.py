"""The progress line of a stream."""

from __future__ import annotations

import sys
import time

OFTEN, SELDOM = 0.2, 10.0  # seconds between lines: on a terminal, where they are overwritten, and elsewhere


class Progress:
    """A line on stderr with the finished and total windows, and the remaining time.

    Args:
        name: the name of the pipeline.
        plan: a description of the chunks, shown first.
        visible: False prints nothing.
    """

    def __init__(self, name: str, plan: str, visible: bool) -> None:
        self.name, self.visible = name, visible
        self.terminal = sys.stderr.isatty()
        self.done = self.before = self.total = 0
        self.begun = self.last = time.monotonic()
        if visible:
            sys.stderr.write(f"{name}: {plan}\n")

    def begin(self, total: int, before: int) -> None:
        """Begin with this number of windows, of which some are done already."""
        self.total, self.done, self.before = total, before, before
        if self.visible and before:
            sys.stderr.write(f"{self.name}: {before} of {total} windows were done before\n")

    def step(self) -> None:
        """Count a finished window."""
        self.done += 1
        now = time.monotonic()
        if self.visible and now - self.last > (OFTEN if self.terminal else SELDOM):
            self.last = now
            self._say(now)

    def _say(self, now: float) -> None:
        new = self.done - self.before
        left = (now - self.begun) / new * (self.total - self.done) if new else float("nan")
        line = f"{self.name}: {self.done} of {self.total} windows, {left:.0f} s left"
        sys.stderr.write(f"\r{line}   " if self.terminal else f"{line}\n")
        sys.stderr.flush()

    def end(self) -> None:
        if self.visible:
            seconds = time.monotonic() - self.begun
            before = f", {self.before} of them before," if self.before else ""
            line = f"{self.name}: {self.done} of {self.total} windows{before} in {seconds:.1f} s"
            sys.stderr.write(f"\r{line}   \n" if self.terminal else f"{line}\n")
