"""A cache of library calls by operand types: which kernels a function applies to fields and numbers."""

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
from gpuop.dsl.operators.operator import MOST_CACHED
from gpuop.dsl.recorder.precisions import chosen
from gpuop.dsl.recorder.recorder import recording
from gpuop.ir.kernel import Launchable
from gpuop.ir.types import FieldType
from gpuop.ir.values import Call, Leaf, Node, Result, calls
from gpuop.ops.reduce.reductions import reductions

MOST_CALLS = 32  # calls of one cached graph


@dataclass(frozen=True, slots=True)
class CachedGraph:
    """The graph of a library function, whatever the values of its operands.

    Attributes:
        calls: kernels with their identities, and the value numbers of their inputs: operands first, then results of calls.
        made: the value number of the result.
        kind: the type of the result.
    """

    calls: tuple[tuple[Launchable, str, tuple[int, ...]], ...]
    made: int
    kind: FieldType

    def of(self, operands: Sequence[Node | None]) -> Field:
        """Return the result for these operands."""
        values: list[Any] = list(operands)
        loc = here()
        for kernel, identity, taken in self.calls:
            call = Call(kernel, identity, tuple(values[n] for n in taken), loc, names_given(len(kernel.outputs)))
            values += (Result(call, k) for k in range(len(kernel.outputs)))
        return Field.of(values[self.made], kind=self.kind)


def cached_graph(result: Field, operands: Sequence[Node | None]) -> CachedGraph | None:
    """Return the graph that a call has built; None if its result is an operand, or depends on more than operands and calls."""
    values = list(operands)
    made: list[tuple[Launchable, str, tuple[int, ...]]] = []
    if not isinstance(result.node, Result) or result.node in values:
        return None
    for call in calls([result.node], operands):
        if call in reductions or len(made) == MOST_CALLS or not all(node in values for node in call.inputs):
            return None
        made.append((call.kernel, call.identity, tuple(map(values.index, call.inputs))))
        values += (Result(call, k) for k in range(len(call.kernel.outputs)))
    return CachedGraph(tuple(made), values.index(result.node), result.type)


_graphs: BoundedCache[Any, CachedGraph] = BoundedCache(MOST_CACHED)


def cached_call(name: str, operands: Sequence[Any], make: Callable[..., Field]) -> Field:
    """Return `make(name, *operands)`, cached by the types of fields and the values of numbers."""
    with HostSpan("record"):
        key = _key(name, operands)
        if key is None:
            return make(name, *operands)
        nodes = [operand.node if isinstance(operand, Field) else None for operand in operands]
        found: CachedGraph | None = _graphs.get(key)
        if found is not None:
            return found.of(nodes)
        result = make(name, *operands)
        graph = cached_graph(result, nodes)
        if graph is not None:
            _graphs[key] = graph
        return result


def _key(name: str, operands: Sequence[Any]) -> Any:
    """Return the cache key; None if an operand has none, and in kernels, which observe reads of fields."""
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
            parts += type(operand), operand if type(operand) is int else repr(operand)  # repr() keeps the sign of zeros
        else:
            return None
    return tuple(parts)
