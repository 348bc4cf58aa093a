"""The derivatives of `gp.iterate`: tangents are states more, and cotangents go back from the last iteration to the first.

A few iterations are calls, which are fused with what is around them; more are a reversal, which keeps some of the states and
computes the others again. Both add up in the same order, so they give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuop.base.errors import SemanticError
from gpuop.dsl.fields.derivative_rules import derivatives
from gpuop.dsl.fields.field import Field
from gpuop.engine.iterate import iterate
from gpuop.engine.repeated import RepeatedGraph, ReversedGraph, computed, repeated_of, reverse, reversed_of
from gpuop.gradients.forward import Forward
from gpuop.gradients.values import cotangents, is_differentiable, substituted
from gpuop.ir.values import Leaf, Node, calls
from gpuop.ops.create.computed_fields import filled
from gpuop.ops.elementwise.algebra import apply

MOST_CALLS = 16  # iterations whose way back is calls
MOST_TWICE = 64  # iterations that reverse mode goes back through twice, for second derivatives

Fields = Sequence[Field]
Tangents = Sequence[Field | None]


def _at(repeated: RepeatedGraph, states: Fields, captured: Fields, results: Sequence[Node]) -> list[Field]:
    """Values of the graph of an iteration, at these states."""
    places = _places([*(own.node for own in repeated.states), *repeated.captured], [*states, *captured])
    return substituted([Field.of(node) for node in results], places)


def _back_at(reversal: ReversedGraph, states: Fields, captured: Fields, bars: Fields) -> list[Field]:
    """The values that go back by one iteration, at these states."""
    own = [field.node for field in reversal.forward.states], [field.node for field in reversal.bars]
    places = _places([*own[0], *reversal.captured, *own[1]], [*states, *captured, *bars])
    return substituted([Field.of(node) for node in reversal.results], places)


def _places(nodes: Sequence[Node], fields: Fields) -> dict[Node, Node]:
    return {node: field.node for node, field in zip(nodes, fields, strict=True)}


def _or_zeros(tangent: Field | None, like: Field) -> Field:
    return filled(like.node.type, 0) if tangent is None else tangent


def _smooth(fields: Fields) -> list[int]:
    return [n for n, field in enumerate(fields) if is_differentiable(field.node.type)]


def _leaves(fields: Fields) -> tuple[Field, ...]:
    """Fields that stand for others in graphs that are repeated."""
    return tuple(Field.of(Leaf(field.node.type), kind=field.kind) for field in fields)


# --- forward mode -------------------------------------------------------------------------------------------------------


def _pushed(repeated: RepeatedGraph, number: int, inputs: Fields, result: Field, tangents: Tangents) -> Field | None:
    """The tangent of a final state: those of all states are iterated beside them."""
    count = len(repeated.states)
    smooth = _smooth(repeated.states)
    if number not in smooth:
        return None
    begin = [_or_zeros(tangents[n], inputs[n]) for n in smooth]

    def both(*fields: Field) -> tuple[Field, ...]:
        return tuple(_with_tangents(repeated, inputs[count:], tangents[count:], fields[:count], fields[count:]))

    def ended(*fields: Field) -> Field:
        return _at(repeated, fields[:count], inputs[count:], repeated.ends)[0]

    fields = (*(Field.of(field.node) for field in inputs[:count]), *(Field.of(field.node) for field in begin))
    settings, until = repeated.settings, ended if repeated.ends else None
    finals = iterate(
        both, fields, times=settings.times, until=until, every=settings.every, checkpoints=settings.checkpoints
    )
    pushed: Field = finals[count + smooth.index(number)]
    return pushed


def _with_tangents(
    repeated: RepeatedGraph, captured: Fields, pushes: Tangents, states: Fields, tangents: Fields
) -> list[Field]:
    """The next states, and the tangents of those that have one."""
    smooth = _smooth(repeated.states)
    seeds = _places([repeated.states[n].node for n in smooth], tangents) | _moving(repeated.captured, pushes)
    slopes = Forward(seeds).of([repeated.nexts[n] for n in smooth])
    following = [
        _or_zeros(None if slope is None else Field.of(slope), repeated.states[n]).node
        for n, slope in zip(smooth, slopes, strict=True)
    ]
    return _at(repeated, states, captured, [*repeated.nexts, *following])


def _moving(captured: Sequence[Node], tangents: Tangents) -> dict[Node, Node]:
    pairs = zip(captured, tangents, strict=True)
    return {node: tangent.node for node, tangent in pairs if tangent is not None}


# --- reverse mode -------------------------------------------------------------------------------------------------------


def _pulled(
    repeated: RepeatedGraph, inputs: Fields, results: Fields, cotangent: Tangents, wanted: Sequence[int]
) -> list[Field | None]:
    """The cotangents of the first states and of captured values."""
    count = len(repeated.states)
    states, captured = inputs[:count], inputs[count:]
    moving = [n - count for n in wanted if n >= count and is_differentiable(inputs[n].node.type)]
    smooth = _passed(repeated, [n for n, bar in enumerate(cotangent) if bar is not None], wanted)
    if not smooth:
        return [None] * len(inputs)
    reversal = _reversal(repeated, captured, smooth, moving)
    bars = [_or_zeros(cotangent[n], states[n]) for n in smooth]
    bars += [filled(captured[n].node.type, 0) for n in moving]
    settings = repeated.settings
    few = not repeated.ends and settings.checkpoints is None and (settings.times or 0) <= MOST_CALLS
    back = _as_calls(reversal, states, _fields(reversal.captured), bars) if few else reverse(reversal, states, bars)
    places = [*smooth, *(count + n for n in moving)]
    pulls: dict[int, Field] = dict(zip(places, back, strict=True))
    return list(map(pulls.get, range(len(inputs))))


def _passed(repeated: RepeatedGraph, ends: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """The states between those whose cotangents are known after the last iteration and those that depend on wanted inputs."""
    own = [field.node for field in repeated.states]
    inputs = [*own, *repeated.captured]
    read = [{n for n, node in enumerate(inputs) if node in _reached(following)} for following in repeated.nexts]
    needed, active = set(ends), {n for n in wanted if n < len(own)}
    for _ in own:
        needed |= {k for n in needed for k in read[n] if k < len(own)}
        active |= {n for n, each in enumerate(read) if each & (active | {k for k in wanted if k >= len(own)})}
    return [n for n in _smooth(repeated.states) if n in needed & active]


def _reached(node: Node) -> set[Node]:
    return {node, *(each for call in calls([node]) for each in call.inputs)}


def _reversal(repeated: RepeatedGraph, captured: Fields, smooth: Sequence[int], moving: Sequence[int]) -> ReversedGraph:
    """The way back by one iteration: to the states before it, and sums over iterations for captured values."""
    states = _leaves(repeated.states)
    nexts = _at(repeated, states, captured, repeated.nexts)
    bars = _leaves([*(states[n] for n in smooth), *(captured[n] for n in moving)])
    wanted = list(dict.fromkeys([*(states[n].node for n in smooth), *(captured[n].node for n in moving)]))
    outputs = [(nexts[n].node, bar) for n, bar in zip(smooth, bars, strict=False)]
    shares = dict(zip(wanted, cotangents(outputs, wanted), strict=True))
    back = [_or_zeros(shares[states[n].node], states[n]) for n in smooth]
    for n, total in zip(moving, bars[len(smooth) :], strict=True):
        share = shares.pop(captured[n].node, None)  # of a value that comes in twice once
        back.append(total if share is None else apply("add", total, share))
    ends = _at(repeated, states, captured, repeated.ends)
    return reversed_of(_repeated(repeated, states, nexts, ends), bars, _nodes(back, bars))


def _repeated(like: RepeatedGraph, states: Fields, nexts: Fields, ends: Fields) -> RepeatedGraph:
    """An iteration of as many turns as another one."""
    return repeated_of(like.name, states, _nodes(nexts, states), _nodes(ends), like.settings, like.loc)


def _nodes(fields: Fields, own: Fields = ()) -> list[Node]:
    """The nodes of computed values, or of some of the graph's own leaves."""
    leaves = {field.node for field in own}
    return [field.node if field.node in leaves else computed(field) for field in fields]


def _fields(nodes: Sequence[Node]) -> list[Field]:
    return [Field.of(node) for node in nodes]


def _as_calls(reversal: ReversedGraph, states: Fields, captured: Fields, bars: Fields) -> list[Field]:
    """The values that go back to the first states, of a number of iterations that is known, as calls."""
    forward = reversal.forward
    earlier, back = [list(states)], list(bars)
    for _ in range((forward.settings.times or 1) - 1):
        earlier.append(_at(forward, earlier[-1], captured[: len(forward.captured)], forward.nexts))
    for before in reversed(earlier):
        back = _back_at(reversal, before, captured, back)
    return back


# --- derivatives of the way back ----------------------------------------------------------------------------------------


def _reversal_pushed(reversal: ReversedGraph, number: int, inputs: Fields, result: Field, tangents: Tangents) -> Field:
    """The tangent of what goes back: that of all goes back beside it, and tangents of states are states more."""
    forward, smooth = reversal.forward, _smooth(reversal.forward.states)
    own, captured = len(forward.states), len(forward.states) + len(reversal.captured)
    constants, pushes = inputs[own:captured], tangents[own:captured]
    states, bars = _leaves(inputs[:own]), _leaves(inputs[captured:])
    moving, moved = _leaves([states[n] for n in smooth]), _leaves(bars)
    count = len(forward.captured)
    nexts = _with_tangents(forward, constants[:count], pushes[:count], states, moving)
    both = _repeated(forward, (*states, *moving), nexts, _at(forward, states, constants[:count], forward.ends))
    seeds = _places([forward.states[n].node for n in smooth], moving) | _moving(reversal.captured, pushes)
    slopes = Forward(seeds | _places([bar.node for bar in reversal.bars], moved)).of(reversal.results)
    tangent = [_or_zeros(None if x is None else Field.of(x), bar) for x, bar in zip(slopes, bars, strict=True)]
    twice = replace(reversal, results=(*reversal.results, *(field.node for field in tangent)))
    back = _back_at(twice, states, constants, bars)
    begin = [_or_zeros(tangents[n], inputs[n]) for n in smooth]
    begun = [_or_zeros(tangents[captured + n], bar) for n, bar in enumerate(bars)]
    last = reversed_of(both, (*bars, *moved), _nodes(back, (*bars, *moved)))
    return reverse(last, [*inputs[:own], *begin], [*inputs[captured:], *begun])[len(bars) + number]


def _reversal_pulled(
    reversal: ReversedGraph, inputs: Fields, results: Fields, cotangent: Tangents, wanted: Sequence[int]
) -> list[Field | None]:
    """The cotangents of inputs, through the way back as calls."""
    settings, ends = reversal.forward.settings, reversal.forward.ends
    if ends or settings.times is None or settings.times > MOST_TWICE:
        what = "ends by a condition" if ends else f"has {settings.times} iterations"
        raise SemanticError(
            f"`iterate` of `{reversal.forward.name}` {what}, and reverse mode goes back twice through {MOST_TWICE} with `times=` "
            "at most; use `gp.hvp`, or `gp.jvp` of the gradient, which take any number",
            reversal.forward.loc,
        )
    own, captured = len(reversal.forward.states), len(reversal.forward.states) + len(reversal.captured)
    back = _as_calls(reversal, inputs[:own], inputs[own:captured], inputs[captured:])
    nodes = list(dict.fromkeys(inputs[n].node for n in wanted))
    outputs = [(field.node, bar) for field, bar in zip(back, cotangent, strict=True) if bar is not None]
    pulls = dict(zip(nodes, cotangents(outputs, nodes), strict=True))
    return [pulls.pop(field.node, None) for field in inputs]  # of a value that comes in twice once


derivatives.update(
    {
        "iterate pulled": _pulled,
        "iterate pushed": _pushed,
        "reversal pulled": _reversal_pulled,
        "reversal pushed": _reversal_pushed,
    }
)
