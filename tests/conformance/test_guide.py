"""The guide's own examples, in Cog's form and in Python's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import skimage.color
import skimage.data

import gpuop as gp
from gpuop.dsl import *

from .compare import all_same, same

rng = np.random.default_rng(7)


def half(field: gp.Field) -> gp.Field:
    with gp.GPUOperator(field.type) as op:
        _writeTensor(_out0, _readTensor(field) / 2.0)
    return op.output


def half_double(field: gp.Field) -> tuple[gp.Field, ...]:
    with gp.GPUOperator(field.type, field.type) as op:
        x = _tensorVar(field)
        x @= _readTensor(field)
        _writeTensor(_out0, x / 2.0)
        _writeTensor(_out1, x * 2.0)
    return op.outputs


def square_big(v: gp.Field) -> gp.Field:
    with gp.GPUOperator(v.type) as op, _forEachTensorElement(v.tensor_shape):
        element = _tensorElementVar(v)
        element @= _readTensorElement(v)
        _writeTensorElement(_out0, element * element, _tensorElement)
    return op.output


def square(v: gp.Field) -> gp.Field:
    with gp.GPUOperator(v.type) as op:
        if gp.is_big_tensor(v.type.tensor_shape):
            with _forEachTensorElement(v.tensor_shape):
                element = _tensorElementVar(v)
                element @= _readTensorElement(v, _tensorElement)
                _writeTensorElement(_out0, element * element, _tensorElement)
        else:
            tensor = _tensorVar(v)
            tensor @= _readTensor(v)
            _writeTensor(_out0, tensor * tensor)
    return op.output


def upside_down(field: gp.Field) -> gp.Field:
    assert field.field_shape.dimensions == 2, "Requires a 2D field"
    with gp.GPUOperator(field.type) as op:
        read_row = _rows - _row - 1
        read_column = _column
        x = _readTensor(field, read_row, read_column)
        _writeTensor(_out0, x)
    return op.output


def floats(*shape: int) -> Any:
    return rng.standard_normal(shape).astype(np.float32)


def test_half(device: str) -> None:
    scalar, vector, matrix = floats(5, 6), floats(4, 5, 3), floats(3, 2, 2, 2)
    color = rng.integers(0, 256, (4, 5, 4), np.uint8)
    same(half(gp.ScalarField(scalar)), scalar / 2)
    same(half(gp.VectorField(vector)), vector / 2)
    same(half(gp.MatrixField(matrix)), matrix / 2)
    actual = half(gp.ColorField(color)).numpy()
    assert actual.dtype == np.uint8 and np.abs(actual - color / 2.0).max() <= 0.5 + 1e-4


def test_half_in_pythons_forms(device: str) -> None:
    @gp.operator
    def returned(field):
        return _readTensor(field) / 2

    @gp.operator
    def written(field):
        _writeTensor(_out0, _readTensor(field) / 2)

    @gp.operator(outputs=lambda f: (f.type, f.type))
    def both(field):
        x = _readTensor(field)
        return x / 2, x * 2

    a = floats(5, 6, 3)
    same(returned(gp.VectorField(a)), a / 2)
    same(written(gp.VectorField(a)), a / 2)
    all_same(both(gp.VectorField(a)), (a / 2, a * 2))


def test_half_double(device: str) -> None:
    a = floats(5, 6, 4)
    all_same(half_double(gp.VectorField(a)), (a / 2, a * 2))


def test_square(device: str) -> None:
    big, small, matrix = floats(4, 3, 7), floats(4, 3, 3), floats(2, 3, 7, 7)
    same(square_big(gp.VectorField(big)), big * big)
    for function in (square_big, square):
        same(function(gp.VectorField(small)), small * small)
    same(square(gp.VectorField(big)), big * big)
    same(square(gp.MatrixField(matrix)), matrix * matrix)
    assert gp.is_big_tensor(gp.VectorField(big)) and not gp.is_big_tensor(gp.VectorField(small).type)


def test_upside_down(device: str) -> None:
    a, color = floats(5, 6), rng.integers(0, 256, (17, 5, 4), np.uint8)
    same(upside_down(gp.ScalarField(a)), a[::-1])
    same(upside_down(gp.ColorField(color)), color[::-1])


# --- colour conversion ------------------------------------------------------------------------------------------------


def pixel_rgb_to_xyz(pixel):
    r, g, b = _floatVar(), _floatVar(), _floatVar()
    for channel, value in ((r, pixel.x), (g, pixel.y), (b, pixel.z)):
        channel.assign(value)
        with _if(channel > 0.04045):
            channel.assign(_pow((channel + 0.055) / 1.055, 2.4))
        with _else():
            channel.assign(channel / 12.92)
    scaled = _float3(r, g, b) * 100.0
    x = _dot(scaled, _float3(0.4124, 0.3576, 0.1805))
    y = _dot(scaled, _float3(0.2126, 0.7152, 0.0722))
    z = _dot(scaled, _float3(0.0193, 0.1192, 0.9505))
    return [x, y, z]


def pixel_xyz_to_lab(pixel):
    x, y, z = _floatVar(), _floatVar(), _floatVar()
    for value, arg, white in ((x, pixel[0], 95.047), (y, pixel[1], 100.0), (z, pixel[2], 108.883)):
        value.assign(arg)
        value.assign(value / white)
        with _if(value > 0.008856):
            value.assign(_pow(value, 1 / 3))
        with _else():
            value.assign(7.787 * value + 16 / 116)
    return _float3(y * 116 - 16, (x - y) * 500, (y - z) * 200)


def lab_type(image: gp.Field) -> gp.FieldType:
    return gp.FieldType(image.field_shape, 3, "float32")


def rgb_to_lab_cog(image: gp.Field) -> gp.Field:
    with gp.GPUOperator(lab_type(image)) as op:
        pixel = _float4Var()
        pixel @= _readTensor(image)
        xyz = pixel_rgb_to_xyz(pixel)
        Lab = pixel_xyz_to_lab(xyz)
        _writeTensor(_out0, Lab)
    return op.output


@gp.operator(outputs=lab_type)
def rgb_to_lab(image):
    return pixel_xyz_to_lab(pixel_rgb_to_xyz(_readTensor(image)))


def lab_formula(image: Any) -> Any:
    """The guide's formula, with its constants, in float64."""
    c = image[..., :3] / 255.0
    linear = np.where(c > 0.04045, ((c + 0.055) / 1.055) ** 2.4, c / 12.92) * 100
    matrix = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    t = linear @ matrix.T / (95.047, 100.0, 108.883)
    x, y, z = np.moveaxis(np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116), -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], -1)


@pytest.mark.parametrize("convert", [rgb_to_lab_cog, rgb_to_lab], ids=["cog", "operator"])
def test_cielab_of_a_photograph(device: str, convert: Any) -> None:
    image = skimage.data.astronaut()
    lab = convert(gp.ColorField(image)).numpy()
    assert lab.shape == (512, 512, 3) and lab.dtype == np.float32
    assert np.abs(lab - lab_formula(image)).max() < 1e-3
    # skimage's matrix has six digits where the guide's has four: the constants differ, not the method
    assert np.abs(lab - skimage.color.rgb2lab(image)).max() < 0.1
