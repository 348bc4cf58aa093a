"""Stencils of one image, of float32: chains of small operators, each as one writes it without thinking of the others."""

from __future__ import annotations

import numpy as np

import gpuop as gp
from gpuop.dsl import *

KERNEL = ((0.05, 0.11, 0.07), (0.13, 0.28, 0.12), (0.06, 0.1, 0.08))
SPATIAL = tuple(tuple(float(np.exp(-(r * r + c * c) / (2 * 1.5**2))) for c in range(-2, 3)) for r in range(-2, 3))
RANGE = 22.222222  # 1 / (2 · 0.15²)
NEARNESS = 40.0  # of patches
SEARCH = [(r, c) for r in range(-3, 4) for c in range(-3, 4)]


def gaussian_weights(sigma: float) -> tuple[float, ...]:
    """Of a Gaussian cut at 4 sigma; they sum to 1."""
    at = np.arange(-int(4 * sigma + 0.5), int(4 * sigma + 0.5) + 1)
    weights = np.exp(-at * at / (2.0 * sigma * sigma))
    return tuple((weights / weights.sum()).tolist())


# --- pointwise ------------------------------------------------------------------------------------------------------


def chain_of_eight(x):
    y = abs(x * 1.25 - 0.5)
    return np.minimum(np.sqrt(y) * 2 + x, 1.5) * 0.5


# --- one stencil ----------------------------------------------------------------------------------------------------


@gp.operator
def convolution(image, kernel):
    return sum(
        w * _readTensor(image, _row + r - 1, _column + c - 1) for r, row in enumerate(kernel) for c, w in enumerate(row)
    )


def convolve3x3(image):
    return convolution(image, KERNEL)


def sorted3(a, b, c):
    low, high = _min(b, c), _max(b, c)
    return _min(a, low), _max(low, _min(a, high)), _max(a, high)


@gp.operator
def median3x3(image):
    """The median of the largest minimum, the middle of the middles and the least maximum of three sorted columns."""
    columns = [sorted3(*(_readTensor(image, _row + r, _column + c) for r in (-1, 0, 1))) for c in (-1, 0, 1)]
    lows, middles, highs = zip(*columns, strict=True)
    return sorted3(_max(_max(*lows[:2]), lows[2]), sorted3(*middles)[1], _min(_min(*highs[:2]), highs[2]))[1]


@gp.operator
def bilateral5x5(image):
    own = _readTensor(image)
    total, weights = 0.0, 0.0
    for r, row in enumerate(SPATIAL):
        for c, near in enumerate(row):
            value = _readTensor(image, _row + r - 2, _column + c - 2)
            difference = value - own
            weight = _exp(-(difference * difference) * RANGE) * near
            total += weight * value
            weights += weight
    return total / weights


# --- two and more ---------------------------------------------------------------------------------------------------


@gp.operator
def down_columns(image, weights, border):
    """Along each column."""
    first = _row - len(weights) // 2
    return sum(w * _readTensor(image, first + k, _column, border=border) for k, w in enumerate(weights))


@gp.operator
def along_rows(image, weights, border):
    """Along each row."""
    first = _column - len(weights) // 2
    return sum(w * _readTensor(image, _row, first + k, border=border) for k, w in enumerate(weights))


def gaussian(image, sigma, border="reflect"):
    weights = gaussian_weights(sigma)
    return along_rows(down_columns(image, weights, border), weights, border)


def gaussian2(image):
    return gaussian(image, 2.0)


def gaussian5(image):
    return gaussian(image, 5.0)


@gp.operator
def gradient_x(image):
    def at(row, column):
        return _readTensor(image, _row + row, _column + column)

    return at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1)


@gp.operator
def gradient_y(image):
    def at(row, column):
        return _readTensor(image, _row + row, _column + column)

    return at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1)


def sobel(image):
    gx, gy = gradient_x(image), gradient_y(image)
    return np.sqrt(gx * gx + gy * gy)


@gp.operator
def sum3x3(image):
    return sum(_readTensor(image, _row + r, _column + c) for r in (-1, 0, 1) for c in (-1, 0, 1))


def harris(image):
    gx, gy = gradient_x(image) * (1 / 12), gradient_y(image) * (1 / 12)
    xx, yy, xy = sum3x3(gx * gx), sum3x3(gy * gy), sum3x3(gx * gy)
    trace = xx + yy
    return xx * yy - xy * xy - 0.04 * trace * trace


@gp.operator
def box_columns(image):
    return sum(_readTensor(image, _row + k, _column) for k in range(-7, 8))


@gp.operator
def box_rows(image):
    return sum(_readTensor(image, _row, _column + k) for k in range(-7, 8))


def mean_variance(image):
    """Of the 15×15 points around each one."""
    mean = box_rows(box_columns(image)) * (1 / 225)
    return mean, box_rows(box_columns(image * image)) * (1 / 225) - mean * mean


@gp.operator
def shifted(image, row, column):
    return _readTensor(image, _row + row, _column + column)


def non_local_means(image):
    """Each point's mean of the 7×7 around it, weighted by how much the 3×3 around them are alike."""
    total = weights = 0
    for row, column in SEARCH:
        other = shifted(image, row, column)
        difference = other - image
        weight = np.exp(-NEARNESS * sum3x3(difference * difference))
        total = total + weight * other
        weights = weights + weight
    return total / weights
