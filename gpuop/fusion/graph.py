"""The graph of wanted values as a program: numbered values, equal calls merged, what nobody wants left out."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

from gpuop.errors import Loc
from gpuop.ir.graph import Leaf, Node, Result, calls
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import FieldType


@dataclass(frozen=True, eq=False)
class Op:
    """A kernel applied to numbered values; `number` orders operators topologically."""

    number: int
    kernel: Kernel
    identity: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    loc: Loc | None

    def __repr__(self) -> str:
        return f"{self.kernel.name}#{self.number}"


@dataclass(frozen=True, eq=False)
class Program:
    """Values are numbers: leaves and results alike. `key` is equal for programs that compute the same."""

    leaves: dict[int, Node]
    ops: tuple[Op, ...]
    wanted: tuple[int, ...]
    types: dict[int, FieldType]
    key: tuple[Any, ...]


def program(wanted: Sequence[Node], given: Container[Node] = ()) -> Program:
    """Number what the wanted values need; values in `given` count as leaves."""
    values: dict[Node, int] = {}
    leaves: dict[int, Node] = {}
    types: dict[int, FieldType] = {}
    merged: dict[tuple[Any, ...], Op] = {}

    def new(type_: FieldType) -> int:
        types[len(types)] = type_
        return len(types) - 1

    def value(node: Node) -> int:
        if node not in values:
            values[node] = new(node.type)
            leaves[values[node]] = node
        return values[node]

    for call in calls(wanted, given):
        inputs = tuple(value(node) for node in call.inputs)
        op = merged.get((call.identity, inputs))
        if op is None:
            outputs = tuple(new(output.param.type) for output in call.kernel.outputs)
            op = merged[call.identity, inputs] = Op(len(merged), call.kernel, call.identity, inputs, outputs, call.loc)
        for index, output in enumerate(op.outputs):
            values.setdefault(Result(call, index), output)
    ids = tuple(value(node) for node in wanted)
    leaf_key = tuple((i, n.type, isinstance(n, Leaf) and n.by_value) for i, n in leaves.items())
    ops = tuple(merged.values())
    return Program(leaves, ops, ids, types, (leaf_key, tuple((op.identity, op.inputs) for op in ops), ids))
