"""Declared dimensions and types of the arguments and results of operators."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gpuop.base.errors import SemanticError, described, meant
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.gpu_operator import MAX_OUTPUTS
from gpuop.ir.dims import Dims
from gpuop.ir.types import FieldType, Shape

Declared = Dims | FieldType
SAME = "same"  # an output with the type of the first Field


def inputs_of(function: Callable[..., Any], name: str, inputs: Any) -> tuple[tuple[str, Declared], ...]:
    """Declared inputs of an operator (`inputs=`), by argument.

    Raises:
        SemanticError: `inputs` is no dictionary of Dims and FieldTypes by argument name.
    """
    if inputs is None:
        return ()
    if not isinstance(inputs, Mapping):
        raise SemanticError(f'`inputs=` is a dictionary, as `dict(image=gp.Dims("y:x"))`, not {described(inputs)}')
    parameters = inspect.signature(function).parameters
    for argument, kind in inputs.items():
        if argument not in parameters:
            raise SemanticError(
                f"operator `{name}` declares `{argument}`, and has no such argument: it has {', '.join(parameters) or 'none'}"
            )
        if not isinstance(kind, (Dims, FieldType)):
            raise SemanticError(
                f"operator `{name}`: `{argument}` is declared by gp.Dims or a FieldType, not by {described(kind)}"
            )
    return tuple(inputs.items())


def checked(name: str, declared: tuple[tuple[str, Declared], ...], bound: inspect.BoundArguments) -> None:
    """Check arguments against their declaration; dimensions without names get the declared ones.

    Raises:
        SemanticError: some do not fit their declaration; it names all of them.
    """
    wrong = list[str]()
    for argument, kind in declared:
        if argument not in bound.arguments:
            continue  # `*fields` without any
        argument_value = bound.arguments[argument]
        several = bound.signature.parameters[argument].kind
        if several is inspect.Parameter.VAR_POSITIONAL:
            members = [(f"{argument}[{n}]", value) for n, value in enumerate(argument_value)]
            bound.arguments[argument] = tuple(_with_names(label, kind, value, wrong) for label, value in members)
        elif several is inspect.Parameter.VAR_KEYWORD:
            bound.arguments[argument] = {
                key: _with_names(key, kind, value, wrong) for key, value in argument_value.items()
            }
        elif argument_value is not None or bound.signature.parameters[argument].default is not None:
            bound.arguments[argument] = _with_names(argument, kind, argument_value, wrong)
    wrong += _unequal([(name, bound.arguments.get(name)) for name, _ in declared]) if not wrong else []
    if wrong:
        raise SemanticError(f"operator `{name}` does not take these arguments: {'; '.join(wrong)}")


def _unequal(arguments: list[tuple[str, Any]]) -> Iterator[str]:
    """Faults: fields whose dimensions of one name differ in length; 1 fits any."""
    first: dict[str, tuple[str, int]] = {}
    for argument, value in arguments:
        for field in value if isinstance(value, tuple) else (value,):
            for name, extent in field.dims if isinstance(field, Field) else ():
                if name and extent is not None and extent != 1:
                    other, length = first.setdefault(name, (argument, extent))
                    if length != extent:
                        yield f"`{argument}` has {name}={extent}, and `{other}` has {name}={length}"


def _with_names(argument: str, kind: Declared, value: Any, wrong: list[str]) -> Any:
    """Argument with names; its faults are appended to a list."""
    if isinstance(value, Field):
        had = value.type
        if _fits(kind, had):
            names = value.dims.naming(kind if isinstance(kind, Dims) else kind.dims).names
            return value if names == value.dims.names else Field.of(value.node, kind=had.labelled(names))
        wrong.append(f"`{argument}` is to be {kind}, and is {had if isinstance(kind, FieldType) else had.dims}")
    elif isinstance(value, Dims) and isinstance(kind, Dims):
        if kind.takes(value):
            return value.naming(kind)
        wrong.append(f"`{argument}` is to be {kind}, and is {value}")
    else:
        expected = f"a {kind} field" if isinstance(kind, FieldType) else f"a Field or Dims of {kind}"
        wrong.append(f"`{argument}` is to be {expected}, and is {described(value)}")
    return value


def _fits(kind: Declared, actual: FieldType) -> bool:
    if isinstance(kind, Dims):
        return kind.takes(actual.dims)
    return kind == actual and kind.dims.takes(actual.dims)


# --- results ----------------------------------------------------------------------------------------------------------


def outputs_of(name: str, declared: Any, bound: inspect.BoundArguments) -> Any:
    """Declared outputs of an operator (`outputs=`) for these arguments.

    Raises:
        SemanticError: `outputs=` is a function that does not take all of them.
    """
    if isinstance(declared, Dims) or not callable(declared):
        return declared
    signature = inspect.signature(declared)
    try:
        signature.bind(*bound.args, **bound.kwargs)
    except TypeError as wrong:
        named = {
            parameter: bound.arguments[parameter] for parameter in signature.parameters if parameter in bound.arguments
        }
        if len(named) == len(signature.parameters):
            return declared(**named)
        raise SemanticError(
            f"`outputs=` of operator `{name}` is a function that does not take all of the operator's arguments, which are "
            f"{', '.join(bound.arguments)} ({wrong}); let it take all, or only some under their names"
        ) from None
    return declared(*bound.args, **bound.kwargs)


def result_type(declared: Any, arguments: Mapping[str, Any], dtype: Any) -> Any:
    """Type of an output declared by Dims, or as that of the first Field; any other declaration as it is.

    Args:
        arguments: by name; an unknown extent is that of the first argument with a dimension of the name.

    Raises:
        SemanticError: no argument has such a dimension, or is a Field; or another text.
    """
    if isinstance(declared, str) and declared == SAME:
        first = next((v.type for v in arguments.values() if isinstance(v, Field)), None)
        if first is None:
            raise SemanticError('`outputs="same"` is the type of the first Field, and no argument is one')
        return first
    if isinstance(declared, str):
        raise SemanticError(
            f'an output is declared by a FieldType, Dims or "{SAME}", not by {declared!r}{meant(declared, (SAME,))}'
        )
    if not isinstance(declared, Dims):
        return declared
    dims = declared
    for name, extent in declared:
        if extent is None:
            length = next((each for each in _extents(name, arguments)), None)
            if length is None:
                raise SemanticError(
                    f"an output is {declared}, and no argument has a dimension {name or '_'!r} to say how long it is"
                )
            dims = dims.replace(**{name: length})
    split = len(dims.grid)
    return FieldType(Shape(dims.shape[:split]), Shape(dims.shape[split:]), dtype, dims)


def _extents(name: str, arguments: Mapping[str, Any]) -> Iterator[int]:
    """Extents of the dimensions of a name among the arguments, fields first."""
    kinds = [v.dims for v in arguments.values() if isinstance(v, Field)] + [
        v for v in arguments.values() if isinstance(v, Dims)
    ]
    return (
        extent for dims in kinds for dim_name, extent in dims if dim_name and dim_name == name and extent is not None
    )


def is_open(declared: Any) -> bool:
    """True if outputs are declared by dimensions alone, and take the dtypes of their values."""
    outputs = declared if isinstance(declared, (tuple, list)) else (declared,)
    return any(isinstance(each, Dims) for each in outputs[:MAX_OUTPUTS])
