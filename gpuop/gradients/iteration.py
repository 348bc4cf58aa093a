"""The derivatives of `gp.iterate`: tangents are states more, and cotangents go back through the iterations one by one."""

from __future__ import annotations

from collections.abc import Sequence

from gpuop.base.errors import SemanticError
from gpuop.dsl.fields.derivative_rules import derivatives
from gpuop.dsl.fields.field import Field
from gpuop.engine.iterate import Repeated, iterate
from gpuop.gradients.forward import Forward
from gpuop.gradients.values import cotangents, is_differentiable, substituted
from gpuop.ir.values import Node
from gpuop.ops.create.computed_fields import filled

MOST_ITERATIONS = 64  # that reverse mode goes back through: each keeps its states


def _after(
    repeated: Repeated, states: Sequence[Field], inputs: Sequence[Field], results: Sequence[Node]
) -> list[Field]:
    """Values of the graph of an iteration, at these states."""
    count = len(repeated.states)
    places = {own.node: field.node for own, field in zip(repeated.states, states, strict=True)}
    places |= {node: field.node for node, field in zip(repeated.captured, inputs[count:], strict=True)}
    return substituted([Field.of(node) for node in results], places)


def _pushed(
    repeated: Repeated, number: int, inputs: Sequence[Field], result: Field, tangents: Sequence[Field | None]
) -> Field | None:
    """The tangent of a final state: those of all states are iterated beside them."""
    count = len(repeated.states)
    smooth = [n for n, state in enumerate(repeated.states) if is_differentiable(state.node.type)]
    if number not in smooth:
        return None
    begin = [_or_zeros(tangents[n], inputs[n]) for n in smooth]

    def both(*fields: Field) -> tuple[Field, ...]:
        states, moving = fields[:count], fields[count:]
        seeds: dict[Node, Node] = {repeated.states[n].node: field.node for n, field in zip(smooth, moving, strict=True)}
        captured = zip(repeated.captured, tangents[count:], strict=True)
        seeds |= {node: tangent.node for node, tangent in captured if tangent is not None}
        slopes = Forward(seeds).of([repeated.nexts[n] for n in smooth])
        following = [
            _or_zeros(None if slope is None else Field.of(slope), inputs[n]).node
            for n, slope in zip(smooth, slopes, strict=True)
        ]
        return tuple(_after(repeated, states, inputs, [*repeated.nexts, *following]))

    def ended(*fields: Field) -> Field:
        return _after(repeated, fields[:count], inputs, repeated.ends)[0]

    fields = (*(Field.of(field.node) for field in inputs[:count]), *(Field.of(field.node) for field in begin))
    until = ended if repeated.ends else None
    finals = iterate(both, fields, times=repeated.times, until=until, every=repeated.every)
    pushed: Field = finals[count + smooth.index(number)]
    return pushed


def _or_zeros(tangent: Field | None, like: Field) -> Field:
    return filled(like.node.type, 0) if tangent is None else tangent


def _pulled(
    repeated: Repeated, number: int, inputs: Sequence[Field], result: Field, cotangent: Field
) -> Sequence[Field | None]:
    """The cotangents of the first states and of captured values."""
    if repeated.ends or repeated.times is None or repeated.times > MOST_ITERATIONS:
        what = "ends by a condition" if repeated.ends else f"has {repeated.times} iterations"
        raise SemanticError(
            f"`iterate` of `{repeated.name}` {what}, and reverse mode goes back through {MOST_ITERATIONS} with `times=` at most; "
            "iterate in shorter parts, or use `gp.jvp`, which takes any number",
            repeated.loc,
        )
    states = list(inputs[: len(repeated.states)])
    for _ in range(repeated.times):
        states = _after(repeated, states, inputs, repeated.nexts)
    wanted = list(dict.fromkeys(field.node for field in inputs))
    pulls = dict(zip(wanted, cotangents([(states[number].node, cotangent)], wanted), strict=True))
    return [pulls.pop(field.node, None) for field in inputs]  # of a value that comes in twice once


derivatives.update({"iterate pushed": _pushed, "iterate pulled": _pulled})
