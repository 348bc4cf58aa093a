"""Functions of fields and numbers that were called before with operands of the same types: which kernel they apply is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuop.base.errors import here
from gpuop.base.lru import BoundedCache
from gpuop.base.trace import HostSpan
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.names import names_given
from gpuop.dsl.operators.operator import MOST_KEPT
from gpuop.dsl.recorder.precisions import chosen
from gpuop.dsl.recorder.recorder import recording
from gpuop.ir.kernel import Launchable
from gpuop.ir.types import FieldType
from gpuop.ir.values import Call, Leaf, Node, Result, calls
from gpuop.ops.reduce.reductions import reductions

MOST_CALLS = 32  # that one graph is known by


@dataclass(frozen=True, slots=True)
class KnownGraph:
    """What a function makes of operands, whatever their values.

    Attributes:
        calls: kernels with their identities, and the numbers of what each takes: of operands, then of what calls give.
        made: the number of the result.
        kind: its type.
    """

    calls: tuple[tuple[Launchable, str, tuple[int, ...]], ...]
    made: int
    kind: FieldType

    def of(self, operands: Sequence[Node | None]) -> Field:
        """The result of these operands."""
        values: list[Any] = list(operands)
        loc = here()
        for kernel, identity, taken in self.calls:
            call = Call(kernel, identity, tuple(values[n] for n in taken), loc, names_given(len(kernel.outputs)))
            values += (Result(call, k) for k in range(len(kernel.outputs)))
        return Field.of(values[self.made], kind=self.kind)


def known_graph(result: Field, operands: Sequence[Node | None]) -> KnownGraph | None:
    """What was made of these operands; None where it is one of them, is made of more, or is known by more than its calls."""
    values = list(operands)
    made: list[tuple[Launchable, str, tuple[int, ...]]] = []
    if not isinstance(result.node, Result) or result.node in values:
        return None
    for call in calls([result.node], operands):
        if call in reductions or len(made) == MOST_CALLS or not all(node in values for node in call.inputs):
            return None
        made.append((call.kernel, call.identity, tuple(map(values.index, call.inputs))))
        values += (Result(call, k) for k in range(len(call.kernel.outputs)))
    return KnownGraph(tuple(made), values.index(result.node), result.type)


_known: BoundedCache[Any, KnownGraph] = BoundedCache(MOST_KEPT)


def known_or(name: str, operands: Sequence[Any], make: Callable[..., Field]) -> Field:
    """What `make(name, *operands)` gives, which depends on the types of fields and on the values of numbers alone."""
    with HostSpan("record"):
        key = _key(name, operands)
        if key is None:
            return make(name, *operands)
        nodes = [operand.node if isinstance(operand, Field) else None for operand in operands]
        found: KnownGraph | None = _known.get(key)
        if found is not None:
            return found.of(nodes)
        result = make(name, *operands)
        graph = known_graph(result, nodes)
        if graph is not None:
            _known[key] = graph
        return result


def _key(name: str, operands: Sequence[Any]) -> Any:
    """What the result depends on; None where that is not known, and in kernels, which note what is asked of fields."""
    if recording() is not None:
        return None
    parts: list[Any] = [name, chosen()]
    nodes: list[Node] = []
    for operand in operands:
        if isinstance(operand, Field):
            node, kind = operand.node, operand.type
            nodes.append(node)
            parts += kind, kind.names, isinstance(node, Leaf) and node.by_value, nodes.index(node)
        elif isinstance(operand, (int, float, np.number)):
            parts += type(operand), operand if type(operand) is int else repr(operand)  # of zeros with their signs
        else:
            return None
    return tuple(parts)
