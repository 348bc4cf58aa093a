"""What states take: results, or leaves whose buffers they can take."""

from __future__ import annotations

from collections.abc import Mapping

from gpuop.dsl.fields.field import Field
from gpuop.fusion.buffer_rotation import copying
from gpuop.ir.values import Leaf, Node, Result
from gpuop.ops.elementwise.algebra import copied


def next_values(states: Mapping[Leaf, Field]) -> list[Node]:
    """The next value of each state: of leaves a copy, where the state cannot have the leaf's buffer."""
    nodes = {state: value.node for state, value in states.items()}
    copies = copying(nodes, {state: state.type.nbytes for state in states})
    return [
        value.node if _is_taken(value.node) and state not in copies else copied(value).node
        for state, value in states.items()
    ]


def _is_taken(node: Node) -> bool:
    """Whether a value has a buffer of gpuop's own, in which nothing changes within a step or after it."""
    return isinstance(node, Result) or not (node.by_value or node.source.borrowed or node.source.role == "parameter")
