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
SAME = "same"  # an output of the first Field's type


def inputs_of(function: Callable[..., Any], name: str, inputs: Any) -> tuple[tuple[str, Declared], ...]:
    """What `inputs=` of an operator says, by arguments.

    Raises:
        SemanticError: it is no dictionary of Dims and FieldTypes by the names of arguments.
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
    """Look at arguments; those whose dimensions have no names get the declared ones.

    Raises:
        SemanticError: some are not what was declared: it names all of them.
    """
    wrong = list[str]()
    for argument, kind in declared:
        if argument not in bound.arguments:
            continue  # `*fields` without any
        given = bound.arguments[argument]
        several = bound.signature.parameters[argument].kind
        if several is inspect.Parameter.VAR_POSITIONAL:
            each = [(f"{argument}[{n}]", value) for n, value in enumerate(given)]
            bound.arguments[argument] = tuple(_taken(what, kind, value, wrong) for what, value in each)
        elif several is inspect.Parameter.VAR_KEYWORD:
            bound.arguments[argument] = {key: _taken(key, kind, value, wrong) for key, value in given.items()}
        elif given is not None or bound.signature.parameters[argument].default is not None:
            bound.arguments[argument] = _taken(argument, kind, given, wrong)
    wrong += _unequal([(name, bound.arguments.get(name)) for name, _ in declared]) if not wrong else []
    if wrong:
        raise SemanticError(f"operator `{name}` does not take these arguments: {'; '.join(wrong)}")


def _unequal(arguments: list[tuple[str, Any]]) -> Iterator[str]:
    """Fields whose dimensions of one name are not equally long; one of 1 goes with any."""
    first: dict[str, tuple[str, int]] = {}
    for argument, given in arguments:
        for field in given if isinstance(given, tuple) else (given,):
            for name, extent in field.dims if isinstance(field, Field) else ():
                if name and extent is not None and extent != 1:
                    other, known = first.setdefault(name, (argument, extent))
                    if known != extent:
                        yield f"`{argument}` has {name}={extent}, and `{other}` has {name}={known}"


def _taken(argument: str, kind: Declared, given: Any, wrong: list[str]) -> Any:
    """The argument, with names; what is wrong with it is added to a list."""
    if isinstance(given, Field):
        had = given.type
        if _fits(kind, had):
            names = given.dims.naming(kind if isinstance(kind, Dims) else kind.dims).names
            return given if names == given.dims.names else Field.of(given.node, kind=had.labelled(names))
        wrong.append(f"`{argument}` is to be {kind}, and is {had if isinstance(kind, FieldType) else had.dims}")
    elif isinstance(given, Dims) and isinstance(kind, Dims):
        if kind.takes(given):
            return given.naming(kind)
        wrong.append(f"`{argument}` is to be {kind}, and is {given}")
    else:
        what = f"a {kind} field" if isinstance(kind, FieldType) else f"a Field or Dims of {kind}"
        wrong.append(f"`{argument}` is to be {what}, and is {described(given)}")
    return given


def _fits(kind: Declared, given: FieldType) -> bool:
    if isinstance(kind, Dims):
        return kind.takes(given.dims)
    return kind == given and kind.dims.takes(given.dims)


# --- results ----------------------------------------------------------------------------------------------------------


def outputs_of(name: str, declared: Any, bound: inspect.BoundArguments) -> Any:
    """What `outputs=` of an operator says for these arguments.

    Raises:
        SemanticError: it is a function that does not take all of them.
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


def result_type(declared: Any, given: Mapping[str, Any], dtype: Any) -> Any:
    """The type of an output that is declared by Dims, or as that of the first Field; anything else as it is.

    Args:
        given: the arguments; an extent that is not known is that of the first one that has a dimension of the name.

    Raises:
        SemanticError: no argument has such a dimension, or is a Field; another word.
    """
    if isinstance(declared, str) and declared == SAME:
        first = next((v.type for v in given.values() if isinstance(v, Field)), None)
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
            found = next((known for known in _known(name, given)), None)
            if found is None:
                raise SemanticError(
                    f"an output is {declared}, and no argument has a dimension {name or '_'!r} to say how long it is"
                )
            dims = dims.replace(**{name: found})
    split = len(dims.grid)
    return FieldType(Shape(dims.shape[:split]), Shape(dims.shape[split:]), dtype, dims)


def _known(name: str, given: Mapping[str, Any]) -> Iterator[int]:
    """The extents of arguments' dimensions of a name: those of fields first."""
    kinds = [v.dims for v in given.values() if isinstance(v, Field)] + [
        v for v in given.values() if isinstance(v, Dims)
    ]
    return (extent for dims in kinds for each, extent in dims if each and each == name and extent is not None)


def is_open(declared: Any) -> bool:
    """Whether outputs are declared by their dimensions, and have the dtypes of their values."""
    outputs = declared if isinstance(declared, (tuple, list)) else (declared,)
    return any(isinstance(each, Dims) for each in outputs[:MAX_OUTPUTS])
