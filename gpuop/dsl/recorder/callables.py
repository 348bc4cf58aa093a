"""Checks of user functions: their signatures must fit the coming call."""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import Any

from gpuop.base.errors import SemanticError, described


def unbound(function: Any, count: int) -> str:
    """Python message about a call with so many arguments; empty if it fits, or the function has no signature."""
    with suppress(ValueError):
        try:
            inspect.signature(function).bind(*[None] * count)
        except TypeError as wrong:
            return str(wrong)
    return ""


def check_two_values(expected: str, function: Any) -> None:
    """Refuse anything but a function of two values; the message begins with `expected`."""
    if not callable(function) or isinstance(function, type):
        raise SemanticError(f"{expected}, not {described(function)}")
    if wrong := unbound(function, 2):
        raise SemanticError(f"{expected}, not {described(function)}: {wrong}")
