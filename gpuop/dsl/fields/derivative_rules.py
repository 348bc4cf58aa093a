"""Rules of derivatives by value: a function of the library says how its result depends on the fields that came in.

A rule is of a value, not of a call: whoever walks backwards from a value with a rule goes on at its inputs, and skips the
calls between. Values without one go by the kernels of their calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpuop.base.finalizers import WeakKeys
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.services import Registry
from gpuop.ir.types import FieldType
from gpuop.ir.values import Call, Node, Result

Pull = Callable[..., Sequence[Field | None]]
Push = Callable[[Sequence[Field], Field, Sequence[Field | None]], Field | None]


# functions of the library's rules, in modules that need what the functions with these rules need
derivatives = Registry[Callable[..., Any]](
    {
        "": "gpuop.ops.reduce.derivatives",
        "gradient of a graph": "gpuop.gradients.of_graphs",
        "elementwise.": "gpuop.ops.elementwise.derivatives",
        "linalg.": "gpuop.lib.linalg.derivatives",
        **dict.fromkeys(("iterate pushed", "iterate pulled"), "gpuop.gradients.iteration"),
    }
)


@dataclass(frozen=True)
class Late:
    """A function of `derivatives` with its first arguments, found when it is called."""

    name: str
    args: tuple[Any, ...] = ()

    def __call__(self, *more: Any) -> Any:
        return derivatives[self.name](*self.args, *more)


@dataclass(frozen=True, eq=False)
class DerivativeRule:
    """The derivatives of a value.

    Attributes:
        name: the function, for messages.
        inputs: the fields that it depends on.
        kinds: the types of the value, or of all results, as functions see them: their nodes fold the axes of many.
        pull: cotangents of the inputs from the inputs, the value and its cotangent, None for none; or the reason why there are
            none, as the second half of a sentence; None: the push is transposed.
        push: the tangent of the value from the inputs, the value and the inputs' tangents, which are None where they are zero; or
            the reason why there is none; None: the tangent is that of the calls between.
        joint: whether the pull is of all results of the call together: it gets the tuples of them, of their cotangents, which
            are None where there are none, and of the positions of the inputs whose cotangents are wanted.
    """

    name: str
    inputs: tuple[Field, ...]
    kinds: tuple[FieldType, ...]
    pull: Pull | str | None
    push: Push | str | None = None
    joint: bool = False


_rules: WeakKeys[Call, dict[int, DerivativeRule]] = WeakKeys()


def with_rule(
    result: Field, name: str, inputs: Sequence[Field], pull: Pull | str | None, push: Push | str | None = None
) -> Field:
    """The result of a function, whose rule is entered; pulls and pushes may not refer to the inputs but by their arguments."""
    if isinstance(result.node, Result) and all(result.node != field.node for field in inputs):
        enter(result.node, DerivativeRule(name, tuple(inputs), (result.type.labelled(()),), pull, push))
    return result


def enter(node: Result, rule: DerivativeRule) -> None:
    """Enter the rule of a value."""
    _rules.setdefault(node.call, {})[node.index] = rule


def rule_of(node: Node) -> DerivativeRule | None:
    """The rule of a value; None where it goes by its kernel."""
    return None if not isinstance(node, Result) else (_rules.get(node.call) or {}).get(node.index)


def has_rules(call: Call) -> bool:
    """Return whether results of a call have rules."""
    return call in _rules
