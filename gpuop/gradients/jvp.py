"""`gp.jvp` and `gp.linearize`: forward mode of functions of Fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpuop.base.errors import SemanticError, described, naming_arguments
from gpuop.dsl.fields.field import Field
from gpuop.gradients.forward import Forward
from gpuop.gradients.traced import Substitution, Traced, trace
from gpuop.ir.values import Node
from gpuop.ops.create.computed_fields import filled


@naming_arguments
def jvp(f: Callable[..., Any], primals: Sequence[Field], tangents: Sequence[Field]) -> tuple[Any, Any]:
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
    checked = _primals("jvp", primals)
    directions = _tangents("jvp", checked, tangents)
    traced = trace("jvp", f, checked, range(len(checked)))
    actual = traced.actual()
    return traced.returned([actual.field(field) for field in traced.results]), _pushed(traced, directions, actual)


@naming_arguments
def linearize(f: Callable[..., Any], *primals: Field) -> tuple[Any, Callable[..., Any]]:
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
    checked = _primals("linearize", primals)
    traced = trace("linearize", f, checked, range(len(checked)))
    actual = traced.actual()

    def push(*tangents: Field) -> Any:
        """The derivative in a direction."""
        return _pushed(traced, _tangents("the function of linearize", checked, tangents), actual)

    return traced.returned([actual.field(field) for field in traced.results]), push


def _pushed(traced: Traced, tangents: Sequence[Field], actual: Substitution) -> Any:
    """The tangents of a function's results."""
    forward = Forward({own.node: tangent.node for own, tangent in zip(traced.arguments, tangents, strict=True)})
    pushed = forward.of([field.node for field in traced.results])
    moved = [None if node is None else actual.node(node) for node in pushed]
    return traced.returned([_slope(field, node) for field, node in zip(traced.results, moved, strict=True)])


def _slope(field: Field, tangent: Node | None) -> Field | None:
    """The tangent of a result, zeros if it does not depend on the arguments; None of integers."""
    if tangent is None:
        return filled(field.type, 0) if is_floating(field) else None
    return Field.of(tangent, kind=field.kind)


def is_floating(field: Field) -> bool:
    """Return whether a field is of floating or complex numbers, in memory too."""
    return field.type.storage.kind == "f"


def _primals(word: str, primals: Any) -> tuple[Field, ...]:
    if not isinstance(primals, (tuple, list)) or not primals:
        raise SemanticError(f"{word}: the arguments are a tuple of Fields, as in `(u,)`, not {described(primals)}")
    for field in primals:
        if not isinstance(field, Field):
            raise SemanticError(
                f"{word} differentiates by Fields, not by {described(field)}; let the function capture what is constant: "
                f"`lambda u: f(u, …)`"
            )
        if not is_floating(field):
            raise SemanticError(
                f"{word} differentiates by floating numbers, and an argument is a {field.type} field; convert it with "
                '`.astype("float32")`, or let the function capture it: `lambda u: f(u, n)`'
            )
    return tuple(primals)


def _tangents(word: str, primals: Sequence[Field], tangents: Any) -> list[Field]:
    if not isinstance(tangents, (tuple, list)) or len(tangents) != len(primals):
        count = f"{len(tangents)}" if isinstance(tangents, (tuple, list)) else described(tangents)
        raise SemanticError(f"{word}: there is a tangent for each of {len(primals)} arguments, in a tuple, not {count}")
    for field, tangent in zip(primals, tangents, strict=True):
        if not isinstance(tangent, Field) or tangent.type != field.type:
            what = f"a {tangent.type} field" if isinstance(tangent, Field) else described(tangent)
            raise SemanticError(f"{word}: the tangent of a {field.type} field has its type; it is {what}")
    return list(tangents)
