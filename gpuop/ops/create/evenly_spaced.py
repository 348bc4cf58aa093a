"""Fields of evenly spaced numbers, and coordinates of grids, computed at their readers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import SemanticError, described
from gpuop.base.misspelt import hinted
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import ScalarField
from gpuop.dsl.recorder.value import NUMBERS
from gpuop.ir.build import number
from gpuop.ir.dtype_names import COMPLEX_DTYPES, HALVES, wide_float
from gpuop.ir.types import FieldType
from gpuop.ops.layout.axes import Axis, whole_number
from gpuop.ops.layout.gather import gathered
from gpuop.ops.layout.layouts import reshaped, spread

UNORDERED = ("bool", *COMPLEX_DTYPES, "unorm8")  # dtypes without ranges


@hinted
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Field:
    """Evenly spaced numbers in a grid of one dimension, as numpy.arange.

    Args:
        start, stop, step: numbers; of one alone it is `stop`, and 0 the start. `stop` is not among the values.
        dtype: by default int32 where all of them are integers, else float32.

    Returns:
        A lazy Field.

    Raises:
        SemanticError: a step of 0, a dtype that fields cannot have or that is not one of numbers in order.
    """
    start, stop = (0, start) if stop is None else (start, stop)
    numbers = [_real("arange", value) for value in (start, stop, step)]
    first, last, step = numbers
    if step == 0 or not all(map(math.isfinite, numbers)):
        raise SemanticError(f"arange: there are no evenly spaced numbers from {first} to {last} by steps of {step}")
    whole = all(isinstance(value, int) for value in numbers)
    kind = _ordered(
        "arange",
        max(0, _count(first, last, step, whole)),
        ("int32" if whole else "float32") if dtype is None else dtype,
    )
    return (_floats if kind.element.kind == "f" else _integers)(kind, first, step)


def _count(first: Any, last: Any, step: Any, whole: bool) -> int:
    """Return the number of values before `stop`."""
    return -int((first - last) // step) if whole else math.ceil((last - first) / step)


def _ordered(name: str, count: int, dtype: Any) -> FieldType:
    kind = FieldType(count, (), dtype)
    if kind.dtype in UNORDERED:
        raise SemanticError(f"{name}: {kind.dtype} is not a dtype of evenly spaced numbers; `.astype` converts")
    return kind


def _integers(kind: FieldType, first: Any, step: Any) -> Field:
    """Return integers from the first one, by its difference to the second one; descending in unsigned dtypes, too."""
    begin, by = int(first), int(first + step) - int(first)
    for each in (begin, begin + (kind.field_shape[0] - 1) * by):
        if kind.field_shape[0] and not kind.element.holds(each):
            raise SemanticError(f"arange: the number {each} does not fit {kind.dtype}; give another dtype")

    def value(at: Any, _: Any) -> Any:
        own = k._convert(at[0], str(kind.dtype))
        return begin + own * by if by >= 0 else begin - own * -by

    return gathered("arange", kind, [], value, (begin, by), True)


def _floats(kind: FieldType, first: Any, step: Any) -> Field:
    """Return floats as NumPy fills arrays: from the first two numbers in the dtype, by their difference."""
    computed = wide_float(str(kind.dtype))
    two = kind.storage.values([first, first + step]).astype(computed)
    begin, by = two[0].item(), (two[1] - two[0]).item()

    def value(at: Any, _: Any) -> Any:
        return begin + k._convert(at[0], computed) * by

    return gathered("arange", kind, [], value, (repr(begin), repr(by)), True)


@hinted
def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None) -> Field:
    """Evenly spaced numbers from `start` to `stop`, as numpy.linspace.

    Args:
        start, stop: numbers.
        num: how many.
        endpoint: whether `stop` is the last of them.
        dtype: float32 or float64, in which they are computed; integers are rounded down from float64.

    Returns:
        A lazy Field of one dimension.

    Raises:
        SemanticError: a negative `num`, or a dtype that fields cannot have.
    """
    first, last = _real("linspace", start), _real("linspace", stop)
    count = whole_number(num, "a number of points")
    if count < 0:
        raise SemanticError(f"linspace: a number of points is 0 or more, not {count}")
    kind = _ordered("linspace", count, "float32" if dtype is None else dtype)
    computed = "float32" if kind.dtype in (*HALVES, "float32") else "float64"
    parts = count - 1 if endpoint else count
    wide = abs(last / 2 - first / 2) > float(np.finfo(computed).max) / 2  # the difference overflows
    step = (last - first) / parts if parts > 0 and not wide else 0.0

    def value(at: Any, _: Any) -> Any:
        share = k._convert(at[0], computed) / max(parts, 1)
        own = (
            share * float(last) + (1 - share) * float(first)
            if wide
            else k._convert(at[0], computed) * k._convert(step, computed) + k._convert(float(first), computed)
        )
        if endpoint and count > 1:
            own = k._where(at[0] == count - 1, k._convert(float(last), computed), own)
        return own if kind.element.kind == "f" else k._floor(own)

    return gathered("linspace", kind, [], value, (first, last, count, endpoint), True)


def _real(name: str, value: Any) -> Any:
    computed = number(value)
    if computed is None or not isinstance(value, NUMBERS):
        raise SemanticError(
            f"{name}: {described(value)} is not a number; `int(f)` or `float(f)` gives the value of a field"
        )
    return computed


# --- coordinates ----------------------------------------------------------------------------------------------------------


@hinted
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Field]:
    """Grids of coordinates, as numpy.meshgrid.

    Args:
        xi: fields of one dimension, or arrays.
        copy: of no meaning: fields do not change.
        sparse: whether extents stay 1 where values repeat; host algebra broadcasts them.
        indexing: "xy", by which the first one runs along the columns, or "ij".

    Returns:
        A list of lazy Fields, one for each.

    Raises:
        SemanticError: what has more than one dimension.
    """
    fields = [x if isinstance(x, Field) else ScalarField(x) for x in xi]
    if indexing not in ("xy", "ij"):
        raise SemanticError(f'meshgrid: `indexing` is "xy" or "ij", not {indexing!r}')
    for field in fields:
        if len(field.field_shape) > 1 or field.tensor_shape:
            raise SemanticError(f"meshgrid takes fields of one dimension, not {field.type}")
    order = list(range(len(fields)))
    if indexing == "xy" and len(fields) > 1:
        order[:2] = [1, 0]
    shape = [1] * len(fields)
    for field, axis in zip(fields, order, strict=True):
        shape[axis] = field.type.array_shape.points
    grids = []
    for field, axis in zip(fields, order, strict=True):
        own = [Axis(n if a == axis else 1) for a, n in enumerate(shape)]
        thin = reshaped("meshgrid", field, own)
        grids.append(thin if sparse else spread("meshgrid", thin, shape))
    return grids
