"""Reductions of fields: the steps, and the axes of each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import SemanticError
from gpuop.base.finalizers import WeakKeys
from gpuop.base.records import dataclass
from gpuop.dsl.fields.derivative_rules import Late, with_rule
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import is_big_tensor
from gpuop.dsl.operators.operator import library_call
from gpuop.dsl.operators.variants import either
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.types import MOST_TENSOR, FieldType, Shape
from gpuop.ir.values import Call, Leaf, Result
from gpuop.ops.layout.axes import Axis, axes_of, of_kind, several
from gpuop.ops.layout.gather import own_place
from gpuop.ops.layout.layouts import permuted, reshaped
from gpuop.ops.reduce.kernels import SHORT, Partial, a_step, by_elements, by_groups, by_threads, chunks_of
from gpuop.ops.reduce.reducers import AT_ONCE, Item, Reducer, Split, reducer_of
from gpuop.ops.sort.radix_sort import single


@dataclass(frozen=True, eq=False)
class Reduced:
    """The field, axes and reducer of a reduction."""

    reducer: Reducer
    field: Field
    axes: tuple[int, ...]


reductions: WeakKeys[Call, Reduced] = WeakKeys()  # by last call


class EmptyError(SemanticError):
    """An error: there is no value to choose."""


def reduced(name: str, field: Field, axis: Any) -> Field:
    """Reduce a field over axes of `array_shape` by name (`reducer_of`), in a few kernels at most.

    Raises:
        SemanticError: no such axis, a dtype without this reduction, or an empty axis where there is no value
            to choose.
    """
    kind = field.type
    if kind.dtype in COMPLEX_DTYPES and name not in ("sum", "mean"):
        raise SemanticError(f"{name} does not take {kind.dtype} fields: complex numbers have no order")
    axes = axes_reduced(name, kind, axis)
    reducer = reducer_of(name, kind, math.prod(kind.array_shape[a] for a in axes))
    return reduced_by(reducer, field, axes, axis)


def reduced_by(reducer: Reducer, field: Field, axes: list[int], axis: Any) -> Field:
    """Reduce the values along axes with a reducer; `axis` is the user's argument."""
    kind = field.type
    if not math.prod(kind.array_shape[a] for a in axes) and (reducer.keyed or not reducer.operation):
        raise EmptyError(
            f"{reducer.name} of a {kind} field: there is no value to choose along {_named(axis)}, which is empty"
        )
    left = _left(kind, axes)
    if not kind.field_shape.points:
        return _constant(reducer, left)
    result = _steps(reducer, field, axes, axis is None)
    if isinstance(result.node, Result):
        reductions[result.node.call] = Reduced(reducer, field, tuple(axes))
    if reducer.result == kind.dtype and np.dtype(reducer.accumulator).kind in "fc" and not reducer.key:
        _enter_rule(reducer, field, result, tuple(axes))
    return Field.of(result.node, kind=result.type.labelled(left.names)) if kind.names else result


def _enter_rule(reducer: Reducer, field: Field, result: Field, axes: tuple[int, ...]) -> None:
    """Enter the derivatives of a reduction, where they are not those of its kernels."""
    inputs = [Field.of(field.node, kind=field.type.labelled(()))]
    if reducer.name in ("sum", "mean"):
        args = axes, reducer.divisor
        with_rule(result, reducer.name, inputs, Late("sum pulled", args), Late("sum pushed", args))
    elif reducer.name in ("min", "max", "nanmin", "nanmax"):
        with_rule(result, reducer.name, inputs, Late("extreme pulled", (axes,)), Late("extreme pushed", (axes,)))
    elif reducer.name == "prod":
        with_rule(result, reducer.name, inputs, None, Late("product pushed", (axes,)))


def _steps(reducer: Reducer, field: Field, axes: list[int], flat: bool) -> Field:
    """Reduce grid axes first: few points are left, and tensor elements of a point are at one place."""
    kind = field.type
    dimensions = len(kind.field_shape)
    if len(kind.tensor_shape) > MOST_TENSOR and axes and axes[-1] >= dimensions:
        return _in_two_axes(reducer, field, axes, flat)
    grid, tensor = [a for a in axes if a < dimensions], [a - dimensions for a in axes if a >= dimensions]
    source = Partial(field, step=kind.tensor_points if flat else 1)
    if grid:
        source = _over_grid(reducer, source, grid, not tensor)
    if tensor or not grid:
        source = _over_tensor(reducer, source, tensor)
    return source.values


def _in_two_axes(reducer: Reducer, field: Field, axes: list[int], flat: bool) -> Field:
    """Merge tensor axes into two: those that stay, and those that are reduced."""
    source, grid = axes_of(field.type), len(field.field_shape)
    parts = [[a for a in range(grid, len(source)) if (a in axes) == gone] for gone in (False, True)]
    field = permuted("transpose", field, [*range(grid), *parts[0], *parts[1]])
    merged = [Axis(math.prod(source[a].extent for a in part), True) for part in parts if part]
    field = reshaped("reshape", field, [*axes_of(field.type)[:grid], *merged])
    result = _steps(reducer, field, [*(a for a in axes if a < grid), grid + len(merged) - 1], flat)
    left = axes_of(result.type)[: len(result.field_shape)]
    return reshaped("reshape", result, [*left, *(source[a] for a in parts[0])])


def _over_grid(reducer: Reducer, source: Partial, axes: list[int], last: bool) -> Partial:
    """Reduce grid axes, the last one first; all together if a work-group takes them at once."""
    pending, block, chunked = list(axes), source.step, False
    while pending:
        grid = source.type.field_shape
        together = math.prod(grid[a] for a in pending)
        trailing = pending == list(range(len(grid)))[-len(pending) :]
        fits = SHORT < together <= AT_ONCE and not (chunked and reducer.has_positions)
        axes_now = pending if trailing and fits else pending[-1:]
        extent = math.prod(grid[a] for a in axes_now)
        ends = last and axes_now == pending
        source = replace(source, step=0 if chunked else block)
        if axes_now == [len(grid) - 1] and extent > SHORT and are_stored(reducer, source):
            source = rows_of_truths(reducer, source, ends)
        elif axes_now[-1] == len(grid) - 1 and extent > SHORT:
            source = by_groups(reducer, source, len(axes_now), ends)
        else:
            source = by_threads(reducer, source, axes_now[0], ends)
        block *= 1 if chunked else extent
        chunked = len(source.type.field_shape) == len(grid)
        if not chunked:
            del pending[-len(axes_now) :]
    return source


def _over_tensor(reducer: Reducer, source: Partial, axes: list[int]) -> Partial:
    shape = source.type.tensor_shape
    rest = Shape(n for a, n in enumerate(shape) if a not in axes)
    count = math.prod(shape[a] for a in axes)
    strides = {(0,): (1, shape[-1]) if len(shape) == 2 else (0, 1), (1,): (count, 1), (0, 1): (0, 1), (): (1, 0)}
    parts = source.type.planes // shape.points
    outer, inner = (parts * stride for stride in strides[tuple(axes)])
    return by_elements(reducer, replace(source, step=1), rest, count, (outer, inner, parts), True)


# --- axes -------------------------------------------------------------------------------------------------------------


def axes_reduced(name: str, kind: FieldType, axis: Any) -> list[int]:
    """Return the axes to reduce, in order."""
    dimensions = len(kind.array_shape)
    if axis is None or (not dimensions and isinstance(axis, int) and axis in (0, -1)):  # as for NumPy scalars
        return list(range(dimensions))
    if isinstance(axis, tuple) and name.startswith("arg"):
        raise SemanticError(f"{name} takes one axis, or none for all of them, not a tuple")
    return sorted(several(axis, dimensions, of_kind(kind)))


def _named(axis: Any) -> str:
    return "all axes together" if axis is None else f"axis {axis}"


def _left(kind: FieldType, axes: list[int]) -> FieldType:
    """Return the type without these axes."""
    split = len(kind.field_shape)
    grid = Shape(n for a, n in enumerate(kind.field_shape) if a not in axes)
    tensor = Shape(n for a, n in enumerate(kind.tensor_shape, split) if a not in axes)
    names = [name for a, name in enumerate(kind.names) if a not in axes]
    return FieldType(grid, tensor, kind.dtype).labelled(names)


def _constant(reducer: Reducer, kind: FieldType) -> Field:
    """Return the reduction of no values: the identity, 0 for sums, and NaN for means."""
    value = math.nan if reducer.name == "mean" else reducer.neutral + 0
    out = kind.replace(dtype=reducer.result)

    def body() -> None:
        if is_big_tensor(out):
            with k._forEachTensorElement(out.planes):
                k._writeTensorElement(k._out0, value, k._tensorElement)
        else:
            for element in range(out.planes):
                k._writeTensorElement(k._out0, value, element)

    return library_call(reducer.name, (out,), [], body, (reducer, "empty"))[0]


# --- ------------------------------------------------------------------------------------------------------------------
# Reductions `any` and `all` of stored values, on CPUs: a thread reads a row, and stops when the result is known.
# Computed values use `kernels.py`: threads compute them in vectors, side by side.


BLOCK = 128  # values that a thread counts, in a byte, between two checks: compilers make vectors of them
LEAST, MANY = 4 * BLOCK, 1 << 16  # values of a row, and in all
HIGHEST, GROUPS = 32, 256  # rows of a thread at most, and threads at least if they have several rows


def are_stored(reducer: Reducer, source: Partial) -> bool:
    """Return whether the values are truths in memory; then one may decide for many."""
    kind, node = source.type, source.values.node
    stored = isinstance(node, Leaf) and not node.by_value and not source.open
    many = kind.field_shape.points >= MANY and kind.field_shape[-1] >= LEAST
    return stored and kind.dtype == reducer.result == "bool" and kind.planes == 1 and many


def rows_of_truths(reducer: Reducer, source: Partial, last: bool) -> Partial:
    """Return the result of `by_groups` for the last axis."""
    *rest, count = source.type.field_shape
    parts = chunks_of(count, Shape(rest).points)
    chunked = parts.chunks > 1
    out = Shape((*rest, parts.chunks) if chunked else rest)
    high = 1 if chunked else max(min(out.points // GROUPS, HIGHEST), 1)

    def body(write: Callable[..., None]) -> None:
        k._globalThreads((*out[:-1], -(-out[-1] // high)))
        k._localThreads(1)
        *point, own = own_place(len(out))
        if chunked:
            write(_until_known(reducer, source, parts, point, own), *point, own, 0)
        else:
            with k._for(own * high, k._min(own * high + high, out[-1])) as row:
                write(_until_known(reducer, source, parts, [*point, row], 0), *point, row, 0)

    done = last and not chunked
    alone = a_step(reducer, source, source.type.replace(field_shape=out), done, ("rows", parts), body)
    return Partial(either(single(), alone.values, by_groups(reducer, source, 1, last, parts).values))


def _until_known(reducer: Reducer, source: Partial, parts: Split, point: list[Any], chunk: Any) -> Item:
    """Return whether all or any values of a chunk are true: block after block until one decides; blocks may exceed the chunk."""
    every, first = reducer.name == "min", chunk * parts.size
    result = k._var(k._convert(every, reducer.accumulator))
    with k._for(first, k._min(first + parts.size, parts.count), BLOCK) as begin:
        start, count = k._min(begin, parts.count - BLOCK), k._var(k._convert(0, reducer.accumulator))
        with k._for(BLOCK) as j:
            count.assign(count + source.load(reducer, (*point, start + j), 0, start + j)[0])
        with k._if(count < BLOCK if every else count > 0):
            result.assign(k._convert(not every, reducer.accumulator))
            k._break()
    return (result,)
