"""`sum`, `mean`, `min`, `max`, `any`, `all`, `argmin`, `argmax` of fields: which steps reduce which axes."""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import replace
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.dsl.fields import services
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.kinds_of_field import is_big_tensor
from gpuop.dsl.operators.operator import library_call
from gpuop.errors import SemanticError, described
from gpuop.ir.types import FieldType, Shape
from gpuop.ops.reduce_kernels import AT_ONCE, SHORT, Partial, by_elements, by_groups, by_threads
from gpuop.ops.reducers import Reducer, reducer_of

NAMES = ("sum", "mean", "min", "max", "argmin", "argmax")


class EmptyError(SemanticError):
    """There is no value to choose."""


def reduced(name: str, field: Any, axis: Any = None, *more: Any, **options: Any) -> Field:
    """numpy.sum and its like over `array_shape`, as an operator of several kernels at most.

    Raises:
        SemanticError: an axis that is none, a dtype without an order, an empty axis where there is no value to choose, or
            an option other than `axis`.
    """
    if not isinstance(field, Field):
        raise SemanticError(f"{name} of {described(field)} and a Field: a Field is reduced into a new Field")
    if more or options:
        what = ", ".join(f"`{o}=`" for o in options) or "positional options"
        raise SemanticError(
            f"{name} of a Field takes `axis` and nothing else, not {what}; evaluate first, with `.numpy()`"
        )
    kind = field.type
    if kind.dtype == "complex64" and name not in ("sum", "mean"):
        raise SemanticError(f"{name} does not take complex64 fields: complex numbers have no order")
    axes = _axes(name, kind, axis)
    count = math.prod(kind.array_shape[a] for a in axes)
    reducer = reducer_of(name, kind, count)
    if not count and not reducer.adds:
        raise EmptyError(f"{name} of a {kind} field: there is no value to choose along {_named(axis)}, which is empty")
    if not kind.field_shape.points:
        return _constant(reducer, _left(kind, axes))
    return _steps(reducer, field, axes, axis is None)


def truth(name: str, field: Any, axis: Any = None, *more: Any, **options: Any) -> Field:
    """numpy.any and numpy.all: the greatest and the least truth, and of nothing False and True."""
    if isinstance(field, Field) and field.dtype != "bool":
        field = services.algebra["not_equal"](field, 0)
    try:
        return reduced("max" if name == "any" else "min", field, axis, *more, **options)
    except EmptyError:
        counted = reduced("sum", field, axis)
        return services.algebra["not_equal" if name == "any" else "equal"](counted, 0)


def _steps(reducer: Reducer, field: Field, axes: list[int], flat: bool) -> Field:
    """Grid axes first: they leave little, and what is left of tensors is at one point."""
    kind = field.type
    dimensions = len(kind.field_shape)
    grid, tensor = [a for a in axes if a < dimensions], [a - dimensions for a in axes if a >= dimensions]
    given = Partial(field, step=kind.tensor_points if flat else 1)
    if grid:
        given = _over_grid(reducer, given, grid, not tensor)
    if tensor or not grid:
        given = _over_tensor(reducer, given, tensor)
    return given.values


def _over_grid(reducer: Reducer, given: Partial, axes: list[int], last: bool) -> Partial:
    """Reduce grid axes, the last one first; all together where a work-group takes them at once."""
    pending, block, chunked = list(axes), given.step, False
    while pending:
        grid = given.type.field_shape
        together = math.prod(grid[a] for a in pending)
        trailing = pending == list(range(len(grid)))[-len(pending) :]
        fits = SHORT < together <= AT_ONCE and not (chunked and reducer.places)
        taken = pending if trailing and fits else pending[-1:]
        extent = math.prod(grid[a] for a in taken)
        ends = last and taken == pending
        given = replace(given, step=0 if chunked else block)
        if taken[-1] == len(grid) - 1 and extent > SHORT:
            given = by_groups(reducer, given, len(taken), ends)
        else:
            given = by_threads(reducer, given, taken[0], ends)
        block *= 1 if chunked else extent
        chunked = len(given.type.field_shape) == len(grid)
        if not chunked:
            del pending[-len(taken) :]
    return given


def _over_tensor(reducer: Reducer, given: Partial, axes: list[int]) -> Partial:
    shape = given.type.tensor_shape
    kept = Shape(n for a, n in enumerate(shape) if a not in axes)
    count = math.prod(shape[a] for a in axes)
    strides = {(0,): (1, shape[-1]) if len(shape) == 2 else (0, 1), (1,): (count, 1), (0, 1): (0, 1), (): (1, 0)}
    parts = given.type.planes // shape.points
    outer, inner = (parts * stride for stride in strides[tuple(axes)])
    return by_elements(reducer, replace(given, step=1), kept, count, (outer, inner, parts), True)


# --- axes -------------------------------------------------------------------------------------------------------------


def _axes(name: str, kind: FieldType, axis: Any) -> list[int]:
    """The axes to reduce, in order."""
    dimensions = len(kind.array_shape)
    if axis is None:
        return list(range(dimensions))
    if isinstance(axis, tuple) and name.startswith("arg"):
        raise SemanticError(f"{name} takes one axis, or none for all of them, not a tuple")
    found = []
    for given in axis if isinstance(axis, tuple) else (axis,):
        if isinstance(given, (bool, np.bool_)) or not isinstance(given, (int, np.integer)):
            raise SemanticError(f"an axis is an integer, not {described(given)}")
        number = operator.index(given)
        if not -dimensions <= number < dimensions:
            raise SemanticError(f"axis {number} is out of bounds for a {kind} field, which has {dimensions} axes")
        found.append(number % dimensions)
    if len(set(found)) < len(found):
        raise SemanticError(f"an axis is given twice: {axis}")
    return sorted(found)


def _named(axis: Any) -> str:
    return "all axes together" if axis is None else f"axis {axis}"


def _left(kind: FieldType, axes: list[int]) -> FieldType:
    """The type of what is left when axes are taken away."""
    split = len(kind.field_shape)
    grid = Shape(n for a, n in enumerate(kind.field_shape) if a not in axes)
    return kind.replace(
        field_shape=grid, tensor_shape=Shape(n for a, n in enumerate(kind.tensor_shape, split) if a not in axes)
    )


def _constant(reducer: Reducer, kind: FieldType) -> Field:
    """What no values give: the sum 0, the mean NaN."""
    value = math.nan if reducer.name == "mean" else 0
    out = kind.replace(dtype=reducer.result)

    def body() -> None:
        if is_big_tensor(out):
            with k._forEachTensorElement(out.planes):
                k._writeTensorElement(k._out0, value, k._tensorElement)
        else:
            for element in range(out.planes):
                k._writeTensorElement(k._out0, value, element)

    return library_call(reducer.name, (out,), [], body, (reducer, "empty"))[0]


FUNCTIONS = {name: functools.partial(reduced, name) for name in NAMES}
FUNCTIONS |= {name: functools.partial(truth, name) for name in ("any", "all")}
services.algebra.update(FUNCTIONS)
