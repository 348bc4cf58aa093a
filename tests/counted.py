"""Calls of functions that a call makes: of Python and C, as `sys.setprofile` sees them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def counted(call: Callable[[], object]) -> int:
    """The calls of functions that a call makes once it is prepared, without those of collections of garbage."""
    for _ in range(3):
        call()
    gc.collect()
    gc.disable()
    try:
        return min(_counted_once(call) for _ in range(3))
    finally:
        gc.enable()


def _counted_once(call: Callable[[], object]) -> int:
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count - 2  # `call` itself, and the end of counting
