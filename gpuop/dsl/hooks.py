"""What fields and operators ask of the layers above them; `gpuop.session` and its neighbours fill it in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

evaluate: Callable[..., Any]  # (*fields) -> NumPy arrays
source: Callable[..., str]  # (fields, target) -> generated text
set_next: Callable[..., None]  # (field, field): `state.next = value`
algebra: dict[str, Callable[..., Any]] = {}  # the operators of host algebra, by name
