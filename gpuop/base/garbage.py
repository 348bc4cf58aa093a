"""Collections of garbage, while much is made that stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[bool]:
    """Collect no garbage: of the time of imports and of planning collections take a sixth, and find nearly nothing.

    Yields:
        Whether garbage is collected otherwise.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield collects
    finally:
        if collects:
            gc.enable()
