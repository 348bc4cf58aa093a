"""Graphs that are repeated, as one node of another graph: iterations, and the way back through them that gradients take."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from gpuop.base.errors import Loc, here
from gpuop.base.records import dataclass
from gpuop.dsl.fields.derivative_rules import DerivativeRule, Late, enter
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.gpu_operator import results_of
from gpuop.engine.interop import own
from gpuop.fusion.iteration import Iteration, Part, Reversal
from gpuop.fusion.program import program
from gpuop.ir.kernel import Launchable, Output
from gpuop.ir.nodes import FieldParam
from gpuop.ir.values import Call, Leaf, Node, Result, calls
from gpuop.ops.elementwise.algebra import copied


@dataclass(frozen=True)
class Settings:
    """The numbers of an iteration, as of `iterate`."""

    times: int | None
    every: int
    checkpoints: int | None


@dataclass(frozen=True, eq=False)
class RepeatedGraph:
    """The function of an iteration, as a graph from its states and the values that it captures.

    Attributes:
        states: the fields that stand for the states.
        nexts: their next values.
        ends: the condition that ends it, if there is one.
    """

    name: str
    states: tuple[Field, ...]
    nexts: tuple[Node, ...]
    captured: tuple[Node, ...]
    ends: tuple[Node, ...]
    settings: Settings
    loc: Loc | None


@dataclass(frozen=True, eq=False)
class ReversedGraph:
    """The function that goes back by one iteration, as a graph.

    Attributes:
        bars: the fields that stand for what goes back to the states after it.
        results: what goes back to those before it.
        captured: the values that iterations capture, then those that the way back does besides.
    """

    forward: RepeatedGraph
    bars: tuple[Field, ...]
    results: tuple[Node, ...]
    captured: tuple[Node, ...]


def repeat(
    name: str,
    states: Sequence[Field],
    nexts: Sequence[Node],
    ends: Sequence[Node],
    settings: Settings,
    fields: Sequence[Field],
) -> tuple[Field, ...]:
    """The last states of an iteration that begins with `fields`."""
    repeated = repeated_of(name, states, nexts, ends, settings)
    kernel = _iteration(repeated)
    inputs = (*map(_in_memory, fields), *map(own, repeated.captured))
    results = results_of(kernel, _identity(kernel), inputs, kernel.loc, [f.type for f in fields])
    rules = [(Late("iterate pulled", (repeated,)), Late("iterate pushed", (repeated, n))) for n in range(len(results))]
    return _ruled("iterate", results, [*fields, *map(Field.of, repeated.captured)], rules)


def reverse(reversal: ReversedGraph, fields: Sequence[Field], bars: Sequence[Field]) -> tuple[Field, ...]:
    """The cotangents of the first states, or whatever else goes back.

    Args:
        fields: the first states.
        bars: what goes back to the last ones.
    """
    kernel = _reversal(reversal)
    inputs = (*map(_in_memory, fields), *map(own, reversal.captured), *map(_in_memory, bars))
    results = results_of(kernel, _identity(kernel), inputs, kernel.loc, [bar.type for bar in bars])
    rules = [
        (Late("reversal pulled", (reversal,)), Late("reversal pushed", (reversal, n))) for n in range(len(results))
    ]
    return _ruled(kernel.name, results, [*fields, *map(Field.of, reversal.captured), *bars], rules)


def repeated_of(
    name: str,
    states: Sequence[Field],
    nexts: Sequence[Node],
    ends: Sequence[Node],
    settings: Settings,
    loc: Loc | None = None,
) -> RepeatedGraph:
    """The repeated function, and the values that it captures."""
    inner = [field.node for field in states]
    captured = dict.fromkeys([*captured_by(nexts, inner), *captured_by(ends, inner)])
    return RepeatedGraph(name, tuple(states), tuple(nexts), tuple(captured), tuple(ends), settings, loc or here())


def reversed_of(forward: RepeatedGraph, bars: Sequence[Field], results: Sequence[Node]) -> ReversedGraph:
    """The function that goes back, and the values that it captures."""
    inner = [field.node for field in (*forward.states, *bars)]
    captured = dict.fromkeys([*forward.captured, *captured_by(results, inner)])
    return ReversedGraph(forward, tuple(bars), tuple(results), tuple(captured))


def computed(field: Field) -> Node:
    """The node of a field; a copy if it is a leaf."""
    return field.node if isinstance(field.node, Result) else copied(field).node


def _ruled(
    name: str, results: Sequence[Field], inputs: Sequence[Field], rules: Sequence[tuple[Late, Late]]
) -> tuple[Field, ...]:
    """Results with their rules."""
    kinds = tuple(result.type.labelled(()) for result in results)
    for result, (pull, push) in zip(results, rules, strict=True):
        assert isinstance(result.node, Result)
        enter(result.node, DerivativeRule(name, tuple(inputs), kinds, pull, push, joint=True))
    return tuple(results)


def _in_memory(field: Field) -> Node:
    node = field.node
    return copied(field).node if isinstance(node, Leaf) and node.by_value else own(node)


# --- what is repeated -----------------------------------------------------------------------------------------------


def captured_by(nodes: Sequence[Node], inner: Sequence[Node]) -> list[Node]:
    """The captured values: those that do not depend on the states and are computed once, before the iteration."""
    changing: set[Call] = set()

    def changes(node: Node) -> bool:
        return node.call in changing if isinstance(node, Result) else node in inner

    for call in calls(nodes):
        if any(map(changes, call.inputs)):
            changing.add(call)
    changing |= {node.call for node in nodes if isinstance(node, Result)}
    read = (node for call in calls(nodes) if call in changing for node in call.inputs)
    return [node for node in dict.fromkeys(read) if not changes(node)]


def _iteration(repeated: RepeatedGraph) -> Iteration:
    inner = [field.node for field in repeated.states]
    inputs = [*inner, *repeated.captured]
    settings = repeated.settings
    return Iteration(
        f"iterate_{repeated.name}",
        _params(inputs),
        _outputs(repeated.nexts),
        loc=repeated.loc,
        turn=_part(repeated.nexts, inner, inputs),
        until=_part(repeated.ends, inner, inputs) if repeated.ends else None,
        times=int(settings.times) if settings.times is not None else None,
        every=int(settings.every),
    )


def _reversal(reversal: ReversedGraph) -> Reversal:
    forward, bars = reversal.forward, [field.node for field in reversal.bars]
    inner = [*(field.node for field in forward.states), *bars]
    inputs = [*inner[: len(forward.states)], *reversal.captured, *bars]
    most = forward.settings.checkpoints
    return Reversal(
        f"back_through_{forward.name}",
        _params(inputs),
        _outputs(reversal.results),
        loc=forward.loc,
        forward=_iteration(forward),
        back=_part(reversal.results, inner, inputs),
        checkpoints=int(most) if most is not None else None,
    )


def _params(inputs: Sequence[Node]) -> tuple[FieldParam, ...]:
    leaves = (isinstance(node, Leaf) and node.by_value for node in inputs)
    return tuple(
        FieldParam(node.name or f"in{n}", node.type, by_value)
        for n, (node, by_value) in enumerate(zip(inputs, leaves, strict=True))
    )


def _outputs(nodes: Sequence[Node]) -> tuple[Output, ...]:
    return tuple(Output(FieldParam(f"out{n}", node.type)) for n, node in enumerate(nodes))


def _part(results: Sequence[Node], inner: Sequence[Node], inputs: Sequence[Node]) -> Part:
    what = program(results, {*inner, *captured_by(results, inner)})
    return Part(what, {value: inputs.index(node) for value, node in what.leaves.items()})


def _identity(kernel: Launchable) -> str:
    """The identity of what is repeated: equal for equal programs on equal inputs."""
    text = repr(_key(kernel))
    return f"{'iterate' if isinstance(kernel, Iteration) else 'reverse'} {hashlib.sha256(text.encode()).hexdigest()}"


def _key(kernel: Launchable) -> object:
    if isinstance(kernel, Reversal):
        return kernel.forward.key, kernel.back.key, kernel.checkpoints
    assert isinstance(kernel, Iteration)
    return kernel.key
