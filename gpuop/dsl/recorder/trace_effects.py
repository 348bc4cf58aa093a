"""Side effects of Python code while tracing: reads of Field values, and warnings."""

from __future__ import annotations

import threading

_local = threading.local()


def values_seen() -> None:
    """Count a read of Field values."""
    _local.count = looks() + 1


def looks() -> int:
    """Number of reads of Field values in this thread."""
    return getattr(_local, "count", 0)


def warned() -> None:
    """Count a warning: a call that warned is traced again, so that it warns again."""
    _local.warnings = warnings() + 1


def warnings() -> int:
    """Number of warnings in this thread."""
    return getattr(_local, "warnings", 0)
