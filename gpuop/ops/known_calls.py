"""Functions of fields and numbers that were called before with operands of the same types: which kernel they apply is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuop.bounded import BoundedCache
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.gpu_operator import results_of
from gpuop.dsl.operators.operator import MOST_KEPT
from gpuop.dsl.recorder.precisions import chosen
from gpuop.dsl.recorder.record import recording
from gpuop.errors import here
from gpuop.host_span import HostSpan
from gpuop.ir.kernel import Launchable
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf, Node, Result


@dataclass(frozen=True, slots=True)
class _Known:
    """What a call applies, to which of its operands."""

    kernel: Launchable
    identity: str
    operands: tuple[int, ...]
    kind: FieldType


_known: BoundedCache[Any, _Known] = BoundedCache(MOST_KEPT)


def known_or(name: str, operands: Sequence[Any], make: Callable[..., Field]) -> Field:
    """What `make(name, *operands)` gives, which depends on the types of fields and on the values of numbers alone."""
    with HostSpan("record"):
        key = _key(name, operands)
        if key is None:
            return make(name, *operands)
        found: _Known | None = _known.get(key)
        if found is None:
            result = make(name, *operands)
            _remember(key, operands, result)
            return result
        inputs = tuple(operands[n].node for n in found.operands)
        return results_of(found.kernel, found.identity, inputs, here(), (found.kind,))[0]


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
            parts += type(operand), repr(operand)  # of zeros with their signs
        else:
            return None
    return tuple(parts)


def _remember(key: Any, operands: Sequence[Any], result: Field) -> None:
    """Note a call that is one kernel of these operands."""
    nodes = [operand.node if isinstance(operand, Field) else None for operand in operands]
    made = result.node
    if not isinstance(made, Result) or made in nodes or len(made.call.kernel.outputs) > 1:
        return
    if all(node in nodes for node in made.call.inputs):
        taken = tuple(nodes.index(node) for node in made.call.inputs)
        _known[key] = _Known(made.call.kernel, made.call.identity, taken, result.type)
