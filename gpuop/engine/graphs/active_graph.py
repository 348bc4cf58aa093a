"""The graphs that each thread is defining, and the states, sensors and actuators that join them."""

from __future__ import annotations

import threading
from typing import Any, Protocol

from gpuop.base.errors import SemanticError
from gpuop.dsl.fields.field import Field

_building = threading.local()


class Definition(Protocol):
    """A graph inside of its `with`."""

    def set_next(self, state: Field, value: Any) -> None: ...

    def join(self, part: object) -> None: ...


def open_graphs() -> list[Definition]:
    """The graphs whose `with` this thread is in."""
    if not hasattr(_building, "stack"):
        _building.stack = []
    stack: list[Definition] = _building.stack
    return stack


def set_next(state: Field, value: Any) -> None:
    """`state.next = value`."""
    graphs = open_graphs()
    if not graphs:
        raise SemanticError("`.next` is set inside `with gp.ComputeGraph() as graph:`")
    graphs[-1].set_next(state, value)


def join(part: object) -> None:
    """Add a sensor or an actuator to the graph that is being defined."""
    graphs = open_graphs()
    if not graphs:
        raise SemanticError(
            f"a{'' if isinstance(part, Field) else 'n'} {type(part).__name__} belongs to a graph; "
            "make it inside `with gp.ComputeGraph() as graph:`"
        )
    graphs[-1].join(part)
