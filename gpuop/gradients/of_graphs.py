"""The gradient of a ComputeGraph: a probe after some steps, by the first values of states and by parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuop.base.errors import SemanticError
from gpuop.dsl.fields.derivative_rules import derivatives
from gpuop.dsl.fields.field import Field
from gpuop.engine.iterate import iterate
from gpuop.gradients.values import cotangents, is_differentiable, substituted
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf, Node, calls
from gpuop.ops.create.computed_fields import filled


def _gradient(
    probe: Field,
    nexts: Mapping[Leaf, Node],
    wrt: Sequence[Field],
    steps: int,
    checkpoints: int | None,
) -> list[Field]:
    """The gradients of a probe.

    Args:
        nexts: the states, each with its next value.
        wrt: states and parameters.
    """
    _check(probe, wrt)
    first = {state: Leaf(state.type, state.source, state.by_value, state.name) for state in nexts}
    begin = tuple(Field.of(leaf) for leaf in first.values())

    def step(*now: Field) -> tuple[Field, ...]:
        return tuple(_at([Field.of(node) for node in nexts.values()], now))

    def _at(fields: Sequence[Field], now: Sequence[Field]) -> list[Field]:
        return substituted(fields, {state: field.node for state, field in zip(nexts, now, strict=True)})

    last = iterate(step, begin, times=steps, checkpoints=checkpoints) if begin else ()
    (value,) = _at([probe], last)
    _check_sensors([value.node])
    wanted: list[Node] = [
        first.get(field.node, field.node) if isinstance(field.node, Leaf) else field.node for field in wrt
    ]
    bars = cotangents([(value.node, filled(FieldType((), (), value.dtype), 1))], wanted)
    pairs = zip(wrt, bars, strict=True)
    return [
        Field.of((filled(field.node.type, 0) if bar is None else bar).node, kind=field.type) for field, bar in pairs
    ]


def _check(probe: Field, wrt: Sequence[Field]) -> None:
    if probe.type.array_shape or not is_differentiable(probe.type) or probe.dtype in COMPLEX_DTYPES:
        raise SemanticError(
            f"gradient: the probe is a {probe.type} field; a gradient is of a real 0D field: probe `f.sum()`, or what is to be less"
        )
    for field in wrt:
        if not is_differentiable(field.type):
            raise SemanticError(
                f"gradient: `{field.name}` is a {field.type} field, and {field.dtype} has no gradient; leave it out of `wrt=`"
            )


def _check_sensors(nodes: Sequence[Node]) -> None:
    """Raise SemanticError if values depend on frames, which cannot be had again."""
    for node in (node for call in calls(nodes) for node in call.inputs):
        if isinstance(node, Leaf) and node.source.role == "sensor":
            raise SemanticError(
                f"gradient: the probe depends on the sensor `{node.name}`, whose frames cannot be had again; make states or "
                "parameters of the frames, and gradients of a graph that has those"
            )


derivatives["gradient of a graph"] = _gradient
