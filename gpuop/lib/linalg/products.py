"""Products of matrices and vectors, under NumPy names: over the last axes of a field's array, of the grid or of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError
from gpuop.dsl.fields.derivative_rules import Late, with_rule
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.dsl.recorder.precisions import exactly
from gpuop.engine.jit.array_arguments import as_field, takes_arrays
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.lib.linalg.contractions import Contraction, contracted, element_at, labelled_axes, write
from gpuop.lib.linalg.gemm_tiles import suits, tiled
from gpuop.lib.linalg.product_dtypes import Products, broadcast_place
from gpuop.lib.linalg.split_k import along_rows, are_long_rows, by_parts, is_far, is_long, long_sums
from gpuop.ops.elementwise.algebra import apply, common_dtype
from gpuop.ops.layout.axes import axes_of, type_of
from gpuop.ops.layout.gather import Place, Reading, apart, gathered, own_place
from gpuop.ops.layout.layouts import expand_dims, moveaxis, swapaxes
from gpuop.ops.reduce import row_products

Labels = tuple[str, ...]


@takes_arrays("x1", "x2")
def matmul(x1: Any, x2: Any) -> Any:
    """numpy.matmul, also `a @ b`: products of the matrices in the last two axes, of the grid or of tensors.

    Args:
        x1, x2: fields, arrays or lists; a vector is a row on the left and a column on the right. Other axes are broadcast.

    Returns:
        A lazy Field; for arrays, an array of the same library. Products are added with `fma`, in order; products along long
            rows of floats, and parts of 4096 products if there are four or more, as `.sum` does.

    Raises:
        ArgumentError: an operand is a number, or axes do not match; a ValueError.
    """
    a, b = as_field(x1), as_field(x2)
    shapes = [tuple(f.type.array_shape) for f in (a, b)]
    if () in shapes:
        raise ArgumentError(f"matmul: a factor has one axis or more, and the shapes are {_listed(shapes)}")
    inner = shapes[0][-1], shapes[1][-2 if len(shapes[1]) > 1 else 0]
    if inner[0] != inner[1]:
        raise ArgumentError(
            f"matmul: the shapes {_listed(shapes)} do not match: {inner[0]} is different from {inner[1]}"
        )
    if is_far(a, b):
        return by_parts(a, b, matmul)
    if suits(a, b):
        return _matrices(a, b)
    if is_long(a, b):
        return long_sums(a, b)
    rows, columns = ("m",) if len(shapes[0]) > 1 else (), ("n",) if len(shapes[1]) > 1 else ()
    return _of_vectors("matmul", a, b, (*rows, "k"), ("k", *columns), (*rows, *columns))


def _listed(shapes: Sequence[Sequence[int]]) -> str:
    return " and ".join(str(tuple(shape)) for shape in shapes)


def _matrices(a: Field, b: Field) -> Field:
    try:
        batch = np.broadcast_shapes(a.field_shape[:-2], b.field_shape[:-2])
    except ValueError:
        message = (
            f"matmul: the shapes {_listed((a.field_shape, b.field_shape))} do not broadcast before the last two axes"
        )
        raise ArgumentError(message) from None
    dtype = common_dtype((a, b))
    out = a.type.replace(field_shape=(*batch, a.field_shape[-2], b.field_shape[-1]), dtype=dtype)
    pull, push = Late("linalg.matmul pulled"), Late("linalg.matmul pushed")
    return with_rule(tiled(a, b, out, dtype), "matmul", [a, b], pull, push)


@takes_arrays("a", "b")
def dot(a: Any, b: Any) -> Any:
    """numpy.dot: `matmul` of matrices and vectors, products of numbers; else sums over a's last axis and b's last but one.

    Args:
        a, b: fields, arrays or lists.

    Returns:
        As of `matmul`.

    Raises:
        ArgumentError: axes that do not go together; a ValueError.
    """
    one, two = as_field(a), as_field(b)
    return matmul(one, two) if {one.ndim, two.ndim} <= {1, 2} else row_products.dot(one, two)


@takes_arrays("x1", "x2")
def vecdot(x1: Any, x2: Any, axis: int = -1) -> Any:
    """numpy.linalg.vecdot: sums of products along an axis; x1 is conjugated.

    Args:
        x1, x2: fields, arrays or lists; other axes are broadcast.
        axis: the axis of both; by default the last one.

    Returns:
        As of `matmul`.

    Raises:
        ArgumentError: axes that do not go together; a ValueError.
    """
    a, b = _lying_last(x1, x2, axis)
    if are_long_rows(a, b):
        return along_rows(a, b)
    return _of_vectors("vecdot", _conjugate(a), b, ("k",), ("k",), ())


def _lying_last(x1: Any, x2: Any, axis: int) -> list[Field]:
    """Both fields with the axis moved to the end."""
    return [moveaxis(as_field(x), axis, -1) if axis != -1 else as_field(x) for x in (x1, x2)]


def _conjugate(field: Field) -> Field:
    return apply("conjugate", field) if field.dtype in COMPLEX_DTYPES else field


@takes_arrays("x1", "x2")
def matvec(x1: Any, x2: Any) -> Any:
    """numpy.matvec: matrices times vectors, which are in the last axis of x2.

    Args:
        x1, x2: fields, arrays or lists; other axes are broadcast: `matvec(gp.Parameter(m), colours)` turns all colours.

    Returns:
        As of `matmul`.

    Raises:
        ArgumentError: axes that do not go together; a ValueError.
    """
    a, b = as_field(x1), as_field(x2)
    if len(a.type.array_shape) > 1 and b.type.array_shape:
        rows = b if len(b.type.array_shape) == 1 or b.tensor_shape else expand_dims(b, -2)
        if are_long_rows(a, rows):
            return along_rows(a, rows)
    return _of_vectors("matvec", a, b, ("m", "k"), ("k",))


@takes_arrays("x1", "x2")
def vecmat(x1: Any, x2: Any) -> Any:
    """numpy.vecmat: conjugated vectors, which are in the last axis of x1, times matrices.

    Args:
        x1, x2: fields, arrays or lists; other axes are broadcast.

    Returns:
        As of `matmul`.

    Raises:
        ArgumentError: axes that do not go together; a ValueError.
    """
    return _of_vectors("vecmat", _conjugate(as_field(x1)), as_field(x2), ("k",), ("k", "m"))


def _of_vectors(name: str, a: Field, b: Field, one: Labels, two: Labels, result: Labels = ("m",)) -> Field:
    """A contraction of the last axes, which have these labels; the other axes are broadcast."""
    batches: list[Labels] = []
    for field, own in ((a, one), (b, two)):
        count = len(field.type.array_shape) - len(own)
        if count < 0:
            raise ArgumentError(
                f"{name}: multiplies the last {len(own)} axes, which a {field.type} field does not have"
            )
        batches.append(tuple(f"b{n}" for n in reversed(range(count))))
    first, second = (f.type.array_shape[own.index("k") - len(own)] for f, own in ((a, one), (b, two)))
    if first != second:  # extents of 1 are not broadcast here
        raise ArgumentError(f"{name}: sums over axes of {first} and of {second} elements, which differ")
    longest = batches[0] if len(batches[0]) >= len(batches[1]) else batches[1]
    return contracted(name, [a, b], Contraction(((*batches[0], *one), (*batches[1], *two)), (*longest, *result)))


@takes_arrays("x1", "x2")
def outer(x1: Any, x2: Any) -> Any:
    """numpy.linalg.outer of vectors; numpy.outer of other operands, which are flattened.

    Args:
        x1, x2: fields, arrays or lists.

    Returns:
        As of `matmul`; all axes are the grid's.

    Raises:
        SemanticError: an operand is no field, array or number.
    """
    return row_products.outer(as_field(x1), as_field(x2))


@takes_arrays("a", "b")
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """numpy.tensordot: sums of products over some axes of both.

    Args:
        a, b: fields, arrays or lists.
        axes: a number n, for the last n axes of a and the first n of b; or the axes of a and the axes of b.

    Returns:
        As of `matmul`; all axes are the grid's, and sums of less than 32 rows or columns are added as by `.sum`.

    Raises:
        SemanticError: axes do not match.
    """
    return row_products.tensordot(as_field(a), as_field(b), axes)


@takes_arrays("x1", "x2")
def cross(x1: Any, x2: Any, axis: int = -1) -> Any:
    """numpy.linalg.cross: cross products of 3-vectors.

    Args:
        x1, x2: fields, arrays or lists; other axes are broadcast.
        axis: the axis of the vectors.

    Returns:
        As of `matmul`.

    Raises:
        ArgumentError: vectors without three components; a ValueError.
    """
    a, b = _lying_last(x1, x2, axis)
    for field in (a, b):
        if tuple(field.type.array_shape[-1:]) != (3,):
            extent = field.type.array_shape[-1] if field.type.array_shape else "a number"
            raise ArgumentError(f"cross: vectors along an axis have three components, not {extent}")
    result = crossed(a, b)
    return moveaxis(result, -1, axis) if axis != -1 else result


@takes_arrays("x")
def trace(x: Any, offset: int = 0) -> Any:
    """numpy.linalg.trace: sums of the diagonals of the matrices in the last two axes.

    Args:
        x: a field, an array or a list.
        offset: the diagonal: 0 is the main one, positive ones are above it.

    Returns:
        As of `matmul`.

    Raises:
        ArgumentError: what has fewer axes; a ValueError.
    """
    return diagonal_of(as_field(x), offset).sum(axis=-1)


@takes_arrays("x")
def diagonal(x: Any, offset: int = 0) -> Any:
    """numpy.linalg.diagonal: diagonals of the matrices in the last two axes.

    Args:
        x, offset: as of `trace`.

    Returns:
        As of `matmul`.

    Raises:
        ArgumentError: what has fewer axes; a ValueError.
    """
    return diagonal_of(as_field(x), offset)


@takes_arrays("x")
def matrix_transpose(x: Any) -> Any:
    """numpy.linalg.matrix_transpose: the last two axes exchanged.

    Args:
        x: a field, an array or a list.

    Returns:
        As of `matmul`.

    Raises:
        SemanticError: x has fewer than two axes.
    """
    return swapaxes(as_field(x), -1, -2)


# --- cross products and diagonals: operations on single components ----------------------------------------------------


def crossed(a: Field, b: Field) -> Field:
    """The cross product of 3-vectors along the last axis of both; of each difference the second product is rounded first."""
    labels = [(*(f"b{n}" for n in reversed(range(len(f.type.array_shape) - 1))), "c") for f in (a, b)]
    what = Contraction((labels[0], labels[1]), max(labels, key=len))
    axes, dtype = labelled_axes("cross", [a, b], what), common_dtype((a, b))
    out, products = type_of("cross", [axes[one] for one in what.output], dtype), Products(dtype)

    def at(place: list[Any]) -> Any:
        def component(field: Field, step: int) -> Any:
            there = broadcast_place([*place[:-1], (place[-1] + step) % 3], field.type.array_shape)
            return products.converted(field, element_at(field, there))

        nothing = (
            k._vector(k._convert(0.0, products.summed), 0.0) if products.complex else k._convert(0, products.summed)
        )
        second = products.more(nothing, component(a, 2), component(b, 1))
        return products.result(products.more(-second, component(a, 1), component(b, 2)))

    def body() -> None:
        point = own_place(len(out.field_shape))
        for element in range(out.tensor_points):
            write(out, at([*point, *apart(element, out.tensor_shape)]), element)

    with exactly():
        return library_call("cross", (out,), [a, b], body, what)[0]


def diagonal_of(field: Field, offset: int) -> Field:
    """The diagonals of the matrices in the last two axes."""
    axes = axes_of(field.type)
    if len(axes) < 2:
        raise ArgumentError(f"diagonal: matrices are along the last two axes, and a {field.type} field has {len(axes)}")
    *rest, rows, columns = axes
    count = max(0, min(rows.extent + min(offset, 0), columns.extent - max(offset, 0)))
    extent = type(rows)(count, rows.tensor and columns.tensor)

    def value(at: Place, read: Reading) -> Any:
        return read.at(field, [*at[:-1], at[-1] - min(offset, 0), at[-1] + max(offset, 0)])

    return gathered("diagonal", type_of("diagonal", [*rest, extent], field.dtype), [field], value, offset)
