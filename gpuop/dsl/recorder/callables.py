"""Checks of user functions: their signatures must fit the coming call."""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import Any

from gpuop.base.errors import SemanticError, described


def unbound(function: Any, count: int) -> str:
    """What Python would say of a call with so many arguments; empty if nothing, as of builtins that tell no signature."""
    with suppress(ValueError):
        try:
            inspect.signature(function).bind(*[None] * count)
        except TypeError as wrong:
            return str(wrong)
    return ""


def check_two_values(wanted: str, function: Any) -> None:
    """Refuse what is no function of two values; the message begins with what is `wanted`."""
    if not callable(function) or isinstance(function, type):
        raise SemanticError(f"{wanted}, not {described(function)}")
    if wrong := unbound(function, 2):
        raise SemanticError(f"{wanted}, not {described(function)}: {wrong}")
