"""The next values of states: results, or leaves whose buffers the states can take."""

from __future__ import annotations

from collections.abc import Mapping

from gpuop.dsl.fields.field import Field
from gpuop.fusion.buffer_rotation import copying
from gpuop.ir.values import Leaf, Node, Result
from gpuop.ops.elementwise.algebra import copied


def next_values(states: Mapping[Leaf, Field]) -> list[Node]:
    """The next value of each state; a copy of a leaf whose buffer the state cannot take."""
    nodes = {state: value.node for state, value in states.items()}
    copies = copying(nodes, {state: state.type.nbytes for state in states})
    return [
        value.node if _is_taken(value.node) and state not in copies else copied(value).node
        for state, value in states.items()
    ]


def _is_taken(node: Node) -> bool:
    """Return whether gpuop owns the buffer of a value, and nothing changes there within a step or after it."""
    return isinstance(node, Result) or not (node.by_value or node.source.borrowed or node.source.role == "parameter")
