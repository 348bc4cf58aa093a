"""`gp.checkpoint`: functions whose inner values reverse mode computes again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from gpuop.base.errors import SemanticError, described, naming_arguments
from gpuop.base.records import dataclass
from gpuop.dsl.fields.derivative_rules import with_rule
from gpuop.dsl.fields.field import Field
from gpuop.engine.repeated import captured_by
from gpuop.gradients.forward import Forward
from gpuop.gradients.values import cotangents, substituted
from gpuop.ir.values import Leaf, Node


@naming_arguments
def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose gradient computes the values between its arguments and its results again, and keeps none of them.

        layer = gp.checkpoint(layer)

    It takes less memory and more time. Values and gradients are the same bits, but for what several calls share, as a parameter:
    its shares are added call by call. What the function captures is kept, as its arguments are.

    Args:
        f: of Fields, `gp.Parameter`s and constants; it gives Fields, or tuples, lists or dicts of them.

    Returns:
        A function of the same arguments.

    Raises:
        SemanticError: it is no function.
    """
    if not callable(f):
        raise SemanticError(f"checkpoint takes a function of fields, not {described(f)}")

    @functools.wraps(f)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        own: dict[Node, Field] = {}  # by what stands for them
        result = f(
            *_mapped(args, functools.partial(_stand_in, own)), **_mapped(kwargs, functools.partial(_stand_in, own))
        )
        return _mapped(result, functools.partial(_result, getattr(f, "__name__", "checkpoint").strip("<>"), own))

    return checkpointed


def _mapped(value: Any, each: Callable[[Field], Field]) -> Any:
    """A value with other fields in the place of those in it."""
    if isinstance(value, Field):
        return each(value)
    if isinstance(value, (tuple, list)):
        items = [_mapped(item, each) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: _mapped(item, each) for key, item in value.items()}
    return value


def _stand_in(own: dict[Node, Field], field: Field) -> Field:
    node = field.node
    leaf = Leaf(node.type, by_value=isinstance(node, Leaf) and node.by_value, name=node.name)
    own[leaf] = field
    return Field.of(leaf, kind=field.kind)


def _result(name: str, own: dict[Node, Field], field: Field) -> Field:
    """A result of the function, with its rule."""
    inner = [*own, *captured_by([field.node], list(own))]
    inputs = [own[node] if node in own else Field.of(node) for node in inner]
    segment = _Segment(field.node, tuple(inner))
    (result,) = segment.at(inputs)
    if result.node != field.node:
        with_rule(result, name, inputs, segment.pulled, segment.pushed)
    return Field.of(result.node, kind=field.kind)


@dataclass(frozen=True, eq=False)
class _Segment:
    """The graph of a result, from the values that stand for its arguments, and those that it captures."""

    end: Node
    inner: tuple[Node, ...]

    def at(self, inputs: Sequence[Field], again: bool = False) -> list[Field]:
        places = {node: field.node for node, field in zip(self.inner, inputs, strict=True)}
        return substituted([Field.of(self.end)], places, again)

    def pulled(self, inputs: Sequence[Field], value: Field, cotangent: Field) -> list[Field | None]:
        (again,) = self.at(inputs, again=True)
        wanted = list(dict.fromkeys(field.node for field in inputs))
        pulls = dict(zip(wanted, cotangents([(again.node, cotangent)], wanted), strict=True))
        return [pulls.pop(field.node, None) for field in inputs]  # of a value that comes in twice once

    def pushed(self, inputs: Sequence[Field], value: Field, tangents: Sequence[Field | None]) -> Field | None:
        pairs = zip(inputs, tangents, strict=True)
        seeds = {field.node: tangent.node for field, tangent in pairs if tangent is not None}
        (slope,) = Forward(seeds).of([self.at(inputs)[0].node])
        return None if slope is None else Field.of(slope)
