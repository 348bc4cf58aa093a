"""Arguments of operators: fields, and constants keyed by content (numbers, lists, tuples, NumPy arrays)."""

from __future__ import annotations

import inspect
from array import array as PlainArray
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError, described
from gpuop.dsl.builtins.shared_memory import of_weights
from gpuop.dsl.fields.from_arrays import NUMERIC, Placeholder, is_array, remedy
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.dsl.recorder.target_facts import TargetExpression, TargetRecord
from gpuop.dsl.recorder.value import Value
from gpuop.ir.types import FieldType

EQUAL_BUT_OTHER = (
    float,
    complex,
    np.inexact,
    frozenset,
    FieldType,
)  # types with equal values that differ, such as 0.0 and -0.0
MOST_NUMBERS = 4096  # limit of one constant, which is compiled in
DEEPEST = 32


def members(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Arguments with one name each: those of `*fields` and `**fields`, and members of tuples and lists, one by one."""
    for value in bound.arguments.values():  # a generator would be more calls
        if isinstance(value, (tuple, list, dict)):
            break
    else:
        return dict(bound.arguments)
    flat: dict[str, Any] = {}

    def add(name: str, value: Any) -> None:
        if isinstance(value, (tuple, list)) and value:
            for k, v in enumerate(value):
                add(f"{name}[{k}]", v)
        else:
            flat[name] = value

    for name, value in bound.arguments.items():
        if bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            for key, v in value.items():
                add(key, v)
        else:
            add(name, value)
    return flat


def check(operator: str, bound: inspect.BoundArguments) -> None:
    """Refuse arguments that no operator takes.

    Raises:
        SemanticError: a kernel value, an array of another library, or a constant of too many numbers.
    """
    for value in bound.arguments.values():
        if not isinstance(value, FieldLike):
            break
    else:
        return
    check_size(f"operator `{operator}`", bound.arguments)
    for name, value in members(bound).items():
        if isinstance(value, Value):
            raise SemanticError(
                f"operator `{operator}` is called with a kernel value for `{name}`; "
                "inside a body call plain Python functions, operators take Fields"
            )
        if not isinstance(value, np.ndarray) and is_array(value):
            raise SemanticError(
                f"argument `{name}` of operator `{operator}` is an array of another library; "
                "wrap it in a Field (`gp.ScalarField(a)`) or a `gp.Parameter`"
            )
        if isinstance(value, np.ndarray) and value.dtype.kind not in NUMERIC:
            raise SemanticError(
                f"argument `{name}` of operator `{operator}` is an array of {value.dtype}, not of numbers"
            )


def array_like(bound: inspect.BoundArguments) -> str:
    """Return the first argument that may be meant as a Field: an array, one of a pipeline, or a list; empty if there is none."""
    arrays = (list, Placeholder, np.ndarray)
    return next((name for name, value in bound.arguments.items() if isinstance(value, arrays)), "")


def check_size(owner: str, arguments: Mapping[str, Any]) -> None:
    """Refuse constants of too many numbers."""
    for name, value in arguments.items():
        count = sum(v.size if isinstance(v, np.ndarray) else 1 for v in leaves(owner, {name: value}))
        if count > MOST_NUMBERS:
            raise SemanticError(
                f"argument `{name}` of {owner} has {count} numbers: arrays and lists are constants that are compiled in, of at "
                f"most {MOST_NUMBERS}; make it a Field (`gp.ScalarField(a)`) or a `gp.Parameter`{of_weights(value)}"
            )


def leaves(owner: str, arguments: Mapping[str, Any]) -> Iterator[Any]:
    """Arguments, with tuples, lists and dictionaries replaced by their members, recursively.

    Raises:
        SemanticError: the nesting is too deep, as in a list that contains itself.
    """
    for name, value in arguments.items():
        yield from _leaves(f"argument `{name}` of {owner}", value, 0)


def _leaves(label: str, value: Any, depth: int) -> Iterator[Any]:
    if not isinstance(value, (tuple, list, dict)):
        yield value
        return
    if depth == DEEPEST:
        raise SemanticError(f"{label} is a list that holds itself, or lists in lists more than {DEEPEST} deep")
    for member in value.values() if isinstance(value, dict) else value:
        yield from _leaves(label, member, depth + 1)


def no_fields(bound: inspect.BoundArguments, flat: Mapping[str, Any]) -> tuple[Any, ...]:
    """Arguments besides Fields, and the lists and tuples that hold them."""
    return (*(v for v in flat.values() if not isinstance(v, FieldLike)), *_lists(bound.arguments.values()))


def _lists(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (tuple, list)):
            yield value
            yield from _lists(value)


def nesting(value: Any) -> Any:
    """Tuple and list structure of an argument."""
    return (type(value), *map(nesting, value)) if isinstance(value, (tuple, list)) else None


def content(value: Any) -> Any:
    """Key of a constant: type and value; all numbers of an array, the members of lists and tuples."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (tuple, list)):
        return (type(value), *map(content, value))
    plain = repr(value) if isinstance(value, (TargetExpression, TargetRecord)) else value
    return (type(value), plain, str(value) if isinstance(value, EQUAL_BUT_OTHER) else "")


def hashed_content(operator: str, name: str, value: Any) -> Any:
    """The content of an operator's constant.

    Raises:
        SemanticError: it can change unseen.
    """
    constant = content(value)
    try:
        hash(constant)
    except TypeError:
        attributes = value if isinstance(value, dict) else getattr(value, "__dict__", {})
        fields = [str(name) for name, member in attributes.items() if isinstance(member, FieldLike)]
        if fields:
            raise SemanticError(
                f"argument `{name}` of operator `{operator}` is {described(value)} that holds Fields: name them one by one, each "
                f"an argument of its own, as in `{operator}({', '.join(f'{each}={each}' for each in fields[:3])})`"
            ) from None
        raise SemanticError(
            f"argument `{name}` of operator `{operator}` is {described(value)}; it must be a Field, a Parameter, numbers "
            "(also in lists, tuples and arrays), or another constant that Python can hash"
        ) from None
    return constant


def contents(pipeline: str, constants: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The contents of a pipeline's constants, with their names.

    Raises:
        SemanticError: one can change unseen, or holds arrays.
    """
    for name, value in constants.items():
        try:
            hash(frozen(value))
        except (TypeError, ValueError):  # ValueError for a memoryview
            _refuse_buffer(pipeline, name, value)
            attributes = list(getattr(value, "__dict__", {}).values())
            if any(map(is_array, [*leaves(pipeline, {name: value}), *attributes])):
                raise SemanticError(
                    f"`{name}` of {pipeline} holds arrays; each array is an argument with a name of its own: name them one by one"
                ) from None
            raise SemanticError(
                f"argument `{name}` of {pipeline} is {described(value)}{remedy(value)}"
                if remedy(value)
                else f"argument `{name}` of {pipeline} is {described(value)}; what is not an array is a Parameter, "
                "or a constant that Python can hash, or a list of those"
            ) from None
    return tuple((name, content(_by_code(value))) for name, value in constants.items())


def _refuse_buffer(pipeline: str, name: str, value: Any) -> None:
    """Refuse memory that is not an array."""
    if isinstance(value, (memoryview, bytearray, PlainArray)):
        raise SemanticError(
            f"argument `{name}` of {pipeline} is {described(value)}, not an array of NumPy or of another library; give "
            f"`np.asarray({name})`"
        )


def functions_among(constants: Iterable[Any]) -> tuple[FunctionType, ...]:
    """Functions among the constants of a pipeline. `contents` keys them by code; their captures are compared at each call."""
    functions: list[FunctionType] = []
    for value in constants:
        if type(value) is FunctionType:
            functions.append(value)
        elif type(value) is tuple:
            functions += functions_among(value)
    return tuple(functions)


def _by_code(value: Any) -> Any:
    if type(value) is FunctionType:
        return value.__code__
    return tuple(map(_by_code, value)) if type(value) is tuple else value


def frozen(value: Any) -> Any:
    """Lists as tuples, which are hashable if their members are."""
    return tuple(map(frozen, value)) if isinstance(value, (tuple, list)) else value


def own(value: Any) -> Any:
    """Argument as the body receives it: lists and arrays are copies, and arrays read-only."""
    if type(value) in (list, tuple):
        return type(value)(map(own, value))
    if not isinstance(value, np.ndarray):
        return value
    copy = np.array(value)
    copy.flags.writeable = False
    return copy
