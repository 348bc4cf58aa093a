"""Arguments of operators: fields, and constants keyed by content (numbers, lists, tuples, NumPy arrays)."""

from __future__ import annotations

import inspect
from array import array as PlainArray
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError, described
from gpuop.dsl.builtins.shared_memory import MANY_WEIGHTS
from gpuop.dsl.fields.from_arrays import NUMERIC, is_array, remedy
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.dsl.recorder.target_facts import TargetExpression, TargetRecord
from gpuop.dsl.recorder.value import Value
from gpuop.ir.types import FieldType

EQUAL_BUT_OTHER = (float, complex, np.inexact, frozenset, FieldType)  # equal others, as zeros of both signs are
MOST_NUMBERS = 4096  # in one constant: a kernel is compiled for their values
DEEPEST = 32


def members(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Every argument under a name of its own: those of `*fields` and `**fields`, and members of tuples and lists, one by one."""
    if not any(isinstance(value, (tuple, list, dict)) for value in bound.arguments.values()):
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
    """Refuse what an operator does not take.

    Raises:
        SemanticError: a kernel value, another library's array, or a constant of too many numbers.
    """
    if all(isinstance(value, FieldLike) for value in bound.arguments.values()):
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


def check_size(owner: str, given: Mapping[str, Any]) -> None:
    """Refuse constants of too many numbers."""
    for name, value in given.items():
        count = sum(v.size if isinstance(v, np.ndarray) else 1 for v in leaves(owner, {name: value}))
        if count > MOST_NUMBERS:
            raise SemanticError(
                f"argument `{name}` of {owner} has {count} numbers: arrays and lists are constants that are compiled in, of at "
                f"most {MOST_NUMBERS}; make it a Field (`gp.ScalarField(a)`) or a `gp.Parameter`{MANY_WEIGHTS}"
            )


def leaves(owner: str, given: Mapping[str, Any]) -> Iterator[Any]:
    """What arguments hold: of tuples, lists and dictionaries their members, and the members of those.

    Raises:
        SemanticError: they lie too deep, as in a list that is a member of itself.
    """
    for name, value in given.items():
        yield from _leaves(f"argument `{name}` of {owner}", value, 0)


def _leaves(what: str, value: Any, depth: int) -> Iterator[Any]:
    if not isinstance(value, (tuple, list, dict)):
        yield value
        return
    if depth == DEEPEST:
        raise SemanticError(f"{what} is a list that holds itself, or lists in lists more than {DEEPEST} deep")
    for member in value.values() if isinstance(value, dict) else value:
        yield from _leaves(what, member, depth + 1)


def no_fields(bound: inspect.BoundArguments, given: Mapping[str, Any]) -> tuple[Any, ...]:
    """What an operator is given besides Fields, and the lists and tuples that hold it."""
    return (*(v for v in given.values() if not isinstance(v, FieldLike)), *_lists(bound.arguments.values()))


def _lists(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (tuple, list)):
            yield value
            yield from _lists(value)


def nesting(value: Any) -> Any:
    """Which members of an argument are in tuples, and which in lists."""
    return (type(value), *map(nesting, value)) if isinstance(value, (tuple, list)) else None


def content(value: Any) -> Any:
    """What a constant is known by: its type and its value; of arrays all their numbers, of lists and tuples their members."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (tuple, list)):
        return (type(value), *map(content, value))
    plain = repr(value) if isinstance(value, (TargetExpression, TargetRecord)) else value
    return (type(value), plain, str(value) if isinstance(value, EQUAL_BUT_OTHER) else "")


def hashed_content(operator: str, name: str, value: Any) -> Any:
    """The content of an operator's constant.

    Raises:
        SemanticError: it can change without notice.
    """
    constant = content(value)
    try:
        hash(constant)
    except TypeError:
        fields = _fields_in(value)
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


def _fields_in(value: Any) -> list[str]:
    """The names of the Fields that a dict or an object holds, which can change without notice."""
    held = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    return [str(name) for name, each in held.items() if isinstance(each, FieldLike)]


def contents(pipeline: str, constants: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The contents of a pipeline's constants, with their names.

    Raises:
        SemanticError: one can change without notice, or holds arrays.
    """
    for name, value in constants.items():
        try:
            hash(frozen(value))
        except (TypeError, ValueError):  # a memoryview raises the second one
            _refuse_buffer(pipeline, name, value)
            held = list(getattr(value, "__dict__", {}).values())
            if any(map(is_array, [*leaves(pipeline, {name: value}), *held])):
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
    """Refuse memory that is no array."""
    if isinstance(value, (memoryview, bytearray, PlainArray)):
        raise SemanticError(
            f"argument `{name}` of {pipeline} is {described(value)}, no array of NumPy's or of another library's; give "
            f"`np.asarray({name})`"
        )


def functions_among(constants: Iterable[Any]) -> tuple[FunctionType, ...]:
    """The functions of a pipeline's constants, which `contents` knows by their code: what they capture is compared anew."""
    found: list[FunctionType] = []
    for value in constants:
        if type(value) is FunctionType:
            found.append(value)
        elif type(value) is tuple:
            found += functions_among(value)
    return tuple(found)


def _by_code(value: Any) -> Any:
    if type(value) is FunctionType:
        return value.__code__
    return tuple(map(_by_code, value)) if type(value) is tuple else value


def frozen(value: Any) -> Any:
    """A list as a tuple, which can be hashed where its members can."""
    return tuple(map(frozen, value)) if isinstance(value, (tuple, list)) else value


def own(value: Any) -> Any:
    """The argument as a body gets it: lists and arrays are copies, and arrays read-only."""
    if type(value) in (list, tuple):
        return type(value)(map(own, value))
    if not isinstance(value, np.ndarray):
        return value
    copy = np.array(value)
    copy.flags.writeable = False
    return copy
