"""Pyramids and the bilateral grid in NumPy alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from .expected import along, bordered
from .pipeline import Array
from .pyramids import ALPHA, BINS, BLUR, CELL, INTENSITIES, LEVELS, SIGMA


def down(a: Array) -> Array:
    for axis in (0, 1):
        n = a.shape[axis]
        first = 2 * np.arange((n + 1) // 2)
        taps = zip((1, 3, 3, 1), (-1, 0, 1, 2), strict=True)
        a = sum(w * a.take(bordered(first + k, n, "clamp"), axis) for w, k in taps) * np.float32(0.125)
    return a


def up(a: Array, like: Array) -> Array:
    for axis in (0, 1):
        n, at = a.shape[axis], np.arange(like.shape[axis])
        near, far = at // 2, at // 2 - 1 + 2 * (at % 2)
        a = 0.75 * a.take(bordered(near, n, "clamp"), axis) + 0.25 * a.take(bordered(far, n, "clamp"), axis)
    return a


def pyramid(a: Array) -> list[Array]:
    levels = [a]
    while len(levels) < LEVELS:
        levels.append(down(levels[-1]))
    return levels


def details(levels: Sequence[Array]) -> list[Array]:
    return [a - up(b, a) for a, b in pairwise(levels)] + [levels[-1]]


def collapsed(levels: Sequence[Array]) -> Array:
    result = levels[-1]
    for level in levels[-2::-1]:
        result = level + up(result, level)
    return result


def pyramid_blend(a: Array, b: Array, mask: Array) -> Array:
    parts = zip(details(pyramid(a)), details(pyramid(b)), pyramid(mask), strict=True)
    return collapsed([m * x + (1 - m) * y for x, y, m in parts])


def local_laplacian(image: Array) -> Array:
    difference = image[..., None] - np.arange(INTENSITIES, dtype=np.float32) / np.float32(INTENSITIES - 1)
    grown = image[..., None] + ALPHA * difference * np.exp(-(difference**2) * (0.5 / SIGMA**2))
    levels, chosen = pyramid(image), []
    for detail, coarse in zip(details(pyramid(grown))[:-1], levels[:-1], strict=True):
        level = np.clip(coarse, 0, 1) * (INTENSITIES - 1)
        below = np.minimum(level.astype(int), INTENSITIES - 2)
        low, high = (np.take_along_axis(detail, (below + k)[..., None], -1)[..., 0] for k in (0, 1))
        chosen.append((1 - (level - below)) * low + (level - below) * high)
    return np.float32(collapsed([*chosen, levels[-1]]))


def bilateral_grid(image: Array) -> Array:
    rows, columns = image.shape
    shape = (BINS, -(-rows // CELL), -(-columns // CELL))
    at = [bordered(np.arange(n * CELL), m, "clamp") for n, m in zip(shape[1:], image.shape, strict=True)]
    value = np.clip(image[np.ix_(*at)], 0, 1)
    r, c = np.indices(value.shape) // CELL
    where = np.ravel_multi_index(((value * (BINS - 3) + 0.5).astype(int) + 1, r, c), shape).ravel()
    grid = np.stack([np.bincount(where, w, np.prod(shape)).reshape(shape) for w in (value.ravel(), None)], -1)
    for axis in range(3):
        grid = along(grid, BLUR, axis, "clamp")
    total, weight = np.moveaxis(interpolated(grid, image), -1, 0)
    return np.float32(total / weight)


def interpolated(grid: Array, image: Array) -> Array:
    """The grid at each point's place and value, linearly along its three axes."""
    r, c = np.indices(image.shape)
    places = (np.clip(image, 0, 1) * (BINS - 3) + 1, r / CELL, c / CELL)
    result = np.zeros((*image.shape, 2))
    for corner in np.ndindex(2, 2, 2):
        index, weight = [], np.ones(image.shape)
        for place, k, n in zip(places, corner, grid.shape, strict=False):
            below = np.floor(place).astype(int)
            index.append(np.minimum(below + k, n - 1))
            weight = weight * (place - below if k else 1 - (place - below))
        result += weight[..., None] * grid[tuple(index)]
    return result
