"""The graph of calls backwards: cotangents of values, each the sum over its uses in their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuop.base.errors import SemanticError
from gpuop.base.records import dataclass
from gpuop.dsl.fields.derivative_rules import DerivativeRule, enter, rule_of
from gpuop.dsl.fields.field import Field
from gpuop.gradients.kernels.active import flow
from gpuop.gradients.kernels.adjoint import pulled
from gpuop.gradients.kernels.floats import rounded_as
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.kernel import DeviceFunction, HostFunction, Kernel, Launchable
from gpuop.ir.types import FieldType
from gpuop.ir.values import AGAIN, Call, Leaf, Node, Result, calls
from gpuop.ir.variants import Variants
from gpuop.ops.elementwise.algebra import apply


def is_differentiable(kind: FieldType) -> bool:
    """Return whether values of a type have tangents: floating and complex numbers."""
    return kind.dtype in COMPLEX_DTYPES or (kind.dtype != "unorm8" and kind.element.kind == "f")


@dataclass(frozen=True)
class Step:
    """A way from values to what they are made of: a call, or the rule of a value."""

    outputs: tuple[Result, ...]
    inputs: tuple[Node, ...]
    rule: DerivativeRule | None = None

    @property
    def call(self) -> Call:
        return self.outputs[0].call


def steps(nodes: Iterable[Node], stop: Iterable[Node]) -> list[Step]:
    """The steps that lead to values, those first that others need; values in `stop` come from outside."""
    order: dict[Any, Step] = {}
    ends = set(stop)
    stack: list[tuple[Node, bool]] = [(node, False) for node in nodes]
    stack.reverse()
    while stack:
        node, ready = stack.pop()
        if not isinstance(node, Result) or node in ends:
            continue
        rule = rule_of(node)
        key = node if rule is not None and not rule.joint else node.call
        if key in order:
            continue
        step = _step(node, rule)
        if ready:
            order[key] = step
            continue
        stack.append((node, True))
        stack.extend((n, False) for n in reversed(step.inputs))
    return list(order.values())


def _step(node: Result, rule: DerivativeRule | None) -> Step:
    call, inputs = node.call, node.call.inputs if rule is None else tuple(field.node for field in rule.inputs)
    each = rule is not None and not rule.joint
    outputs = (node,) if each else tuple(Result(call, n) for n in range(len(call.kernel.outputs)))
    return Step(outputs, inputs, rule)


def cotangents(outputs: Sequence[tuple[Node, Field]], wanted: Sequence[Node]) -> list[Field | None]:
    """The cotangents of wanted values, from those of outputs; None where no output depends on one.

    Raises:
        SemanticError: there is no derivative of something between them, at its line.
    """
    order = steps([node for node, _ in outputs], wanted)
    active = _active(order, wanted)
    shares: dict[Node, list[Field]] = {}
    for node, field in outputs:
        if node in active:
            shares.setdefault(node, []).append(Field.of(field.node))
    for step in reversed(order):
        bars = {n: added(shares.pop(output)) for n, output in enumerate(step.outputs) if output in shares}
        if not bars:
            continue
        positions = [n for n, node in enumerate(step.inputs) if node in active]
        for n, field in sorted(_pulled(step, bars, positions).items(), reverse=True):
            if step.inputs[n] in active:  # rules have shares of constants too
                shares.setdefault(step.inputs[n], []).append(field)
    return [rounded_as(added(shares[node]), node) if node in shares else None for node in wanted]


def added(fields: list[Field]) -> Field:
    """The sum over the uses of a value, the last of which was met first."""
    total = fields[-1]
    for field in fields[-2::-1]:
        total = apply("add", total, field)
    return total


def depends_on(node: Node, wanted: Sequence[Node]) -> bool:
    """Return whether a value has a derivative by wanted ones that need not be 0."""
    return node in _active(steps([node], wanted), wanted)


def _active(order: Sequence[Step], wanted: Sequence[Node]) -> set[Node]:
    """The values that depend on wanted ones, and have cotangents.

    Raises:
        SemanticError: a value depends on them by bits that integers hold.
    """
    active = {node for node in wanted if is_differentiable(node.type)}
    bits: set[Node] = set()
    for step in order:
        if not active.isdisjoint(step.inputs) or not bits.isdisjoint(step.inputs):
            smooth, opened = _flow(step, active, bits)
            active |= smooth
            bits |= opened
    return active


def _flow(step: Step, active: set[Node], bits: set[Node]) -> tuple[set[Node], set[Node]]:
    """The active outputs of a step, and those that hold bits of active values; of variants by the first that has derivatives."""
    kernel = step.call.kernel
    if step.rule is not None or not isinstance(kernel, (Kernel, Variants)):
        return {output for output in step.outputs if is_differentiable(output.type)}, set()
    variants = [(kernel, step.inputs)] if isinstance(kernel, Kernel) else []
    if isinstance(kernel, Variants):
        variants = [(each.kernel, tuple(step.inputs[n] for n in each.inputs)) for each in kernel.variants]
    errors: list[SemanticError] = []
    for variant, inputs in variants:
        first, second = (frozenset(n for n, x in enumerate(inputs) if x in nodes) for nodes in (active, bits))
        try:
            smooth, opened = flow(variant, first, second)
        except SemanticError as error:
            errors.append(error)
        else:
            return {step.outputs[n] for n in smooth}, {step.outputs[n] for n in opened}
    raise errors[0]


def _pulled(step: Step, bars: Mapping[int, Field], positions: list[int]) -> dict[int, Field]:
    if step.rule is not None:
        return _by_rule(step.rule, step, bars, positions)
    kernel, call = step.call.kernel, step.call
    if isinstance(kernel, Variants):
        return _of_variants(kernel, call, bars, positions)
    if isinstance(kernel, Kernel):
        return pulled(call, kernel, bars, positions)
    raise refused(kernel, call)


def _by_rule(rule: DerivativeRule, step: Step, bars: Mapping[int, Field], positions: list[int]) -> dict[int, Field]:
    results = tuple(Field.of(node, kind=kind) for node, kind in zip(step.outputs, rule.kinds, strict=True))
    bars = {n: Field.of(rounded_as(bar, step.outputs[n]).node, kind=rule.kinds[n]) for n, bar in bars.items()}
    if isinstance(rule.pull, str):
        raise SemanticError(f"`{rule.name}` has no gradient: {rule.pull}", step.call.loc)
    if rule.joint and rule.pull is not None:
        pulls = rule.pull(rule.inputs, results, tuple(map(bars.get, range(len(results)))), tuple(positions))
    elif rule.pull is not None:
        pulls = rule.pull(rule.inputs, results[0], bars[0])
    else:
        pulls = _transposed(rule, step.call, results[0], bars[0])
    return {n: Field.of(field.node) for n, field in enumerate(pulls) if field is not None}


def _transposed(rule: DerivativeRule, call: Call, result: Field, bar: Field) -> Sequence[Field | None]:
    """The cotangents of the inputs by a rule of tangents, which is linear in these."""
    tangents = [Field.of(Leaf(field.node.type), kind=field.kind) for field in rule.inputs]
    assert callable(rule.push)
    pushed = rule.push(rule.inputs, result, tangents)
    if pushed is None:
        return [None] * len(tangents)
    pulls = cotangents([(pushed.node, bar)], [tangent.node for tangent in tangents])
    read = {node for each in calls([field.node for field in pulls if field is not None]) for node in each.inputs}
    if any(tangent.node in read for tangent in tangents):
        raise SemanticError(
            f"the rule of `{rule.name}` has no transpose: its tangent is not linear in the tangents", call.loc
        )
    return pulls


def _of_variants(kernel: Variants, call: Call, bars: Mapping[int, Field], positions: list[int]) -> dict[int, Field]:
    """By the first variant that has a gradient: all compute the same."""
    errors: list[SemanticError] = []
    for variant in kernel.variants:
        inputs = tuple(call.inputs[n] for n in variant.inputs)
        inner = Call(variant.kernel, variant.identity, inputs, call.loc)
        here = [n for n, place in enumerate(variant.inputs) if place in positions]
        try:
            done = pulled(inner, variant.kernel, bars, here)
        except SemanticError as error:
            errors.append(error)
            continue
        return {variant.inputs[n]: field for n, field in done.items()}
    raise errors[0]


def refused(kernel: Launchable, call: Call) -> SemanticError:
    """The error for a launchable without a rule."""
    where = "runs on the host" if isinstance(kernel, HostFunction) else "is a launch of its own"
    where = "is a library's work on the device" if isinstance(kernel, DeviceFunction) else where
    return SemanticError(
        f"`{kernel.name}` has no gradient: it {where}; call it in a function under `gp.pipeline`, and give that one a rule with "
        "`defvjp` or `defjvp`; or pass `gp.stop_gradient(x)` for what is a constant",
        call.loc,
    )


# --- the graph on other values ------------------------------------------------------------------------------------------


def substituted(fields: Sequence[Field], values: Mapping[Node, Node], again: bool = False) -> list[Field]:
    """Fields as computed from other values, in the place of some that they depend on.

    Args:
        again: in calls that are never made one with equal ones, and run as late as they can.
    """
    moved = _Substituting(values, AGAIN if again else "")
    for field in fields:
        moved.visit(field.node)
    return [Field.of(moved.node(field.node), kind=field.kind) for field in fields]


class _Substituting:
    def __init__(self, values: Mapping[Node, Node], mark: str) -> None:
        self.values, self.mark = dict(values), mark
        self.calls: dict[Call, Call] = {}

    def node(self, node: Node) -> Node:
        if node in self.values or not isinstance(node, Result):
            return self.values.get(node, node)
        return Result(self.calls.get(node.call, node.call), node.index)

    def visit(self, node: Node) -> None:
        stack: list[tuple[Call, bool]] = [(node.call, False)] if isinstance(node, Result) else []
        while stack:
            call, ready = stack.pop()
            if call in self.calls:
                continue
            if ready:
                self.calls[call] = self.moved(call)
                continue
            stack.append((call, True))
            stack.extend((n.call, False) for n in _around(call) if isinstance(n, Result) and n not in self.values)

    def moved(self, call: Call) -> Call:
        inputs = tuple(map(self.node, call.inputs))
        rules = {
            n: rule for n, rule in _rules(call).items() if any(self.node(f.node) is not f.node for f in rule.inputs)
        }
        same = all(a is b or a == b for a, b in zip(inputs, call.inputs, strict=True))
        if same and not rules:
            return call
        result = Call(call.kernel, call.identity + self.mark, inputs, call.loc, call.names)
        for n, rule in _rules(call).items():
            fields = tuple(Field.of(self.node(f.node), kind=f.kind) for f in rule.inputs)
            enter(Result(result, n), replace(rule, inputs=fields))
        return result


def _rules(call: Call) -> dict[int, DerivativeRule]:
    each = ((n, rule_of(Result(call, n))) for n in range(len(call.kernel.outputs)))
    return {n: rule for n, rule in each if rule is not None}


def _around(call: Call) -> list[Node]:
    """The values that a call, and the rules of its results, depend on."""
    return [*call.inputs, *(field.node for rule in _rules(call).values() for field in rule.inputs)]
