"""Pipelines of cameras: bytes and colours, several stencils one behind another."""

from __future__ import annotations

import numpy as np

import gpuop as gp
from gpuop.dsl import *

from .stencils import gaussian, gradient_x, gradient_y

TANGENT = 0.41421356  # of 22.5°
COLOURS = ((1.6, -0.4, -0.2), (-0.25, 1.5, -0.25), (0.05, -0.55, 1.5))
BINOMIAL = (1, 4, 6, 4, 1)


# --- sharpening of colours --------------------------------------------------------------------------------------------


def unsharp(picture):
    return picture + 1.5 * (picture - gaussian(picture, 2.0))


# --- Canny without hysteresis -----------------------------------------------------------------------------------------


@gp.operator
def thinned(strength, gx, gy):
    """The strength where it is largest across the edge, elsewhere 0."""
    own, x, y = _readTensor(strength), _readTensor(gx), _readTensor(gy)

    def largest(row, column):
        ahead = _readTensor(strength, _row + row, _column + column, border="zero")
        behind = _readTensor(strength, _row - row, _column - column, border="zero")
        return (own > ahead) & (own >= behind)

    steep, flat = abs(x) < abs(y) * TANGENT, abs(y) < abs(x) * TANGENT
    slanted = _where(x * y > 0, largest(1, 1), largest(1, -1))
    return _where(_where(flat, largest(0, 1), _where(steep, largest(1, 0), slanted)), own, 0.0)


def canny(image):
    """0, 1 for weak and 2 for strong edges, in bytes."""
    smooth = gaussian(image, 1.0)
    gx, gy = gradient_x(smooth), gradient_y(smooth)
    edges = thinned(np.sqrt(gx * gx + gy * gy), gx, gy)
    return ((edges > 0.15) + (edges > 0.3)).astype("uint8")


# --- bytes --------------------------------------------------------------------------------------------------------------


@gp.operator
def luma(picture):
    red, green, blue = _convert_int3(_readTensor(picture))
    return _convert_uchar((77 * red + 150 * green + 29 * blue) >> 8)


@gp.operator
def binomial_rows(image):
    return sum(w * _convert_int(_readTensor(image, _row, _column + k - 2)) for k, w in enumerate(BINOMIAL))


@gp.operator
def binomial_columns(image):
    return (sum(w * _readTensor(image, _row + k - 2, _column) for k, w in enumerate(BINOMIAL)) + 128) >> 8


@gp.operator
def threshold(image, limit):
    return _where(_readTensor(image) > limit, _convert_uchar(255), _convert_uchar(0))


def luma_blur_threshold(picture):
    return threshold(binomial_columns(binomial_rows(luma(picture))), 128)


# --- photos as they lie: pipelines that are called with interleaved arrays ------------------------------------------------

GRADING = ((1.28, -0.16, -0.04), (-0.08, 1.2, -0.04), (-0.08, -0.16, 1.32))
LIFT = -10.0


@gp.operator
def graded(picture):
    pixel = _convert_float3(_readTensor(picture))
    mixed = (a * pixel.x + b * pixel.y + c * pixel.z for a, b, c in GRADING)
    return _convert_uchar3(_clamp(_float3(*mixed) + (LIFT + 0.5), 0.0, 255.0))


def photo_unsharp(picture):
    return unsharp(gp.VectorField(picture))


def photo_unsharp_bytes(picture):
    sharp = unsharp(gp.VectorField(picture).astype("float32"))
    return np.clip(sharp + 0.5, 0, 255).astype("uint8")


def photo_luma(picture):
    return luma_blur_threshold(gp.VectorField(picture))


def photo_grade(picture):
    return graded(gp.VectorField(picture))


# --- exposure -----------------------------------------------------------------------------------------------------------


@gp.operator
def mean3x3(image):
    return sum(_readTensor(image, _row + r, _column + c) for r in (-1, 0, 1) for c in (-1, 0, 1)) * (1 / 9)


@gp.operator(outputs=gp.FieldType(256, dtype="int32"))
def histogram(levels):
    """The number of points of each level: one thread for every point, which counts in the output."""
    _globalThreads(levels)
    _atomic_inc(_pointerTo(_out0, _readTensor(levels)))


@gp.operator(outputs=gp.FieldType(()))
def gain_of(counts, points):
    """The factor that brings the level that a tenth of the points exceed to 0.9."""
    above, level = _intVar(0), _intVar(255)
    with _while((above < points // 10) & (level > 0)):
        above += _readTensor(counts, level)
        level -= 1
    return 0.9 * 255 / _convert_float(level + 1)


def auto_exposure(image):
    counts = histogram((mean3x3(image) * 255).astype("uint8"))
    return np.minimum(image * gain_of(counts, image.field_shape.points), 1)


# --- a camera's raw picture -----------------------------------------------------------------------------------------------


def raw_reader(image):
    """The reader of neighbours of the same colour: a reflection keeps the colours of rows and columns."""
    return lambda row, column: _readTensor(image, _row + row, _column + column, border="reflect")


@gp.operator
def without_hot_pixels(raw):
    at = raw_reader(raw)
    low = _min(_min(at(-2, 0), at(2, 0)), _min(at(0, -2), at(0, 2)))
    high = _max(_max(at(-2, 0), at(2, 0)), _max(at(0, -2), at(0, 2)))
    return _min(_max(at(0, 0), low), high)


@gp.operator
def demosaic(raw):
    """Red, green and blue of a mosaic whose rows are green, red, … and blue, green, …"""

    def at(row, column):
        return _convert_float(raw_reader(raw)(row, column))

    own = at(0, 0)
    sides, ends = (at(0, -1) + at(0, 1)) * 0.5, (at(-1, 0) + at(1, 0)) * 0.5
    cross, corners = (sides + ends) * 0.5, (at(-1, -1) + at(-1, 1) + at(1, -1) + at(1, 1)) * 0.25
    even_row, even_column = (_row & 1) == 0, (_column & 1) == 0
    red = _where(even_row, _where(even_column, sides, own), _where(even_column, corners, ends))
    green = _where(even_row == even_column, own, cross)
    blue = _where(even_row, _where(even_column, ends, corners), _where(even_column, own, sides))
    return _float3(red, green, blue) * (1 / 1023)


@gp.operator
def colour_matrix(picture):
    pixel = _readTensor(picture)
    return _float3(*(a * pixel.x + b * pixel.y + c * pixel.z for a, b, c in COLOURS))


@gp.operator
def filmic(picture):
    x = _max(_readTensor(picture), 0.0)
    return x * (6.2 * x + 0.5) / (x * (6.2 * x + 1.7) + 0.06)


@gp.operator
def sharpened(picture):
    at = raw_reader(picture)
    own = at(0, 0)
    return own + 0.5 * (own - 0.25 * (at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1)))


def camera(raw):
    """A raw picture of 10 bits to red, green and blue of 8."""
    picture = sharpened(filmic(colour_matrix(demosaic(without_hot_pixels(raw)))))
    return (picture * 255 + 0.5).astype("uint8")
