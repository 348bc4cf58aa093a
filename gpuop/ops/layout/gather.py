"""Operators that move values: what a place of the result holds is read from places of fields."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import is_big_tensor
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.axis_limit import MOST_PLACES
from gpuop.ir.types import FieldType
from gpuop.ops.elementwise.precise_dtypes import record_steps

OWN = (k._layer, k._row, k._column)
Place = Sequence[Any]  # coordinates over the axes of an array: integers, or values of the kernel


def own_place(count: int) -> tuple[Any, ...]:
    """The thread's own position along each of so many dimensions of its grid."""
    return OWN[3 - count :] if count <= len(OWN) else tuple(k._dim(n) for n in range(count))


@dataclass(frozen=True)
class Reading:
    """How a thread reads: whole tensors at once, one element of them, or a part of a complex one.

    Attributes:
        whole: whether tensors are moved as they are, so that places name points of the grid only.
        element: where these tensors are too big to be read at once, the element that the thread is at.
        part: 0 for the real part of a complex element, 1 for the imaginary one; None of other dtypes.
    """

    whole: bool = False
    element: Any = None
    part: Any = None

    def at(self, field: Field, place: Place, border: Any = "unchecked") -> Any:
        """What is there."""
        grid = len(field.field_shape)
        point, rest = place[:grid], list(place[grid:])
        if field.type.planes == 1 or (self.whole and self.element is None):
            return k._readTensor(field, *point, border=border)
        if self.whole:
            return k._readTensorElement(field, *point, self.element, border=border)
        if field.dtype == "complex64":
            rest.append(self.part)
        return k._readTensorElement(field, *point, flat(rest, field.type.parts), border=border)

    def number(self, value: Any, kind: FieldType) -> Any:
        """A number as a field of this type holds it there."""
        if kind.dtype != "complex64":
            return value
        parts = complex(value).real, complex(value).imag
        part = self.part if self.element is None else self.element % 2
        if isinstance(part, int):
            return parts[part]
        return k._float2(*parts) if part is None else k._where(part == 0, *map(k._convert_float, parts))

    def variable(self, like: Field) -> Any:
        """A variable for what is read of such a field."""
        return (k._tensorVar if self.whole and self.element is None else k._tensorElementVar)(like)


def gathered(
    name: str,
    out: FieldType,
    fields: Sequence[Field],
    value: Callable[..., Any],
    key: Any,
    whole: bool = False,
    remark: str = "",
    steps_of: Any = None,
) -> Field:
    """A field whose value at each place is what a function records there.

    Args:
        value: of the place in the result and how to read. A place has coordinates over `array_shape`, of which the tensor's
            are integers where tensors are small, or over the grid's axes only. With `steps_of` also of the dtype to compute in.
        key: with the fields' types all that the function depends on.
        whole: tensors are moved as they are, so places have the grid's axes only.
        remark: as of `library_call`.
        steps_of: the dtype of what is computed with, where that has steps.
    """

    def write(placed: tuple[Place, Reading], *element: Any) -> None:
        _write(lambda *dtype: value(*placed, *dtype), steps_of, element)

    def body() -> None:
        point = own_place(len(out.field_shape))
        if is_big_tensor(out):
            with k._forEachTensorElement(out.planes):
                here = k._tensorElement
                placed = (point, Reading(True, here)) if whole else _placed(point, apart(here, out.parts), out)
                write(placed, here)
        elif whole:
            write((point, Reading(True)))
        else:
            for n, element in enumerate(np.ndindex(*out.parts)):
                write(_placed(point, element, out), n)

    return library_call(name, (out,), fields, body, key, remark=remark)[0]


def _write(value: Callable[..., Any], steps_of: Any, element: Sequence[Any]) -> None:
    """Write what a function makes at a thread's point, or an element of it, in the dtype for steps where there are any."""

    def record(*dtype: str) -> None:
        made = value(*dtype)
        if element:
            k._writeTensorElement(k._out0, made, *element)
        else:
            k._writeTensor(k._out0, made)

    record() if steps_of is None else record_steps(steps_of, record)


def _placed(point: Place, element: Place, out: FieldType) -> tuple[Place, Reading]:
    """A place, and the part of a complex number that is its last coordinate."""
    tensor = len(out.tensor_shape)
    return (*point, *element[:tensor]), Reading(part=next(iter(element[tensor:]), None))


# --- coordinates ------------------------------------------------------------------------------------------------------


def flat(place: Place, shape: Sequence[int]) -> Any:
    """The number of a place in row-major order: an integer where all coordinates are, and a long where an int does not count."""
    number: Any = 0
    wide = math.prod(shape) > MOST_PLACES
    for at, n in zip(place, shape, strict=True):
        if n > 1:
            at = k._convert_long(at) if wide and not isinstance(at, int) else at
            number = at if isinstance(number, int) and number == 0 else number * n + at
    return number


def apart(number: Any, shape: Sequence[int]) -> list[Any]:
    """The place of a number in row-major order: its coordinates, ints of a long."""
    place: list[Any] = []
    wide = math.prod(shape) > MOST_PLACES and not isinstance(number, int)
    for axis in reversed(range(len(shape))):
        n = shape[axis]
        last = all(extent == 1 for extent in shape[:axis])
        at = 0 if n == 1 else number if last else number % n
        place.insert(0, k._convert_int(at) if wide and n > 1 else at)
        if n > 1 and not last:
            number = number // n if isinstance(number, int) else number / n
    return place
