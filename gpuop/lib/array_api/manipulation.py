"""Manipulation, indexing and linear algebra functions of the array API standard: axes are the grid's."""

from __future__ import annotations

from typing import Any

from gpuop.dsl.fields.field import Field
from gpuop.lib.linalg import products
from gpuop.ops.layout import join, layouts, reorder, shape_functions
from gpuop.ops.layout import roll as rolls
from gpuop.ops.layout.axes import Axis
from gpuop.ops.reduce import row_products
from gpuop.ops.select import take as taking


def broadcast_arrays(*arrays: Field) -> tuple[Field, ...]:
    """`broadcast_arrays` of the array API standard."""
    return shape_functions.broadcast_arrays(*arrays)


def broadcast_to(x: Field, /, shape: Any) -> Field:
    """`broadcast_to` of the array API standard."""
    return layouts.broadcast_to(x, shape)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Field:
    """`concat` of the array API standard."""
    return join.concatenate(arrays, axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Field:
    """`stack` of the array API standard: the new axis is the grid's, wherever it stands."""
    found = join.stack(arrays, axis)
    return layouts.reshaped("stack", found, [Axis(n) for n in found.shape])


def expand_dims(x: Field, /, axis: Any = 0) -> Field:
    """`expand_dims` of the array API standard."""
    return layouts.expand_dims(x, axis)


def flip(x: Field, /, *, axis: Any = None) -> Field:
    """`flip` of the array API standard."""
    return reorder.flip(x, axis)


def moveaxis(x: Field, source: Any, destination: Any, /) -> Field:
    """`moveaxis` of the array API standard."""
    return layouts.moveaxis(x, source, destination)


def permute_dims(x: Field, /, axes: Any) -> Field:
    """`permute_dims` of the array API standard."""
    return layouts.transpose(x, axes)


def repeat(x: Field, repeats: Any, /, *, axis: int | None = None) -> Field:
    """`repeat` of the array API standard; the repeats are evaluated, as the shape depends on them."""
    return reorder.repeat(x, repeats.numpy() if isinstance(repeats, Field) else repeats, axis)


def reshape(x: Field, /, shape: Any, *, copy: bool | None = None) -> Field:
    """`reshape` of the array API standard."""
    return layouts.reshape(x, shape)


def roll(x: Field, /, shift: Any, *, axis: Any = None) -> Field:
    """`roll` of the array API standard."""
    return rolls.roll(x, shift, axis)


def squeeze(x: Field, /, axis: Any) -> Field:
    """`squeeze` of the array API standard."""
    return layouts.squeeze(x, axis)


def tile(x: Field, repetitions: Any, /) -> Field:
    """`tile` of the array API standard."""
    return reorder.tile(x, repetitions)


def unstack(x: Field, /, *, axis: int = 0) -> tuple[Field, ...]:
    """`unstack` of the array API standard."""
    return shape_functions.unstack(x, axis=axis)


def take(x: Field, indices: Field, /, *, axis: int | None = None) -> Field:
    """`take` of the array API standard; negative indices count from the end."""
    return reorder.take(x, indices, axis, mode="wrap")


def take_along_axis(x: Field, indices: Field, /, *, axis: int = -1) -> Field:
    """`take_along_axis` of the array API standard."""
    return taking.take_along_axis(x, indices, axis)


# --- products -------------------------------------------------------------------------------------------------------------


def matrix_transpose(x: Field, /) -> Field:
    """`matrix_transpose` of the array API standard."""
    return shape_functions.matrix_transpose(x)


def tensordot(x1: Field, x2: Field, /, *, axes: Any = 2) -> Field:
    """`tensordot` of the array API standard."""
    return row_products.tensordot(x1, x2, axes)


def vecdot(x1: Field, x2: Field, /, *, axis: int = -1) -> Field:
    """`vecdot` of the array API standard: the sum of products; x1 is conjugated."""
    return products.vecdot(x1, x2, axis)  # type: ignore[no-any-return]


def matmul(x1: Field, x2: Field, /) -> Field:
    """`matmul` of the array API standard: sums of products, of stacks of matrices that broadcast."""
    return products.matmul(x1, x2)  # type: ignore[no-any-return]


MOVED = (flip, moveaxis, permute_dims, repeat, reshape, roll, squeeze, tile, take, take_along_axis)
JOINED = (broadcast_arrays, broadcast_to, concat, stack, expand_dims, unstack)
FUNCTIONS = {f.__name__: f for f in (*MOVED, *JOINED, matrix_transpose, tensordot, vecdot, matmul)}
