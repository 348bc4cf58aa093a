"""The axes of fields, as NumPy counts them: the grid's first, then the tensor's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpuop.dsl.fields.field import Field
from gpuop.errors import SemanticError, UnsupportedError, described
from gpuop.ir.types import FieldType, Shape, is_integer

MOST_GRID, MOST_TENSOR = 3, 2


@dataclass(frozen=True)
class Axis:
    """An axis of an array: how long it is, and whether it is the tensor's."""

    extent: int
    tensor: bool = False


def axes_of(kind: FieldType) -> list[Axis]:
    return [*map(Axis, kind.field_shape), *(Axis(n, True) for n in kind.tensor_shape)]


def type_of(name: str, axes: Sequence[Axis], dtype: Any) -> FieldType:
    """The type of a result: the tensor's axes at the end stay the tensor's, the others are the grid's.

    Raises:
        SemanticError: more of them than fields have.
    """
    first = len(axes)
    while first and axes[first - 1].tensor:
        first -= 1
    grid, tensor = [Shape(axis.extent for axis in part) for part in (axes[:first], axes[first:])]
    if len(grid) > MOST_GRID or len(tensor) > MOST_TENSOR:
        parts = f"{len(grid)} of the grid and {len(tensor)} of the tensor"
        raise SemanticError(
            f"{name}: the result {tuple(axis.extent for axis in axes)} has {parts}; a field has at most "
            f"{MOST_GRID} axes of the grid and {MOST_TENSOR} of the tensor, and a tensor's axis is one of the grid where it "
            "stands before one"
        )
    if 0 in tensor:
        raise SemanticError(
            f"{name}: the result {(*grid, *tensor)} has tensors without elements; a tensor has at least one"
        )
    return FieldType(grid, tensor, dtype)


def a_field(name: str, given: Any) -> Field:
    """What a function of NumPy's takes, if it is a Field."""
    if not isinstance(given, Field):
        raise UnsupportedError(
            f"numpy.{name} takes Fields here, not {described(given)}; wrap arrays, as in `gp.ScalarField(a)`"
        )
    return given


def whole_number(given: Any, what: str) -> int:
    """An integer of Python's or NumPy's; SemanticError says what it is for."""
    if not is_integer(given):
        raise SemanticError(f"{what} is an integer, not {described(given)}")
    return int(given)


def numbered(axis: Any, count: int, of: object) -> int:
    """The number of an axis among so many; negative ones count from the end."""
    number = whole_number(axis, "an axis")
    if not -count <= number < count:
        raise SemanticError(f"axis {number} is out of bounds for {of}, which has {count} axes")
    return number % count


def several(axes: Any, count: int, of: object) -> list[int]:
    """The numbers of an axis or of some, each once, as they are given."""
    found = [numbered(axis, count, of) for axis in (axes if isinstance(axes, (tuple, list)) else (axes,))]
    if len(set(found)) < len(found):
        raise SemanticError(f"an axis is given twice: {axes}")
    return found


def of_field(field: Field) -> tuple[int, str]:
    """How many axes it has, and what messages call it."""
    return len(field.type.array_shape), f"a {field.type} field"
