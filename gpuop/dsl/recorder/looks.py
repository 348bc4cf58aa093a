"""Whether Python code has looked at values of Fields: what it records meanwhile may depend on them."""

from __future__ import annotations

import threading

_local = threading.local()


def values_seen() -> None:
    """Note that it does."""
    _local.count = looks() + 1


def looks() -> int:
    """How often it has, in this thread."""
    return getattr(_local, "count", 0)
