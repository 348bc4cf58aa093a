"""A function of Fields, called with Fields that stand for its arguments; and its graph, of other values in their place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuop.base.errors import SemanticError, described
from gpuop.base.records import dataclass
from gpuop.dsl.fields.derivative_rules import enter, rule_of
from gpuop.dsl.fields.field import Field
from gpuop.ir.values import Call, Leaf, Node, Result
from gpuop.ops.elementwise.algebra import copied


def stand_in(field: Field) -> Field:
    """A Field of the same values, which is another one of the graph."""
    node = field.node
    if isinstance(node, Result):
        return Field.of(copied(Field.of(node)).node, kind=field.kind)
    return Field.of(Leaf(node.type, node.source, node.by_value, node.name), kind=field.kind)


@dataclass(frozen=True, eq=False)
class Traced:
    """A call of a function.

    Attributes:
        arguments: the Fields that stood for those arguments that are differentiated by.
        values: the arguments themselves.
        results: the Fields that it returned.
        several: whether it returned a tuple or a list.
        rest: what else it returned, by `has_aux`.
    """

    arguments: tuple[Field, ...]
    values: tuple[Field, ...]
    results: tuple[Field, ...]
    several: bool
    rest: Any = None

    def returned(self, fields: Sequence[Any]) -> Any:
        """Values in the structure of the results."""
        return tuple(fields) if self.several else fields[0]

    def actual(self) -> Substitution:
        """The arguments in the place of what stood for them."""
        return Substitution({own.node: value.node for own, value in zip(self.arguments, self.values, strict=True)})


def trace(
    word: str, function: Callable[..., Any], args: Sequence[Any], numbers: Sequence[int], has_aux: bool = False
) -> Traced:
    """Call a function with stand-ins for some of its arguments.

    Args:
        word: the function of the API, for messages.
        numbers: those of the arguments that are differentiated by.

    Raises:
        SemanticError: it does not return Fields.
    """
    stand_ins = {n: stand_in(args[n]) for n in numbers}
    returned, rest = function(*(stand_ins.get(n, arg) for n, arg in enumerate(args))), None
    name = getattr(function, "__name__", "the function")
    if has_aux:
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise SemanticError(
                f"{word}: `{name}` returns a pair (value, aux) where `has_aux=True`, not {described(returned)}"
            )
        returned, rest = returned
    several = isinstance(returned, (tuple, list))
    results = tuple(returned) if several else (returned,)
    for result in results:
        if not isinstance(result, Field):
            raise SemanticError(
                f"{word}: `{name}` returns {described(result)}; it returns a Field, or a tuple of Fields"
            )
    return Traced(tuple(stand_ins[n] for n in numbers), tuple(args[n] for n in numbers), results, several, rest)


class Substitution:
    """The graph of values with other ones in the place of some."""

    def __init__(self, places: Mapping[Node, Node]) -> None:
        self.places: dict[Node, Node] = dict(places)
        self.calls: dict[Call, Call] = {}

    def field(self, field: Field) -> Field:
        node = self.node(field.node)
        return field if node is field.node else Field.of(node, kind=field.kind)

    def node(self, node: Node) -> Node:
        for call in ordered([node], lambda result: (*result.call.inputs, *of_rules(result.call)), self.calls):
            self.calls[call] = self._moved(call)
        return self._now(node)

    def _now(self, node: Node) -> Node:
        if node in self.places or not isinstance(node, Result):
            return self.places.get(node, node)
        call = self.calls[node.call]
        return node if call is node.call else Result(call, node.index)

    def _moved(self, call: Call) -> Call:
        inputs = tuple(map(self._now, call.inputs))
        rules = {n: rule for n in range(len(call.kernel.outputs)) if (rule := rule_of(Result(call, n)))}
        if inputs == call.inputs and all(self._now(node) == node for node in of_rules(call)):
            return call
        moved = Call(call.kernel, call.identity, inputs, call.loc, call.names)
        for n, rule in rules.items():
            fields = (Field.of(self._now(field.node), kind=field.kind) for field in rule.inputs)
            enter(Result(moved, n), replace(rule, inputs=tuple(fields)))
        return moved


def of_rules(call: Call) -> Iterator[Node]:
    """The values that the rules of the results of a call go on at."""
    for n in range(len(call.kernel.outputs)):
        rule = rule_of(Result(call, n))
        if rule is not None:
            yield from (field.node for field in rule.inputs)


def ordered(nodes: Iterable[Node], inputs: Callable[[Result], Iterable[Node]], stop: Any) -> Iterator[Call]:
    """The calls that values need, producers first, as `inputs` says them; those in `stop` and what they need are left out."""
    order: dict[Call, None] = {}
    stack: list[tuple[Result, bool]] = [(node, False) for node in nodes if isinstance(node, Result)]
    while stack:
        node, ready = stack.pop()
        if node.call in order or node.call in stop:
            continue
        if ready:
            order[node.call] = None
            continue
        stack.append((node, True))
        stack.extend((each, False) for each in inputs(node) if isinstance(each, Result) and each.call not in order)
    yield from order
