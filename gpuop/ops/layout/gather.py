"""Gather operators: each place of the result reads a place of the fields."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import is_big_tensor
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.axis_limit import MOST_PLACES
from gpuop.ir.dtype_names import COMPLEX_DTYPES, part_dtype
from gpuop.ir.types import FieldType
from gpuop.ops.elementwise.precise_dtypes import record_steps

OWN = (k._layer, k._row, k._column)
Place = Sequence[Any]  # coordinates over the axes of an array: integers, or values of the kernel


def own_place(count: int) -> tuple[Any, ...]:
    """Return the thread's position along each dimension of its grid."""
    return OWN[3 - count :] if count <= len(OWN) else tuple(k._dim(n) for n in range(count))


@dataclass(frozen=True)
class Reading:
    """A way to read: whole tensors at once, one element of them, or a part of a complex one.

    Attributes:
        whole: whether tensors are moved as a whole, so that places have grid coordinates only.
        element: the thread's element, if whole tensors are too big to be read at once.
        part: 0 for the real part of a complex element, 1 for the imaginary one; None for other dtypes.
    """

    whole: bool = False
    element: Any = None
    part: Any = None

    def at(self, field: Field, place: Place, border: Any = "unchecked") -> Any:
        """Read a field at a place."""
        grid = len(field.field_shape)
        point, rest = place[:grid], list(place[grid:])
        if field.type.planes == 1 or (self.whole and self.element is None):
            return k._readTensor(field, *point, border=border)
        if self.whole:
            return k._readTensorElement(field, *point, self.element, border=border)
        if field.dtype in COMPLEX_DTYPES:
            rest.append(self.part)
        return k._readTensorElement(field, *point, flat(rest, field.type.parts), border=border)

    def number(self, value: Any, kind: FieldType) -> Any:
        """Return a number as the value of a field of this type."""
        if kind.dtype not in COMPLEX_DTYPES:
            return value
        parts = complex(value).real, complex(value).imag
        part = self.part if self.element is None else self.element % 2
        if isinstance(part, int):
            return parts[part]
        values = [k._convert(each, part_dtype(kind.dtype)) for each in parts]
        return k._vector(*values) if part is None else k._where(part == 0, *values)

    def variable(self, like: Field) -> Any:
        """Return a variable for a value of the field."""
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
    """Return a field whose value at each place is recorded by a function.

    Args:
        value: called with the place in the result and the Reading. A place has coordinates over `array_shape` (tensor coordinates
            are integers for small tensors), or over grid axes only. With `steps_of` it also gets the dtype of the steps.
        key: everything that the function depends on, besides the fields' types.
        whole: tensors are moved as a whole, so places have grid coordinates only.
        remark: as for `library_call`.
        steps_of: the dtype of the operands, if steps have a dtype of their own.
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
    """Write the value at a thread's point, or of an element of it, in the dtype of the steps if there is one."""

    def record(*dtype: str) -> None:
        result = value(*dtype)
        if element:
            k._writeTensorElement(k._out0, result, *element)
        else:
            k._writeTensor(k._out0, result)

    record() if steps_of is None else record_steps(steps_of, record)


def _placed(point: Place, element: Place, out: FieldType) -> tuple[Place, Reading]:
    """Return a place, and the Reading of its complex part, the last coordinate."""
    tensor = len(out.tensor_shape)
    return (*point, *element[:tensor]), Reading(part=next(iter(element[tensor:]), None))


# --- coordinates ------------------------------------------------------------------------------------------------------


def flat(place: Place, shape: Sequence[int]) -> Any:
    """Return the flat index of a place in row-major order: an integer if all coordinates are, a long if an int is too small."""
    number: Any = 0
    wide = math.prod(shape) > MOST_PLACES
    for at, n in zip(place, shape, strict=True):
        if n > 1:
            at = k._convert_long(at) if wide and not isinstance(at, int) else at
            number = at if isinstance(number, int) and number == 0 else number * n + at
    return number


def apart(number: Any, shape: Sequence[int], bounded: bool = False) -> list[Any]:
    """Return the coordinates of a flat index in row-major order; ints even if the index is a long.

    Args:
        bounded: whether kernels with open extents are to see that the first coordinate is inside.
    """
    place: list[Any] = []
    wide = math.prod(shape) > MOST_PLACES and not isinstance(number, int)
    for axis in reversed(range(len(shape))):
        n = shape[axis]
        last = all(extent == 1 for extent in shape[:axis])
        at = 0 if n == 1 else number if last else number % n
        at = k._convert_int(at) if wide and n > 1 else at
        place.insert(0, k._min(at, n - 1) if bounded and last and not isinstance(at, int) else at)
        if n > 1 and not last:
            number = number // n if isinstance(number, int) else number / n
    return place
