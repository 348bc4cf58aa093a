"""Side effects of Python code while tracing: reads of Field values, and warnings."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gpuop.ir.values import Node

_local = threading.local()


def values_seen(node: Node | None = None) -> None:
    """Count a read of Field values, and show the value that is read to those that watch."""
    _local.count = looks() + 1
    if node is not None:
        for watcher in getattr(_local, "watchers", ()):
            watcher(node)


@contextmanager
def reads_watched(watcher: Callable[[Node], None]) -> Iterator[None]:
    """Call a function with each value that this thread reads, which it may refuse."""
    before = getattr(_local, "watchers", ())
    _local.watchers = (*before, watcher)
    try:
        yield
    finally:
        _local.watchers = before


def looks() -> int:
    """Number of reads of Field values in this thread."""
    return getattr(_local, "count", 0)


def warned() -> None:
    """Count a warning: a call that warned is traced again, so that it warns again."""
    _local.warnings = warnings() + 1


def warnings() -> int:
    """Number of warnings in this thread."""
    return getattr(_local, "warnings", 0)
