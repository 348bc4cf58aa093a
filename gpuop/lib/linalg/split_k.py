"""Split-K products: many products are added by several threads, or in parts first, as sums in order would lose bits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from gpuop.dsl.fields.field import Field
from gpuop.ir.dtype_names import HALVES, REALS
from gpuop.lib.linalg.contractions import WRITTEN_OUT, Contraction, labelled_axes
from gpuop.ops.elementwise.algebra import apply, astype, common_dtype
from gpuop.ops.layout.layouts import expand_dims, reshape, swapaxes, transpose

ACCUMULATED = ("float32", "float64")  # dtypes whose products are added in themselves
FAR = 1 << 14  # least products of a sum that is split into parts,
PART = 1 << 12  # each of so many products, added in order
MOST = 1 << 26  # most values of all parts
LONG = WRITTEN_OUT + 1  # least products along rows that are added as a reduction, by several threads


def is_long(a: Field, b: Field) -> bool:
    """Return whether the result is a row or a column of long sums of floats."""
    shapes = a.type.array_shape, b.type.array_shape
    thin = len(shapes[0]) == 1 or shapes[0][-2] == 1 or len(shapes[1]) == 1 or shapes[1][-1] == 1
    floats = common_dtype((a, b)) in REALS
    return thin and floats and not a.tensor_shape and not b.tensor_shape and shapes[0][-1] >= LONG


def long_sums(a: Field, b: Field) -> Field:
    """The products, then their reduction by `sum`, along rows of the left matrix or columns of the right one."""
    dtype = common_dtype((a, b))
    left, ranks = _accumulated(a, dtype), (len(a.field_shape), len(b.field_shape))
    if ranks[1] == 1 or (ranks[0] > 1 and b.field_shape[-1] == 1):
        result = along_rows(a, b if ranks[1] == 1 else swapaxes(b, -1, -2))
        return result if ranks[1] == 1 else expand_dims(result, -1)
    column = expand_dims(left, -1) if ranks[0] == 1 else swapaxes(left, -1, -2)
    result = astype(apply("multiply", column, b).sum(axis=-2), dtype)
    return result if ranks[0] == 1 else expand_dims(result, -2)


def are_long_rows(a: Field, b: Field) -> bool:
    """Return whether both are grids of floats with long last axes, and their other axes match."""
    shapes = a.type.array_shape, b.type.array_shape
    plain = not (a.tensor_shape or b.tensor_shape or a.type.names or b.type.names)
    if not plain or common_dtype((a, b)) not in REALS or {shape[-1:] for shape in shapes} != {shapes[0][-1:]}:
        return False
    return all(1 in axes or len(axes) == 1 for axes in _batches(shapes)) and shapes[0][-1:] >= (LONG,)


def _batches(shapes: Sequence[Sequence[int]]) -> list[set[int]]:
    """The extents of matching axes, from the last but one."""
    return [set(axes) for axes in itertools.zip_longest(*(shape[-2::-1] for shape in shapes), fillvalue=1)]


def along_rows(a: Field, b: Field) -> Field:
    """The products, then their reduction by `sum` along the last axis."""
    dtype = common_dtype((a, b))
    return astype(apply("multiply", _accumulated(a, dtype), b).sum(axis=-1), dtype)


def _accumulated(factor: Field, dtype: str) -> Field:
    """A factor in the dtype of the products."""
    return astype(factor, "float32") if dtype in HALVES else factor


def are_long_sums(fields: Sequence[Field], what: Contraction) -> bool:
    """Return whether all fields have the same axes, in any order, and many elementwise products of floats are added."""
    labels = set(what.inputs[0])
    extents = dict(zip(what.inputs[0], fields[0].type.array_shape, strict=True))
    for field, each in zip(fields, what.inputs, strict=True):
        same = len(set(each)) == len(each) and set(each) == labels
        if not same or field.tensor_shape or field.type.names or common_dtype(fields) not in REALS:
            return False
        if tuple(extents[one] for one in each) != tuple(field.type.array_shape):
            return False
    return math.prod(extents[one] for one in what.summed()) >= LONG


def aligned_sums(fields: Sequence[Field], what: Contraction) -> Field:
    """The elementwise products, then their reduction by `sum`."""
    dtype, order = common_dtype(fields), what.inputs[0]
    result = _accumulated(fields[0], dtype)
    for field, labels in zip(fields[1:], what.inputs[1:], strict=True):
        result = apply("multiply", result, _in_order(field, labels, order))
    result = result.sum(axis=tuple(order.index(one) for one in what.summed()))
    return _in_order(astype(result, dtype), [one for one in order if one in what.output], what.output)


def _in_order(field: Field, labels: Sequence[str], order: Sequence[str]) -> Field:
    """The field with its labelled axes in another order."""
    axes = [labels.index(one) for one in order]
    return field if axes == sorted(axes) else transpose(field, axes)


def is_far(a: Field, b: Field) -> bool:
    """Return whether a product of two matrices has sums that are long enough to be split."""
    grids = all(len(f.field_shape) == 2 and not f.tensor_shape for f in (a, b))
    if not grids or common_dtype((a, b)) not in ACCUMULATED:
        return False
    (m, inner), n = a.field_shape, b.field_shape[1]
    return min(m, n) > 1 and inner >= FAR and m * n * (inner // PART) <= MOST


def by_parts(a: Field, b: Field, multiplied: Callable[[Field, Field], Field]) -> Field:
    """The product of two matrices as partial products, which are then added by `sum`."""
    (m, inner), n = a.field_shape, b.field_shape[1]
    count = inner // PART
    whole = count * PART
    left = swapaxes(reshape(a[:, :whole], (m, count, PART)), 0, 1)
    result = multiplied(left, reshape(b[:whole], (count, PART, n))).sum(axis=0)
    return result if whole == inner else result + multiplied(a[:, whole:], b[whole:])


def by_matrices(
    fields: Sequence[Field], what: Contraction, multiplied: Callable[[Field, Field], Field]
) -> Field | None:
    """The contraction as one product of two reshaped matrices if its sums are long; else None."""
    if len(fields) != 2 or any(f.tensor_shape or f.type.names for f in fields):
        return None
    one, two = (
        dict(zip(labels, f.type.array_shape, strict=True)) for labels, f in zip(what.inputs, fields, strict=True)
    )
    summed, m, n = what.summed(), [x for x in one if x not in two], [x for x in two if x not in one]
    unique = len(one) == len(what.inputs[0]) and len(two) == len(what.inputs[1])
    plain = unique and all(one.get(x) == two.get(x) for x in summed) and set(what.output) == {*m, *n}
    inner = math.prod(one[x] for x in summed) if plain else 0
    if inner < FAR:
        return None
    left = reshape(_in_order(fields[0], what.inputs[0], [*m, *summed]), (-1, inner))
    right = reshape(_in_order(fields[1], what.inputs[1], [*summed, *n]), (inner, -1))
    result = reshape(multiplied(left, right), (*(one[x] for x in m), *(two[x] for x in n)))
    return _in_order(result, [*m, *n], what.output)


def summed_alone(fields: Sequence[Field], what: Contraction) -> tuple[list[Field], Contraction]:
    """Sum first over axes that only one operand, and not the result, has."""
    result, inputs = list(fields), list(what.inputs)
    extents = labelled_axes("einsum", fields, what)
    if math.prod(extents[one].extent for one in what.summed()) < LONG:
        return result, what
    for k, (field, labels) in enumerate(zip(fields, what.inputs, strict=True)):
        others = {*what.output, *itertools.chain(*(each for j, each in enumerate(what.inputs) if j != k))}
        alone = [n for n, one in enumerate(labels) if one not in others]
        floats = field.dtype in ACCUMULATED and not field.tensor_shape and len(set(labels)) == len(labels)
        if floats and alone:
            result[k] = field.sum(axis=tuple(alone))
            inputs[k] = tuple(one for n, one in enumerate(labels) if n not in alone)
    return result, Contraction(tuple(inputs), what.output)
