"""The axes of fields in NumPy order: the grid's first, then the tensor's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from gpuop.base.errors import BoundsError, SemanticError, UnsupportedError, described
from gpuop.base.records import dataclass
from gpuop.dsl.fields import services
from gpuop.dsl.fields.field import Field
from gpuop.ir.dims import spelled
from gpuop.ir.types import FieldType, Shape, is_integer


@dataclass(frozen=True)
class Axis:
    """An axis of an array: its extent, whether it is the tensor's, and its name."""

    extent: int
    tensor: bool = False
    name: str = field(default="", compare=False)


def axes_of(kind: FieldType) -> list[Axis]:
    split, names = len(kind.field_shape), kind.names or ("",) * len(kind.array_shape)
    return [Axis(n, a >= split, name) for a, (n, name) in enumerate(zip(kind.array_shape, names, strict=True))]


def type_of(name: str, axes: Sequence[Axis], dtype: Any) -> FieldType:
    """Return the type of a result: the tensor axes at the end stay tensor axes, others are grid axes. A name stays once."""
    first = len(axes)
    while first and axes[first - 1].tensor:
        first -= 1
    grid, tensor = [Shape(axis.extent for axis in part) for part in (axes[:first], axes[first:])]
    if 0 in tensor:
        raise SemanticError(
            f"{name}: the result {(*grid, *tensor)} has tensors without elements; a tensor has at least one"
        )
    names = [axis.name for axis in axes]
    return FieldType(grid, tensor, dtype).labelled([n if names.index(n) == a else "" for a, n in enumerate(names)])


def a_field(name: str, arg: Any) -> Field:
    """Return an argument of a NumPy function, if it is a Field."""
    if not isinstance(arg, Field):
        raise UnsupportedError(
            f"numpy.{name} takes Fields here, not {described(arg)}; wrap arrays, as in `gp.ScalarField(a)`"
        )
    return arg


def whole_number(arg: Any, what: str) -> int:
    """Return a Python or NumPy integer; the SemanticError names its purpose."""
    if not is_integer(arg):
        raise SemanticError(f"{what} is an integer, not {described(arg)}")
    return int(arg)


@dataclass(frozen=True)
class Whose:
    """The owner of axes: its name in messages, and the names of its axes."""

    text: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


def numbered(axis: Any, count: int, of: Whose) -> int:
    """Return the number of an axis; negative ones count from the end, and names are dimension names."""
    if isinstance(axis, str):
        if not axis or axis not in of.names:
            raise SemanticError(f"there is no axis {axis!r} of {of}")
        return of.names.index(axis)
    number = whole_number(axis, "an axis")
    if not -count <= number < count:
        raise BoundsError(f"axis {number} is out of bounds for {of}, which has {count} axes")
    return number % count


def several(axes: Any, count: int, of: Whose) -> list[int]:
    """Return the numbers of one axis or several, each once, in the user's order."""
    result = [numbered(axis, count, of) for axis in (axes if isinstance(axes, (tuple, list)) else (axes,))]
    if len(set(result)) < len(result):
        raise SemanticError(f"an axis is given twice: {axes}")
    return result


def of_field(field: Field) -> tuple[int, Whose]:
    """Return the number of axes, and their owner."""
    return len(field.type.array_shape), of_kind(field.type)


def of_kind(kind: FieldType) -> Whose:
    return Whose(f"a {kind} field", kind.names)


def named(field: Field, dims: Any) -> Field:
    """Return the field with other dimension names."""
    return Field.of(field.node, kind=field.type.labelled(()).replace(dims=dims))


services.algebra["named"] = named


def names_of_all(name: str, fields: Sequence[Field]) -> tuple[str, ...]:
    """Return the axis names of fields on one grid, some without a tensor.

    Raises:
        SemanticError: they differ.
    """
    grid, tensor = list[str](), list[str]()
    for each in fields:
        axes = axes_of(each.type)
        for joined, part in ((grid, [a for a in axes if not a.tensor]), (tensor, [a for a in axes if a.tensor])):
            joined += [""] * (len(part) - len(joined))
            for n, axis in enumerate(part):
                if joined[n] and axis.name and joined[n] != axis.name:
                    listed = " and ".join(dict.fromkeys(spelled(f.type.names) for f in fields if f.type.names))
                    raise SemanticError(f"{name}: the dimensions differ, {listed}; `f.named(…)` gives them other names")
                joined[n] = joined[n] or axis.name
    return (*grid, *tensor)
