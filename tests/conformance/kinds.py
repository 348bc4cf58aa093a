"""Small operators, one for each kind that the notes on Cog and its guide describe, with what NumPy makes of them.

The kinds: local and non-local reads and writes, one to ten outputs,
0D operands, small and big tensors, complex and colour fields; in kinds_of_code.py thread constants, variables, arrays,
blocks, literals, conversions, operators, functions, local memory, atomics. Added: samples, and types that Cog has not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gpuop as gp
from gpuop.dsl import *

Array = NDArray[Any]
rng = np.random.default_rng(71)
IMAGE = rng.integers(-40, 41, (6, 7)).astype(np.float32) / 8
OTHER = rng.integers(-40, 41, (6, 7)).astype(np.float32) / 8
RGB = rng.integers(-40, 41, (6, 7, 3)).astype(np.float32) / 8
QUADS = rng.integers(-40, 41, (6, 7, 2, 2)).astype(np.float32) / 8
BIG = rng.integers(-40, 41, (6, 7, 3, 3)).astype(np.float32) / 8
COUNTS = rng.integers(0, 250, (6, 7)).astype(np.int32)
BYTES = rng.integers(0, 256, (6, 7, 4)).astype(np.uint8)
COMPLEX = (IMAGE + 1j * OTHER).astype(np.complex64)
ROWS, COLUMNS = np.indices((6, 7), np.int32)


@dataclass(frozen=True)
class Kind:
    """An operator's body, its inputs and its results; `outputs` where they are declared."""

    body: Callable[..., Any]
    fields: tuple[gp.Field, ...]
    expected: tuple[Array, ...]
    outputs: Any = None


KINDS: dict[str, Kind] = {}
image, other, counts = gp.ScalarField(IMAGE), gp.ScalarField(OTHER), gp.ScalarField(COUNTS)
rgb, quads, big = gp.VectorField(RGB), gp.MatrixField(QUADS), gp.MatrixField(BIG)


def kind(fields: tuple[gp.Field, ...], *expected: Array, outputs: Any = None) -> Callable[[Callable[..., Any]], None]:
    """The function below is the body of an operator of these inputs and results."""

    def register(body: Callable[..., Any]) -> None:
        KINDS[body.__name__] = Kind(body, fields, expected, outputs)

    return register


# --- fields ---------------------------------------------------------------------------------------------------------


@kind((image,), IMAGE / 2)
def local(f):
    return _readTensor(f) / 2


@kind((image,), IMAGE[::-1, ::-1].copy())
def gather(f):
    return _readTensor(f, _rows - 1 - _row, _columns - 1 - _column)


@kind((image,), IMAGE[:, ::-1].copy(), outputs=image.type)
def scatter(f):
    _writeTensor(_out0, _readTensor(f), _row, _columns - 1 - _column)


@kind((), (ROWS * 7 + COLUMNS).astype(np.float32), outputs=image.type)
def without_inputs():
    _writeTensor(_out0, _row * 7 + _column)


@kind((image, other), *(IMAGE + k * OTHER for k in range(10)))
def ten_outputs(f, g):
    return tuple(_readTensor(f) + k * _readTensor(g) for k in range(10))


@kind((image,), IMAGE[:, :3].copy(), IMAGE.T.copy(), outputs=(gp.FieldType((6, 3)), gp.FieldType((7, 6))))
def outputs_of_other_shapes(f):
    _writeTensor(_out0, _readTensor(f, _row, _column))
    with _for(_column, 7, 3) as c:
        _writeTensor(_out1, _readTensor(f, _row, c), c, _row)


@kind((image, gp.Parameter(1.5), gp.VectorField(np.float32([1, 2, 4]))), IMAGE[..., None] * np.float32([1.5, 3, 6]))
def zero_dimensional(f, scale, weights):
    return _readTensor(f) * scale * _readTensor(weights)


@kind((gp.ScalarField(IMAGE[0]),), IMAGE[0, [*range(1, 7), 0]])
def one_dimensional(f):
    return _readTensor(f, _column + 1, border="wrap")


@kind((gp.ScalarField(BIG.reshape(6, 7, 9)),), BIG.reshape(6, 7, 9)[::-1] + np.arange(6, dtype="f")[:, None, None])
def three_dimensional(f):
    return _readTensor(f, 5 - _layer, _row, _column) + _layer


# --- tensors --------------------------------------------------------------------------------------------------------


@kind((rgb,), RGB[..., ::-1] * RGB[..., :1] + 1)
def vectors(f):
    v = _readTensor(f)
    return v.zyx * v.x + 1


@kind((quads,), QUADS.swapaxes(2, 3).copy(), outputs=quads.type)
def small_matrices(f):
    a, b, c, d = _readTensor(f)
    _writeTensor(_out0, _vector(a, c, b, d))


@kind((big,), BIG * BIG)
def big_matrices(f):
    with _forEachTensorElement(f.tensor_shape):
        element = _tensorElementVar(f)
        element @= _readTensorElement(f)
        _writeTensorElement(_out0, element * element, _tensorElement)


@kind((big,), BIG.swapaxes(2, 3).copy(), outputs=big.type)
def computed_elements(f):
    with _forEachTensorElement(f.tensor_shape):
        e = _tensorElement
        _writeTensorElement(_out0, _readTensorElement(f, _row, _column, e % 3 * 3 + e / 3), e)


@kind((big,), BIG[..., 1, 2] - BIG[:, [0, *range(6)], 0, 0])
def constant_elements(f):
    return _readTensorElement(f, 5) - _readTensorElement(f, _row, _column - 1, 0)


@kind((gp.ComplexField(COMPLEX),), COMPLEX * COMPLEX, outputs=gp.FieldType((6, 7), (), "complex64"))
def complex_square(f):
    x, y = _readTensor(f)
    _writeTensor(_out0, _float2(x * x - y * y, 2 * x * y))


@kind((gp.ColorField(BYTES),), BYTES[..., [2, 1, 0, 3]], outputs=gp.FieldType((6, 7), 4, "unorm8"))
def colours(f):
    _writeTensor(_out0, _readTensor(f).zyxw)


@kind(
    (image,), IMAGE.astype(np.float16) * 2, IMAGE.astype(np.float64) / 4, np.clip(np.trunc(IMAGE), 0, 255).astype("u1")
)
def other_types(f):
    x = _readTensor(f)
    return _convert_half(x) * 2, _convert_double(x) / 4, _convert_uchar(x)
