"""Updated arguments of an operator (`inout=`), which are its outputs."""

from __future__ import annotations

import inspect
from collections.abc import Container, Mapping, Sequence
from typing import Any

from gpuop.base.errors import SemanticError, described
from gpuop.dsl.fields import services
from gpuop.dsl.fields.field import Field
from gpuop.dsl.recorder.recorder import Recorder, UpdatedField, current
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf


def names_of(inout: Any, signature: inspect.Signature, outputs: Any, default: Any) -> tuple[str, ...]:
    """Names of the updated arguments, in the order of the outputs.

    Raises:
        SemanticError: a name is no argument, or there are `outputs=` or a `default=` too.
    """
    names = (inout,) if isinstance(inout, str) else inout
    if not isinstance(names, (tuple, list)) or not all(isinstance(name, str) for name in names):
        raise SemanticError(f"`inout=` is the name of an argument, or a tuple of names, not {described(inout)}")
    plain = [name for name, p in signature.parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    for k, name in enumerate(names):
        if name not in plain or name in names[:k]:
            again = "twice" if name in plain else f", which is no argument; these are {', '.join(plain) or 'none'}"
            raise SemanticError(f"`inout=` names {name!r} {again}".replace(" ,", ","))
    if names and (outputs is not None or default is not None):
        option = "outputs" if outputs is not None else "default"
        raise SemanticError(f"an operator that updates its arguments has them as outputs: leave out `{option}=`")
    return tuple(names)


def types_of(operator: str, updated: Mapping[str, Any]) -> tuple[FieldType, ...]:
    """The types of the outputs.

    Raises:
        SemanticError: an updated argument is no Field.
    """
    for name, value in updated.items():
        if not isinstance(value, Field):
            raise SemanticError(f"operator `{operator}` updates `{name}`, which is a Field, not {described(value)}")
    return tuple(field.type for field in updated.values())


def begin_updates(
    recorder: Recorder, names: Sequence[str], bound: inspect.BoundArguments, in_memory: Container[str]
) -> inspect.BoundArguments:
    """Arguments of a body, with placeholder fields for those that it updates.

    Args:
        in_memory: names of those that threads access at other points than their own.
    """
    arguments = dict(bound.arguments)
    for name, slot in zip(names, recorder.outputs, strict=False):
        slot.updates, field = name, arguments[name]
        if name in in_memory:
            field = _in_planes(recorder, name, field)
        placeholder = Field.of(Leaf(slot.param.type), kind=slot.kind)
        recorder.updated[placeholder.node] = UpdatedField(recorder, name, field, slot, name in in_memory)
        arguments[name] = placeholder
    return inspect.BoundArguments(bound.signature, arguments)


def unordered(field: Field) -> None:
    """Say in a body of the library's that the order does not matter in which threads read and write a field that they update.

    Checks then see no race there, but all others.
    """
    current().updated[field.node].slot.unordered = True


def _in_planes(recorder: Recorder, name: str, field: Field) -> Field:
    """The field, or a copy if its memory layout is not that of gpuop."""
    if isinstance(field.node, Leaf) and field.node.by_value:
        raise SemanticError(
            f"`{name}` is a parameter, which has no memory that threads could update; read it as another argument"
        )
    node = services.above.own(field.node)
    recorder.hints[node] = name
    return Field.of(node, kind=field.type)
