"""Prefetch and write-behind: reads, computation and writes overlap, each in order and a few windows apart."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

Task = TypeVar("Task")
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
