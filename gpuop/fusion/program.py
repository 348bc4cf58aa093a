"""The graph of requested values as a program: numbered values, equal calls merged, what nobody needs left out."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from gpuop.base.errors import Loc
from gpuop.base.lru import BoundedCache
from gpuop.base.records import dataclass
from gpuop.ir.dead_code import restricted
from gpuop.ir.kernel import EXACT, Kernel, Launchable
from gpuop.ir.layout import Layout
from gpuop.ir.nodes import FieldParam
from gpuop.ir.text import identity
from gpuop.ir.types import FieldType
from gpuop.ir.values import AGAIN, Call, Leaf, Node, Result, calls
from gpuop.ir.variants import Variants
from gpuop.ir.visit import fields_read, updated


@dataclass(frozen=True, eq=False)
class Op:
    """A kernel applied to numbered values; `number` orders operators topologically.

    Attributes:
        recomputed: operators whose values this one computes for itself, where it reads them.
        variant: the parameters that were chosen for it.
    """

    number: int
    kernel: Launchable
    identity: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    loc: Loc | None
    recomputed: tuple[Op, ...] = ()
    variant: str = ""

    @property
    def fusible(self) -> Kernel:
        """The kernel, with its body; asked only once nothing keeps it `apart`."""
        assert isinstance(self.kernel, Kernel)
        return self.kernel

    @property
    def is_again(self) -> bool:
        """True if it computes values again, so that they need not be in memory in between."""
        return self.identity.endswith(AGAIN)

    @property
    def updates(self) -> bool:
        """True if an output starts from an input, which is copied with its layout."""
        return any(output.initial is not None for kernel, _ in _recorded(self) for output in kernel.outputs)

    @property
    def precision(self) -> str:
        """The precision of the kernel; host functions and iterations are exact, as they compute nothing themselves."""
        return self.kernel.precision if isinstance(self.kernel, Kernel) else EXACT

    @property
    def label(self) -> str:
        """Its name for people, with the precision where it is not exact."""
        return self.kernel.name + (f" [{self.precision}]" if self.precision != EXACT else "")

    def line(self, loc: Loc | None) -> Loc | None:
        """The user's line of one of its statements, which are those of the call that was recorded, whoever called it first."""
        called = self.kernel.called if isinstance(self.kernel, Kernel) else None
        return self.loc if called is not None and loc == called else loc

    def __repr__(self) -> str:
        return f"{self.kernel.name}#{self.number}"


Network = Any  # a networkx.DiGraph; networkx is imported when a device opens


@dataclass(frozen=True)
class Cycle:
    """The cycle of a program that is evaluated at every step of a ComputeGraph.

    Attributes:
        changing: leaves that change from step to step: states and sensors.
        settable: leaves that change when they are set: parameters.
        nexts: states, each with its next value.
    """

    changing: frozenset[int]
    settable: frozenset[int]
    nexts: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Program:
    """Values are numbers: leaves and results alike. `key` is equal for programs that compute the same.

    Attributes:
        cycle: None for a program that is evaluated once.
        dynamic: values of which no kernel is to know the extents: arguments of pipelines and operators, and what is made of them.
    """

    leaves: dict[int, Node]
    ops: tuple[Op, ...]
    results: tuple[int, ...]
    types: dict[int, FieldType]
    key: tuple[Any, ...]
    names: dict[int, str]
    cycle: Cycle | None = None
    dynamic: frozenset[int] = frozenset()

    @cached_property
    def network(self) -> Network:
        """The operators as the graph that fusion works on, which nobody may change."""
        import networkx as nx

        return nx.freeze(network_of(self.ops))

    @property
    def layouts(self) -> dict[int, Layout]:
        """Those of leaves in others' memory."""
        layouts = {v: n.source.layout for v, n in self.leaves.items() if isinstance(n, Leaf)}
        return {v: layout for v, layout in layouts.items() if layout is not None}

    def without_values(self) -> Program:
        """The program for whoever keeps its plan, with leaves that are only told of: their arrays may go."""
        leaves: dict[int, Node] = {
            v: Leaf(node.type, by_value=isinstance(node, Leaf) and node.by_value, name=node.name)
            for v, node in self.leaves.items()
        }
        return replace(self, leaves=leaves)

    def of_size(self) -> Program:
        """The program, no extents of which change."""
        return replace(self, dynamic=frozenset(), key=(*self.key, "of one size"))

    def repeated(self, states: Sequence[Leaf]) -> Program:
        """The program, to be evaluated at every step of a graph; the values that these states take next are its last ones."""
        leaves = {leaf: v for v, leaf in self.leaves.items() if isinstance(leaf, Leaf)}
        targets = self.results[len(self.results) - len(states) :]
        cycle = Cycle(
            frozenset(v for leaf, v in leaves.items() if leaf in states or leaf.source.role == "sensor"),
            frozenset(v for leaf, v in leaves.items() if leaf.source.role == "parameter"),
            tuple((leaves[leaf], v) for leaf, v in zip(states, targets, strict=True) if leaf in leaves),
        )
        return replace(self, cycle=cycle, key=(*self.key, cycle))


def program(results: Sequence[Node], arguments: Container[Node] = ()) -> Program:
    """Number what the results need; values in `arguments` count as leaves."""
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

    needed = _late(calls(results, arguments))
    for call in needed:
        inputs = tuple(value(node) for node in call.inputs)
        op = merged.get((call.identity, inputs))
        if op is None:
            outputs = tuple(new(output.param.type) for output in call.kernel.outputs)
            op = merged[call.identity, inputs] = Op(len(merged), call.kernel, call.identity, inputs, outputs, call.loc)
        for index, output in enumerate(op.outputs):
            if Result(call, index) not in arguments:
                values.setdefault(Result(call, index), output)
    ids = tuple(value(node) for node in results)
    ops = needed_ops(list(merged.values()), ids)
    used = {v for op in ops for v in op.inputs} | set(ids)
    leaves = {v: node for v, node in leaves.items() if v in used}
    leaf_key = tuple((i, n.type, isinstance(n, Leaf) and n.by_value) for i, n in leaves.items())
    remaining = {*leaves, *(v for op in ops for v in op.outputs)}
    dynamic = frozenset(v for node, v in values.items() if node.dynamic and v in remaining)
    key = (leaf_key, tuple((op.identity, op.inputs) for op in ops), ids, dynamic)
    return Program(leaves, ops, ids, types, key, _names(values, needed), dynamic=dynamic)


def _late(needed: list[Call]) -> list[Call]:
    """Calls in an order in which those that compute values again are as late as they can be: right before the first reader."""
    again = {call for call in needed if call.identity.endswith(AGAIN)}
    if not again:
        return needed
    order: dict[Call, None] = {}
    for call in needed:
        waiting = [] if call in again else [call]
        while waiting:
            before = [
                n.call for n in waiting[-1].inputs if isinstance(n, Result) and n.call in again and n.call not in order
            ]
            if before:
                waiting += reversed(before)
            else:
                order[waiting.pop()] = None
    return [*order, *(call for call in needed if call not in order)]


def network_of(ops: Collection[Op]) -> Network:
    """Operators as nodes, by number and in their order, with the attribute `operator`; an edge leads from an operator to each that
    reads values of it, which are its attribute `values`, in the order in which they are read.

    `edges`, `in_degree` and their like refer to their graph and are kept by it: where planning asked it for them, its operators
    would live until Python looks for cycles. It asks for `succ`, `pred` and `adjacency`.
    """
    import networkx as nx

    network, maker = nx.DiGraph(), {value: op for op in ops for value in op.outputs}
    for op in ops:
        network.add_node(op.number, operator=op)
    for op in ops:
        connect(network, op, maker)
    return network


def connect(network: Network, op: Op, maker: Mapping[int, Op]) -> None:
    """Add the edges that lead to an operator from those that make its inputs, which `maker` has by value."""
    values_of: dict[int, tuple[int, ...]] = {}
    for value in op.inputs:
        producer = maker.get(value)
        if producer is not None:
            values = values_of.get(producer.number, ())
            values_of[producer.number] = values if value in values else (*values, value)
    for number, values in values_of.items():
        network.add_edge(number, op.number, values=values)


def _recorded(op: Op) -> Iterator[tuple[Kernel, tuple[int, ...]]]:
    """The kernels that an operator may be, with their inputs."""
    if isinstance(op.kernel, Kernel):
        yield op.kernel, op.inputs
    elif isinstance(op.kernel, Variants):
        for variant in op.kernel.variants:
            yield variant.kernel, tuple(op.inputs[k] for k in variant.inputs)


def _names(values: dict[Node, int], calls: Iterable[Call]) -> dict[int, str]:
    """The user's names of values. What goes into another value of the same name on the same line is only on the way to it."""
    names = {value: node.name for node, value in reversed(values.items()) if node.name}
    for call in calls:
        for input in call.inputs:
            if isinstance(input, Result) and input.call.loc == call.loc and input.name in call.names:
                names.pop(values[input], None)
    return names


def needed_ops(ops: list[Op], results: tuple[int, ...]) -> tuple[Op, ...]:
    """The operators with what is needed of them: an output that nobody reads, and what only it needs, is left out."""
    needed, result = set(results), []
    for op in reversed(ops):
        positions = frozenset(k for k, value in enumerate(op.outputs) if value in needed)
        if not positions:
            continue
        less = pruned(op.kernel, op.identity, positions) if isinstance(op.kernel, Kernel) else None
        if less is not None:
            inputs, outputs = (tuple(op.inputs[k] for k in less.inputs), tuple(op.outputs[k] for k in less.outputs))
            name = less.identity + AGAIN * op.is_again
            op = replace(op, kernel=less.kernel, identity=name, inputs=inputs, outputs=outputs)
        result.append(op)
        needed.update(op.inputs)
    return tuple(reversed(result))


KEPT = 4096


@dataclass(frozen=True)
class Pruned:
    """A pruned kernel, its identity, and the positions of the inputs and outputs that it still has."""

    kernel: Kernel
    identity: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


_cache: BoundedCache[tuple[str, frozenset[int]], Pruned | None] = BoundedCache(KEPT)


def pruned(kernel: Kernel, name: str, needed: frozenset[int]) -> Pruned | None:
    """A kernel without outputs that are not needed and inputs that are not used; None if there are none.

    Args:
        name: identity of the kernel.
        needed: positions of the needed outputs.
    """

    def prune() -> Pruned | None:
        computed = updated(kernel.body)
        outputs = tuple(k for k, o in enumerate(kernel.outputs) if k in needed or o.param in computed)
        if len(outputs) == len(kernel.outputs) and _inputs_of(kernel).issuperset(kernel.inputs):
            return None
        less = restricted(kernel, tuple(kernel.outputs[k] for k in outputs))
        read = _inputs_of(less)
        inputs = tuple(k for k, p in enumerate(kernel.inputs) if p in read)
        less = replace(less, inputs=tuple(kernel.inputs[k] for k in inputs))
        return Pruned(less, identity(less), inputs, outputs)

    return _cache.find((name, needed), prune)


def _inputs_of(kernel: Kernel) -> set[FieldParam]:
    """The inputs that a kernel needs."""
    return fields_read(kernel.body) | {output.initial for output in kernel.outputs if output.initial is not None}
