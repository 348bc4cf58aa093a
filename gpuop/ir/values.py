"""Values: an immutable graph of leaves and kernel calls, built lazily by operator calls and evaluated by upper layers.

Names of values are for people: plans and caches ignore them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import field
from itertools import count
from typing import Any, ClassVar, NoReturn

from numpy.typing import NDArray

from gpuop.base.errors import Loc, SemanticError
from gpuop.base.records import dataclass
from gpuop.ir.kernel import Launchable
from gpuop.ir.layout import Layout
from gpuop.ir.types import FieldType

AGAIN = " again"  # ends the identity of calls that compute values again, which are not made one with those that did so first
node_numbers = count()  # numbers nodes in the order of their creation


class LeafSource(ABC):
    """Source of the value of a leaf: the interface of every kind.

    Attributes:
        role: role of the leaf in a graph: "constant", "parameter" or "sensor".
        version: number of times that the value was set; None if it cannot be set.
        borrowed: True in memory of another library, which may change.
        layout: layout in that memory; None: that of gpuop memory.
        dynamic: True if kernels must not know the extents of its grid, because other extents will follow.
    """

    role: ClassVar[str] = "constant"
    layout: Layout | None = None

    @property
    def version(self) -> int | None:
        return None

    @property
    def borrowed(self) -> bool:
        return False

    @property
    def dynamic(self) -> bool:
        return False

    def buffer(self, device: Any) -> Any | None:
        """Device buffer with the value; None if there is none yet.

        Raises:
            DeviceError: the value is in memory that this device cannot use.
        """
        return None

    @abstractmethod
    def read(self) -> tuple[NDArray[Any], int | None]:
        """The value as an array of `array_shape`, and its version.

        Raises:
            SemanticError: there is no value.
        """


@dataclass(frozen=True, eq=False)
class NoValues(LeafSource):
    """The source of a leaf that has a type and no value; `is_open`: nor extents, but those that stand for any."""

    is_open: bool = False

    @property
    def dynamic(self) -> bool:
        return self.is_open

    def read(self) -> NoReturn:
        raise SemanticError(
            "this Field has a type but no values: it was made for `source`, or stands for what `iterate` passes on, or for an "
            "entry of what `gp.vmap` maps over; leave out `.numpy()`, `float()` and `int()`, and compute with fields, as "
            "`u.max() < 1`"
        )


NO_VALUES, NO_EXTENTS = NoValues(), NoValues(is_open=True)


@dataclass(frozen=True, eq=False)
class Leaf:
    """A value that comes from outside: an array, a parameter, a state, a placeholder. `source` says which."""

    type: FieldType
    source: LeafSource = NO_VALUES
    by_value: bool = False
    name: str = ""
    number: int = field(default_factory=node_numbers.__next__, repr=False)

    @property
    def dynamic(self) -> bool:
        return self.source.dynamic


@dataclass(frozen=True, eq=False)
class Call:
    """A kernel applied to values; `identity` is equal for equal kernels.

    Attributes:
        dynamic: whether no kernel is to know the extents of its results, as those of an input change.
    """

    kernel: Launchable
    identity: str
    inputs: tuple[Node, ...]
    loc: Loc | None = field(default=None)
    names: tuple[str, ...] = ()  # names of the results
    dynamic: bool = field(init=False)

    def __post_init__(self) -> None:
        dynamic = self.kernel.has_dynamic
        for node in self.inputs:  # a generator would be more calls, for each operator of eager code
            dynamic = dynamic or node.dynamic
        object.__setattr__(self, "dynamic", dynamic)


@dataclass(frozen=True)
class Result:
    """One output of a call; results are equal if call and index are."""

    call: Call
    index: int

    @property
    def type(self) -> FieldType:
        return self.call.kernel.outputs[self.index].param.type

    @property
    def name(self) -> str:
        names = self.call.names
        return names[self.index] if names else ""

    @property
    def dynamic(self) -> bool:
        return self.call.dynamic


Node = Leaf | Result


def label(node: Node, name: str) -> None:
    """Give a value a name."""
    if isinstance(node, Leaf):
        object.__setattr__(node, "name", name)
        return
    names = list(node.call.names or [""] * len(node.call.kernel.outputs))
    names[node.index] = name
    object.__setattr__(node.call, "names", tuple(names))


def calls(nodes: Iterable[Node], stop: Any = ()) -> list[Call]:
    """The calls that the wanted values need, producers first. Values in `stop` count as given."""
    order: dict[Call, None] = {}
    stack: list[tuple[Call, bool]] = [(n.call, False) for n in nodes if type(n) is Result and n not in stop]
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
            if type(n) is Result and n not in stop and n.call not in order
        )
    return list(order)
