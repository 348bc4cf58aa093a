"""Pyramids and grids: stages of different sizes."""

from __future__ import annotations

from itertools import pairwise

import gpuop as gp
from gpuop.dsl import *

LEVELS = 5
INTENSITIES = 8
ALPHA, SIGMA = 0.5, 0.1  # how much details grow, and what counts as one
CELL, BINS = 8, 12  # points along an edge of a cell of the bilateral grid; its layers, of which 0 and 11 are margins
BLUR = (1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16)


# --- down and up by two, of scalars and of tensors ------------------------------------------------------------------------


def halved(field, axis):
    rows, columns = field.field_shape
    shape = ((rows + 1) // 2, columns) if axis == 0 else (rows, (columns + 1) // 2)
    return field.type.replace(field_shape=shape)


@gp.operator(outputs=lambda f: halved(f, 0))
def half_the_rows(field):
    with _forEachTensorElement(field.tensor_shape):
        a, b, c, d = (_readTensorElement(field, 2 * _row + k, _column, _tensorElement) for k in (-1, 0, 1, 2))
        _writeTensorElement(_out0, (a + 3 * b + 3 * c + d) * 0.125, _tensorElement)


@gp.operator(outputs=lambda f: halved(f, 1))
def half_the_columns(field):
    with _forEachTensorElement(field.tensor_shape):
        a, b, c, d = (_readTensorElement(field, _row, 2 * _column + k, _tensorElement) for k in (-1, 0, 1, 2))
        _writeTensorElement(_out0, (a + 3 * b + 3 * c + d) * 0.125, _tensorElement)


@gp.operator(outputs=lambda f, rows: f.type.replace(field_shape=(rows, f.field_shape[1])))
def twice_the_rows(field, rows):
    with _forEachTensorElement(field.tensor_shape):
        near, far = _row // 2, _row // 2 - 1 + 2 * (_row % 2)
        value = 0.75 * _readTensorElement(field, near, _column, _tensorElement)
        _writeTensorElement(
            _out0, value + 0.25 * _readTensorElement(field, far, _column, _tensorElement), _tensorElement
        )


@gp.operator(outputs=lambda f, columns: f.type.replace(field_shape=(f.field_shape[0], columns)))
def twice_the_columns(field, columns):
    with _forEachTensorElement(field.tensor_shape):
        near, far = _column // 2, _column // 2 - 1 + 2 * (_column % 2)
        value = 0.75 * _readTensorElement(field, _row, near, _tensorElement)
        _writeTensorElement(_out0, value + 0.25 * _readTensorElement(field, _row, far, _tensorElement), _tensorElement)


def down(field):
    return half_the_columns(half_the_rows(field))


def up(field, like):
    rows, columns = like.field_shape
    return twice_the_columns(twice_the_rows(field, rows), columns)


def pyramid(field):
    levels = [field]
    while len(levels) < LEVELS:
        levels.append(down(levels[-1]))
    return levels


def details(levels):
    """The details of each level that the next coarser one has not; the last one is as it is."""
    return [fine - up(coarse, fine) for fine, coarse in pairwise(levels)] + levels[-1:]


def collapsed(levels):
    result = levels[-1]
    for level in levels[-2::-1]:
        result = level + up(result, level)
    return result


# --- two images blended -----------------------------------------------------------------------------------------------


def pyramid_blend(a, b, mask):
    parts = zip(details(pyramid(a)), details(pyramid(b)), pyramid(mask), strict=True)
    return collapsed([m * x + (1 - m) * y for x, y, m in parts])


# --- local Laplacian filter -----------------------------------------------------------------------------------------------


@gp.operator(outputs=lambda image: image.type.replace(tensor_shape=(INTENSITIES,)))
def remapped(image):
    """The image with more detail around each of some intensities."""
    with _forEachTensorElement(INTENSITIES):
        value = _readTensor(image)
        difference = value - _convert_float(_tensorElement) * (1 / (INTENSITIES - 1))
        grown = ALPHA * difference * _exp(-(difference * difference) * (0.5 / SIGMA**2))
        _writeTensorElement(_out0, value + grown, _tensorElement)


@gp.operator(outputs=lambda levels, image: image.type)
def chosen(levels, image):
    """Between the two elements whose intensities are nearest the image's."""
    level = _clamp(_readTensor(image), 0.0, 1.0) * (INTENSITIES - 1)
    below = _min(_convert_int(level), INTENSITIES - 2)
    part = level - _convert_float(below)
    return (1 - part) * _readTensorElement(levels, _row, _column, below) + part * _readTensorElement(
        levels, _row, _column, below + 1
    )


def local_laplacian(image):
    levels = pyramid(image)
    fine = [chosen(d, g) for d, g in zip(details(pyramid(remapped(image)))[:-1], levels[:-1], strict=True)]
    return collapsed([*fine, levels[-1]])


# --- bilateral grid -----------------------------------------------------------------------------------------------------


@gp.operator(outputs=lambda f: gp.FieldType((BINS, -(-f.field_shape[0] // CELL), -(-f.field_shape[1] // CELL)), (2,)))
def grid_of(image):
    """Sums and numbers of the values of each cell's points that lie in each layer: a thread for a cell of all layers."""
    rows, columns = image.field_shape
    _globalThreads(-(-rows // CELL), -(-columns // CELL))
    sums = _float2Array(BINS)
    with _for(CELL) as r, _for(CELL) as c:
        value = _clamp(_readTensor(image, _row * CELL + r, _column * CELL + c), 0.0, 1.0)
        sums[_convert_int(value * (BINS - 3) + 0.5) + 1] += _float2(value, 1.0)
    with _for(BINS) as layer:
        _writeTensor(_out0, sums[layer], layer, _row, _column)


@gp.operator
def blur_layers(grid):
    return sum(w * _readTensor(grid, _layer + k - 2, _row, _column) for k, w in enumerate(BLUR))


@gp.operator
def blur_rows(grid):
    return sum(w * _readTensor(grid, _layer, _row + k - 2, _column) for k, w in enumerate(BLUR))


@gp.operator
def blur_columns(grid):
    return sum(w * _readTensor(grid, _layer, _row, _column + k - 2) for k, w in enumerate(BLUR))


@gp.operator(outputs=lambda grid, image: image.type)
def slice_of(grid, image):
    layer = _clamp(_readTensor(image), 0.0, 1.0) * (BINS - 3) + 1
    row, column = _convert_float(_row) * (1 / CELL), _convert_float(_column) * (1 / CELL)
    total, weight = _sampleTensor(grid, layer, row, column)
    return total / weight


def bilateral_grid(image):
    return slice_of(blur_columns(blur_rows(blur_layers(grid_of(image)))), image)
