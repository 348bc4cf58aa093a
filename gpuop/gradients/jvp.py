"""`gp.jvp` and `gp.linearize`: forward mode of functions of Fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpuop.base.errors import SemanticError, described, naming_arguments
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Placeholder
from gpuop.dsl.fields.sources import Deferred
from gpuop.gradients.forward import Forward
from gpuop.gradients.reverse import _Trace, grad
from gpuop.gradients.values import is_differentiable
from gpuop.ir.values import Leaf, Node
from gpuop.ops.create.computed_fields import filled


@naming_arguments
def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of a function of Fields, and its derivative in a direction: forward mode.

        value, slope = gp.jvp(energy, (u,), (direction,))

    It takes every construct of kernels but those that have no derivative: `_while` too, local memory and groups of threads.
    Fields that the function captures are constants.

    Args:
        f: a function of as many Fields; it returns a Field, or a tuple of Fields.
        primals: its arguments, of floating or complex numbers.
        tangents: the direction: a Field of the same type for each.

    Returns:
        What `f` returns, and its derivative, of the same structure and types; None where that is of integers or bools.

    Raises:
        SemanticError: an argument or a tangent of another type, or, at its line, a construct that has no derivative.
    """
    linear = _Linear("jvp", f, primals)
    return linear.values(), linear.pushed(tangents)


@naming_arguments
def linearize(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of a function of Fields, and its derivative there, a linear function of tangents: forward mode.

        value, push = gp.linearize(energy, u)
        slopes = [push(direction) for direction in directions]

    Args:
        f, primals: as of `gp.jvp`.

    Returns:
        What `f` returns, and a function of a tangent for each argument. What its calls need of `f` they share.

    Raises:
        SemanticError: as of `gp.jvp`; what has no derivative is found at the first call of the function.
    """
    linear = _Linear("linearize", f, primals)

    def push(*tangents: Any) -> Any:
        """The derivative in a direction."""
        return linear.pushed(tangents)

    return linear.values(), push


@naming_arguments
def hvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The Hessian of a function times a direction: forward mode over reverse mode, at about the cost of two gradients.

        curved = gp.hvp(energy, (u,), (direction,))

    Args:
        f: a function of Fields; it gives a real 0D Field, as of `gp.grad`.
        primals: its arguments, of floating or complex numbers.
        tangents: the direction: a Field of the same type for each.

    Returns:
        The derivative of the gradient in that direction: a Field of the type of the argument, or a tuple of them where there are
        several arguments.

    Raises:
        SemanticError: as of `gp.grad` and `gp.jvp`.
    """
    gradient = grad(f, tuple(range(len(primals))) if isinstance(primals, (tuple, list)) else 0)
    pushed = jvp(gradient, primals, tangents)[1]
    return pushed if len(primals) > 1 else pushed[0]


class _Linear:
    """A function at its arguments."""

    def __init__(self, word: str, function: Callable[..., Any], primals: Any) -> None:
        if not isinstance(primals, (tuple, list)) or not primals:
            raise SemanticError(f"{word}: the arguments are a tuple of Fields, as in `(u,)`, not {described(primals)}")
        self.trace = _Trace(word, function, primals, {}, range(len(primals)))
        result = self.trace.result
        self.several = isinstance(result, (tuple, list))
        self.outputs = self.trace.fields(result if self.several else (result,))

    def values(self) -> Any:
        return self.returned(self.trace.outside(self.outputs))

    def returned(self, fields: Sequence[Any]) -> Any:
        """Fields in the structure of the function's results."""
        return tuple(fields) if self.several else fields[0]

    def pushed(self, tangents: Any) -> Any:
        """The tangents of the results; None of integers."""
        forward = Forward(self.seeds(tangents))
        slopes: list[Field | None] = []
        for field, node in zip(self.outputs, forward.of([field.node for field in self.outputs]), strict=True):
            if node is not None:
                slopes += self.trace.outside([Field.of(node, kind=field.kind)])
            else:
                zeros = is_differentiable(field.type)
                slopes.append(Field.of(filled(field.node.type, 0).node, kind=field.kind) if zeros else None)
        return self.returned(slopes)

    def seeds(self, tangents: Any) -> dict[Node, Node]:
        """The tangents of the values that stand for the arguments."""
        arguments = self.trace.arguments
        if not isinstance(tangents, (tuple, list)) or len(tangents) != len(arguments):
            count = len(tangents) if isinstance(tangents, (tuple, list)) else described(tangents)
            raise SemanticError(
                f"{self.trace.word}: there is a tangent for each of {len(arguments)} arguments, in a tuple, not {count}"
            )
        ends = [(field.node, field) for field in self.outputs]
        return {
            node: self.seed(node, argument.value, tangent)
            for argument, tangent in zip(arguments.values(), tangents, strict=True)
            for node in self.trace.leaves(argument, ends)
        }

    def seed(self, node: Node, value: Any, tangent: Any) -> Node:
        """The tangent of a value that stands for an argument: a Field, or an array of a pipeline."""
        if isinstance(tangent, Placeholder) and isinstance(node, Leaf) and isinstance(node.source, Deferred):
            source = node.source
            if (tangent.shape, tangent.dtype) == (source.placeholder.shape, source.placeholder.dtype):
                return Leaf(node.type, Deferred(tangent, source.make, source.kind))
        if isinstance(tangent, Field) and tangent.node.type == node.type:
            return tangent.node
        what = f"a {tangent.type} field" if isinstance(tangent, Field) else described(tangent)
        own = f"a {value.type} field" if isinstance(value, Field) else described(value)
        raise SemanticError(f"{self.trace.word}: a tangent has the type of its argument, here of {own}; it is {what}")
