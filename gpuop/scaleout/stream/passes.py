"""A pass of a stream: reads, computation and writes of windows overlap, each in order and a few apart; and its progress line."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

Task = TypeVar("Task")
OFTEN, SELDOM = 0.2, 10.0  # seconds between lines: on a terminal, where they are overwritten, and elsewhere
AHEAD = 2  # windows that are read ahead, and that wait to be written


def overlapped(
    tasks: Iterable[Task],
    read: Callable[[Task], Any],
    compute: Callable[[Task, Any], Any],
    write: Callable[[Task, Any], None],
) -> None:
    """Read, compute and write the window of each task, in order; the first error ends it.

    Only the calling thread computes: devices are chosen by threads.
    """
    from concurrent.futures import ThreadPoolExecutor

    left = iter(tasks)
    read_ahead: deque[tuple[Task, Future[Any]]] = deque()
    written: deque[Future[None]] = deque()
    reader, writer = (ThreadPoolExecutor(1, f"gpuop-stream-{name}") for name in ("read", "write"))

    def go_on(task: Task, arguments: Future[Any]) -> None:
        """Compute without a reference to the window afterwards: the next one is read into its memory."""
        written.append(writer.submit(write, task, compute(task, arguments.result())))

    try:
        while True:
            while len(read_ahead) < AHEAD and (task := next(left, None)) is not None:
                read_ahead.append((task, reader.submit(read, task)))
            if not read_ahead:
                break
            go_on(*read_ahead.popleft())
            while len(written) > AHEAD:
                written.popleft().result()
        for each in written:
            each.result()
    finally:
        reader.shutdown(wait=True, cancel_futures=True)
        writer.shutdown(wait=True)  # computed windows are written, whatever ends this


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
