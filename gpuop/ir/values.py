"""What calling operators yields: an immutable graph of leaves and kernel calls, built lazily, evaluated elsewhere.

Values have names, for people: they are no part of what a value is, and plans and caches do not know them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from gpuop.errors import Loc
from gpuop.ir.kernel import Launchable
from gpuop.ir.types import FieldType

made = count()  # numbers what is made, in its order


@dataclass(frozen=True, eq=False)
class Leaf:
    """A value that comes from outside: an array, a parameter, a state, a placeholder. `source` says which."""

    type: FieldType
    source: Any
    by_value: bool = False
    name: str = ""
    number: int = field(default_factory=made.__next__, repr=False)


@dataclass(frozen=True, eq=False)
class Call:
    """A kernel applied to values; `identity` is equal for equal kernels."""

    kernel: Launchable
    identity: str
    inputs: tuple[Node, ...]
    loc: Loc | None = field(default=None)
    names: tuple[str, ...] = ()  # of its results


@dataclass(frozen=True)
class Result:
    """One output of a call; equal where call and index are."""

    call: Call
    index: int

    @property
    def type(self) -> FieldType:
        return self.call.kernel.outputs[self.index].param.type

    @property
    def name(self) -> str:
        names = self.call.names
        return names[self.index] if names else ""


Node = Leaf | Result


def label(node: Node, name: str) -> None:
    """Give a value a name."""
    if isinstance(node, Leaf):
        object.__setattr__(node, "name", name)
        return
    names = list(node.call.names or [""] * len(node.call.kernel.outputs))
    names[node.index] = name
    object.__setattr__(node.call, "names", tuple(names))


def calls(wanted: Iterable[Node], stop: Any = ()) -> list[Call]:
    """The calls that the wanted values need, producers first. Values in `stop` count as given."""
    order: dict[Call, None] = {}
    stack: list[tuple[Call, bool]] = [(n.call, False) for n in wanted if isinstance(n, Result) and n not in stop]
    stack.reverse()
    while stack:
        call, ready = stack.pop()
        if call in order:
            continue
        if ready:
            order[call] = None
            continue
        stack.append((call, True))
        stack.extend(
            (n.call, False)
            for n in reversed(call.inputs)
            if isinstance(n, Result) and n not in stop and n.call not in order
        )
    return list(order)
