"""What fields and operators ask of the layers above them; `gpuop.evaluation` and its neighbours fill it in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

evaluate: Callable[..., Any]  # (*fields) -> NumPy arrays
source: Callable[..., str]  # (fields, target) -> generated text
show: Callable[..., str]  # (field) -> HTML
set_next: Callable[..., None]  # (field, field): `state.next = value`
join: Callable[..., None]  # (sensor or actuator): it belongs to the graph that is being defined
adopt: Callable[..., Any]  # (array of a device, how to make a field, copy, name) -> node
export: Callable[..., Any]  # (field) -> what has `__dlpack__`
keep: Callable[..., Any]  # (field) -> field, evaluated on its device
buffer: Callable[..., Any]  # (field) -> its buffer on the current device
own: Callable[..., Any]  # (node) -> a node whose memory is gpuop's
algebra: dict[str, Callable[..., Any]] = {}  # the operators of host algebra, by name
