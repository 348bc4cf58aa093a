"""Cog reductions, and algebra of tensors and complex numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import gpuop.ops.array_functions  # noqa: F401 - NumPy functions take fields
from gpuop.base.errors import SemanticError, described
from gpuop.dsl.fields.field import Field
from gpuop.engine.jit.array_arguments import an_array
from gpuop.ir.dtype_names import FLOATS
from gpuop.lib.fft import cosine_transforms, transforms
from gpuop.ops.create.evenly_spaced import arange


def grid_axes(field: Any) -> tuple[int, ...]:
    if not isinstance(field, Field):
        an_array(field)  # has a better message for kernel values
        raise SemanticError(
            f"functions of gpuop.cog take Fields, not {described(field)}; wrap arrays, as in `gp.ScalarField(a)`"
        )
    return tuple(range(len(field.field_shape)))


def floating(field: Any) -> Any:
    """The field, converted to float32 if it has integers: Cog fields are floats."""
    return field if field.dtype in FLOATS else field.astype("float32")


def reciprocal(field: Any) -> Any:
    """1 / x, for integers too, for which numpy.reciprocal gives integers."""
    return 1 / field


def tensor_axes(field: Any) -> tuple[int, ...]:
    return tuple(range(len(field.field_shape), field.ndim))


# --- fields to one tensor -----------------------------------------------------------------------------------------------


def fieldReduceSum(field: Any) -> Any:
    """The sum over the grid, for each element of the tensors: a 0D field."""
    return np.sum(field, axis=grid_axes(field))


def fieldReduceMax(field: Any) -> Any:
    """The maximum over the grid, for each element of the tensors: a 0D field."""
    return np.max(field, axis=grid_axes(field))


def fieldReduceMin(field: Any) -> Any:
    """The minimum over the grid, for each element of the tensors: a 0D field."""
    return np.min(field, axis=grid_axes(field))


def fieldReduceMedian(field: Any) -> Any:
    """The median over the grid, of all points. Cog samples 999 points at random if there are more."""
    return np.median(field, axis=grid_axes(field))


def maxPosition(field: Any) -> Any:
    """The position of a scalar field's maximum, the first one: a 0D float32 vector (layer, row, column); a scalar in 1D."""
    place, shape = np.argmax(field), field.field_shape
    behind = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    result = [(place // step % n).astype("float32") for step, n in zip(behind, shape, strict=True)]
    return result[0] if len(result) == 1 else np.stack(result, axis=-1)


def winnerTakeAll(field: Any) -> Any:
    """1.0 where a field is greatest over the grid, at the first such point, else 0.0; for each element of the tensors."""
    lines = np.reshape(field, (-1, *field.tensor_shape))
    winner = arange(field.field_shape.points) == np.argmax(lines, axis=0)
    return np.reshape(winner.astype("float32"), field.shape)


def normalizeL1(field: Any) -> Any:
    """A scalar field divided by its sum, as in Cog without absolute values, so this is a norm only for positive fields."""
    return field / fieldReduceSum(field)


def normalizeL2(field: Any) -> Any:
    """A scalar field divided by the sum of its squares, as in Cog without a root; use `field / gp.linalg.norm(field)` for that."""
    return field / fieldReduceSum(field * field)


# --- tensors to fewer elements ------------------------------------------------------------------------------------------


def reduceSum(field: Any) -> Any:
    """The sum of each tensor's elements."""
    return np.sum(field, axis=tensor_axes(field))


def reduceMax(field: Any) -> Any:
    """The maximum of each tensor's elements."""
    return np.max(field, axis=tensor_axes(field))


def reduceMin(field: Any) -> Any:
    """The minimum of each tensor's elements."""
    return np.min(field, axis=tensor_axes(field))


def blockReduceSum(field: Any, factor: int) -> Any:
    """The sums of `factor` neighbouring elements of each vector. Vectors of one element are scalars, as in Cog."""
    return _whole(np.sum(_blocks(field, factor), axis=-1))


def blockReduceMax(field: Any, factor: int) -> Any:
    """The maxima of `factor` neighbouring elements of each vector. Vectors of one element are scalars, as in Cog."""
    return _whole(np.max(_blocks(field, factor), axis=-1))


def blockReduceMin(field: Any, factor: int) -> Any:
    """The minima of `factor` neighbouring elements of each vector. Vectors of one element are scalars, as in Cog."""
    return _whole(np.min(_blocks(field, factor), axis=-1))


def _blocks(field: Any, factor: int) -> Any:
    blocks: Any = np.reshape(field, (*field.field_shape, -1, factor))
    return blocks.with_tensor_order(2)


def _whole(field: Any) -> Any:
    return field[..., 0] if field.tensor_shape == (1,) else field


# --- algebra of tensors -------------------------------------------------------------------------------------------------


def dot(field: Any, f2: Any) -> Any:
    """The sum of the elementwise products of two vectors or matrices; for scalars their product."""
    return reduceSum(field * f2)


def crossDot(field: Any, f2: Any) -> Any:
    """The sum of the products of each tensor's elements and the points of a scalar field of the tensors' shape."""
    return dot(field, f2.with_tensor_order(f2.ndim))


def reverseCrossDot(field: Any, f2: Any) -> Any:
    """The sum over the grid of tensors times scalars: a scalar field of the tensors' shape."""
    summed: Any = fieldReduceSum(field * f2)
    return summed.with_tensor_order(0)


def outer(field: Any, f2: Any) -> Any:
    """Cog's `^`: the product of each point of one scalar field and each of another, on a grid of the dimensions of both."""
    return np.tensordot(field, f2, axes=0)


def transform(field: Any, f2: Any) -> Any:
    """Matrices times matrices, or times vectors, at each point; either may be 0D."""
    return np.matmul(field, f2) if len(f2.tensor_shape) == 2 else np.matvec(field, f2)


def transposeVectors(field: Any) -> Any:
    """Vectors of K elements as matrices of 1×K."""
    return np.stack([field], axis=-2)


# --- complex numbers ----------------------------------------------------------------------------------------------------


def complex(real: Any, imaginary: Any = 0.0) -> Any:
    """A complex field of its parts."""
    return real + 1j * imaginary


def polarComplex(magnitude: Any, phase: Any) -> Any:
    """A complex field of absolute values and angles."""
    return magnitude * np.exp(1j * phase)


def fft(field: Any) -> Any:
    """The Fourier transform over the grid, of any lengths and dimensions. Cog supports powers of 2 up to 2048."""
    return transforms.fftn(field)


def fftInverse(field: Any) -> Any:
    """The inverse of `fft`, divided by the number of points."""
    return transforms.ifftn(field)


def fftRI(real: Any, imaginary: Any = 0.0) -> tuple[Any, Any]:
    """`fft` of a field's parts, in parts."""
    return _parts(fft(complex(real, imaginary)))


def fftInverseRI(real: Any, imaginary: Any) -> tuple[Any, Any]:
    """`fftInverse` of a field's parts, in parts."""
    return _parts(fftInverse(complex(real, imaginary)))


def _parts(field: Any) -> tuple[Any, Any]:
    return field.real, field.imag


def fftRows(field: Any) -> Any:
    """The Fourier transform of each row."""
    return transforms.fft(field, axis=_last(field))


def fftColumns(field: Any) -> Any:
    """The Fourier transform of each column."""
    return transforms.fft(field, axis=_last(field) - 1)


def fftInverseRows(field: Any) -> Any:
    """The inverse of `fftRows`, divided by the row's length."""
    return transforms.ifft(field, axis=_last(field))


def fftInverseColumns(field: Any) -> Any:
    """The inverse of `fftColumns`, divided by the column's length."""
    return transforms.ifft(field, axis=_last(field) - 1)


def _last(field: Any) -> int:
    return len(field.field_shape) - 1


def dct(field: Any) -> Any:
    """The orthonormal cosine transform (type 2) over the grid, of any size. Cog supports powers of 2 from 256 to 2048."""
    return cosine_transforms.dctn(field, norm="ortho")


def dctInverse(field: Any) -> Any:
    """The inverse of `dct`."""
    return cosine_transforms.idctn(field, norm="ortho")


def dctTransposed(field: Any) -> Any:
    """`dct`, transposed."""
    return np.swapaxes(dct(field), 0, 1)


def dctInverseTransposed(field: Any) -> Any:
    """The inverse of `dctTransposed`."""
    return dctInverse(np.swapaxes(field, 0, 1))


# --- colours ------------------------------------------------------------------------------------------------------------


def colorField(*planes: Any) -> Any:
    """A colour image from three scalar fields (0 to 1), from a grey one, or from 3-vectors; alpha is 1."""
    first = planes[0]
    rgb: Sequence[Any] = [first[..., k] for k in range(3)] if first.tensor_shape else planes * (4 - len(planes))
    return np.stack([*rgb[:3], first[..., 0] * 0 + 1 if first.tensor_shape else first * 0 + 1], axis=-1).astype(
        "unorm8"
    )


def luminance(field: Any) -> Any:
    """0.3811 · red + 0.5783 · green + 0.0402 · blue: the Cog weights, whose sum is not 1."""
    return 0.3811 * field[..., 0] + 0.5783 * field[..., 1] + 0.0402 * field[..., 2]
