"""`gp.stop_gradient`: a value as a constant."""

from __future__ import annotations

from gpuop.base.errors import SemanticError, described
from gpuop.dsl.fields.derivative_rules import with_rule
from gpuop.dsl.fields.field import Field
from gpuop.ops.elementwise.algebra import copied


def stop_gradient(x: Field) -> Field:
    """The value of a Field as a constant: of all derivatives, its own is 0.

    It is the only way to a derivative of 0 through what has none: without it, that is refused.

    Args:
        x: a Field.

    Returns:
        A Field of the same type.

    Raises:
        SemanticError: it is no Field.
    """
    if not isinstance(x, Field):
        raise SemanticError(f"stop_gradient is of a Field, not of {described(x)}")
    constant = copied(Field.of(x.node))
    with_rule(constant, "stop_gradient", [], lambda inputs, value, cotangent: [], lambda inputs, value, tangents: None)
    return Field.of(constant.node, kind=x.kind)
