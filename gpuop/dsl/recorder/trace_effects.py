"""Side effects of Python code while tracing: reads of Field values, and warnings."""

from __future__ import annotations

import threading

_local = threading.local()


def values_seen() -> None:
    """Note that it does."""
    _local.count = looks() + 1


def looks() -> int:
    """How often it has, in this thread."""
    return getattr(_local, "count", 0)


def warned() -> None:
    """Note that it warns: it is to do so again when it is called again."""
    _local.warnings = warnings() + 1


def warnings() -> int:
    """How often it has, in this thread."""
    return getattr(_local, "warnings", 0)
