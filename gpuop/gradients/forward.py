"""Forward mode of graphs: the tangents of values, call by call, or by the rules of their functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpuop.base.errors import SemanticError
from gpuop.base.lru import BoundedCache
from gpuop.dsl.fields.derivative_rules import DerivativeRule, rule_of
from gpuop.dsl.fields.field import Field
from gpuop.gradients.kernels.active import is_smooth
from gpuop.gradients.kernels.floats import as_floats, in_floats, rounded_as
from gpuop.gradients.kernels.linearize import Linearized, linearized
from gpuop.ir.kernel import Kernel
from gpuop.ir.text import identity
from gpuop.ir.values import Call, Leaf, Node, Result
from gpuop.ir.variants import Variants

MOST_KERNELS = 1024
Numbers = frozenset[int]
_kernels: BoundedCache[tuple[Kernel, Numbers, Numbers, Numbers], tuple[Linearized, str]] = BoundedCache(MOST_KERNELS)


class Forward:
    """The tangents of a graph.

    Attributes:
        tangents: those of the values that have one.
        bits: the values whose integers hold bits of those.
    """

    def __init__(self, seeds: Mapping[Node, Node]) -> None:
        self.tangents: dict[Node, Node] = dict(seeds)
        self.bits: set[Node] = set()
        self._done: set[Node] = set(seeds)
        self._calls: set[Call] = set()

    def of(self, nodes: Iterable[Node]) -> list[Node | None]:
        """The tangents of values, None for 0."""
        wanted = list(nodes)
        waiting: list[Node] = list(reversed(wanted))
        while waiting:
            node = waiting[-1]
            before = [] if node in self._done else [each for each in _inputs(node) if each not in self._done]
            if before:
                waiting += reversed(before)
                continue
            waiting.pop()
            if node not in self._done:
                self._push(node)
                self._done.add(node)
        return [self.tangents.get(node) for node in wanted]

    def _push(self, node: Node) -> None:
        if isinstance(node, Leaf):
            return
        rule, call = _rule(node), node.call
        if rule is not None:
            self._by_rule(node, rule)
        elif isinstance(call.kernel, (Kernel, Variants)):
            if call not in self._calls:
                self._calls.add(call)
                if any(each in self.tangents or each in self.bits for each in call.inputs):
                    self._by_kernel(call)
        else:
            self._refuse(node)

    def _by_rule(self, node: Result, rule: DerivativeRule) -> None:
        tangents = [self.tangents.get(field.node) for field in rule.inputs]
        if all(tangent is None for tangent in tangents):
            return
        if not callable(rule.push):
            raise SemanticError(f"`{rule.name}` has no tangent: {rule.push}", node.call.loc)
        fields = [
            None if tangent is None else Field.of(tangent, kind=field.kind)
            for field, tangent in zip(rule.inputs, tangents, strict=True)
        ]
        tangent = rule.push(rule.inputs, Field.of(node, kind=rule.kinds[node.index if rule.joint else 0]), fields)
        if tangent is not None:
            self.tangents[node] = tangent.node

    def _by_kernel(self, call: Call) -> None:
        """The tangents of all results of a call; of several variants, which compute the same, by the first that has tangents."""
        if isinstance(call.kernel, Kernel):
            self._by(call, call.kernel, call.inputs)
            return
        assert isinstance(call.kernel, Variants)
        errors = []
        for variant in call.kernel.variants:
            try:
                self._by(call, variant.kernel, [call.inputs[n] for n in variant.inputs])
            except SemanticError as error:
                errors.append(error)
            else:
                return
        raise errors[0]

    def _by(self, call: Call, kernel: Kernel, inputs: Sequence[Node]) -> None:
        tangents = {n: self.tangents[node] for n, node in enumerate(inputs) if node in self.tangents}
        bits = frozenset(n for n, node in enumerate(inputs) if node in self.bits)
        wide, kernel = in_floats(Call(kernel, call.identity, tuple(inputs), call.loc), kernel)
        inputs, tangents = wide.inputs, dict(zip(tangents, as_floats(tangents.values()), strict=True))
        by_value = frozenset(n for n, node in tangents.items() if isinstance(node, Leaf) and node.by_value)
        pushed, key = _linearized(kernel, frozenset(tangents), bits, by_value)
        self.bits.update(Result(call, n) for n in pushed.bits)
        if pushed.kernel is None:
            return
        moved = Call(
            pushed.kernel, key, (*(inputs[n] for n in pushed.inputs), *(tangents[n] for n in pushed.tangents)), call.loc
        )
        for place, n in enumerate(pushed.outputs):
            result = Result(call, n)
            if _rule(result) is None:
                self.tangents[result] = rounded_as(Field.of(Result(moved, place)), result).node

    def _refuse(self, node: Result) -> None:
        kernel = node.call.kernel
        active = any(each in self.tangents or each in self.bits for each in node.call.inputs)
        if active and is_smooth(kernel.outputs[node.index].param):
            raise SemanticError(
                f"`{kernel.name}` has no tangent: it {kernel.unfusible}; call it in a function under `gp.pipeline`, and give that "
                "one a rule with `defjvp`; or pass `gp.stop_gradient(x)` for what is a constant",
                node.call.loc or kernel.loc,
            )


def _rule(node: Result) -> DerivativeRule | None:
    """The rule of a value that says its tangent; others go by their kernels."""
    rule = rule_of(node)
    return rule if rule is not None and rule.push is not None else None


def _inputs(node: Node) -> Iterable[Node]:
    if isinstance(node, Leaf):
        return ()
    rule = _rule(node)
    return node.call.inputs if rule is None else [field.node for field in rule.inputs]


def _linearized(kernel: Kernel, active: Numbers, bits: Numbers, by_value: Numbers) -> tuple[Linearized, str]:
    """The tangents of a kernel, and the identity of the kernel that computes them; once for each pattern of its inputs."""
    key = kernel, active, bits, by_value
    result = _kernels.get(key)
    if result is None:
        pushed = linearized(*key)
        result = _kernels[key] = pushed, "" if pushed.kernel is None else identity(pushed.kernel)
    return result
