"""The pipelines in NumPy alone; operations are in the order of the pipelines where that decides a bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .images import BINOMIAL, COLOURS, GRADING, LIFT, TANGENT
from .pipeline import Array
from .stencils import KERNEL, NEARNESS, RANGE, SEARCH, SPATIAL, gaussian_weights


def window(a: Array, radius: int, mode: str = "edge") -> Callable[..., Array]:
    """The array moved by a number of points along its first axes; `at(1, 0)` is what lies below."""

    def at(*offsets: int) -> Array:
        return padded[tuple(slice(radius + o, radius + o + n) for o, n in zip(offsets, a.shape, strict=False))]

    padded = a
    axes = min(a.ndim, 2) if a.shape[-1] == 3 else a.ndim
    for axis in range(axes):  # one after another, so that fields smaller than the window are right too
        where = np.arange(-radius, a.shape[axis] + radius)
        padded = padded.take(bordered(where, a.shape[axis], mode), axis)
    return at


def bordered(where: Array, n: int, mode: str) -> Array:
    """Positions outside of 0…n-1 as a border rule has them inside."""
    if mode == "reflect" and n > 1:
        return n - 1 - np.abs(where % (2 * n - 2) - (n - 1))
    return where % n if mode == "wrap" else np.clip(where, 0, n - 1)


def along(a: Array, weights: Sequence[float], axis: int, mode: str) -> Array:
    """A sum of moved arrays, in the order of the weights."""
    n, half = a.shape[axis], len(weights) // 2
    taps = (w * a.take(bordered(np.arange(n) + k - half, n, mode), axis) for k, w in enumerate(weights))
    return sum(taps, start=np.zeros_like(a))


# --- stencils -------------------------------------------------------------------------------------------------------


def chain_of_eight(x: Array) -> Array:
    return np.minimum(np.sqrt(np.abs(x * 1.25 - 0.5)) * 2 + x, 1.5) * 0.5


def convolve3x3(a: Array) -> Array:
    at = window(a, 1)
    return sum(KERNEL[r][c] * at(r - 1, c - 1) for r in range(3) for c in range(3))


def median3x3(a: Array) -> Array:
    at = window(a, 1)
    return np.median([at(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1)], axis=0)


def bilateral5x5(a: Array) -> Array:
    at = window(a, 2)
    total = weights = 0
    for r in range(5):
        for c in range(5):
            value = at(r - 2, c - 2)
            weight = np.exp(-((value - a) ** 2) * RANGE) * SPATIAL[r][c]
            total, weights = total + weight * value, weights + weight
    return total / weights


def gaussian(a: Array, sigma: float) -> Array:
    weights = gaussian_weights(sigma)
    return along(along(a, weights, 0, "reflect"), weights, 1, "reflect")


def gradients(a: Array) -> tuple[Array, Array]:
    at = window(a, 1)
    gx = at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1)
    return gx, at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1)


def sobel(a: Array) -> Array:
    return np.hypot(*gradients(a))


def sum3x3(a: Array) -> Array:
    at = window(a, 1)
    return sum(at(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1))


def harris(a: Array) -> Array:
    gx, gy = (g * np.float32(1 / 12) for g in gradients(a))
    xx, yy, xy = sum3x3(gx * gx), sum3x3(gy * gy), sum3x3(gx * gy)
    return xx * yy - xy * xy - 0.04 * (xx + yy) ** 2


def mean_variance(a: Array) -> tuple[Array, Array]:
    ones = [1.0] * 15
    mean, squares = (along(along(x, ones, 0, "clamp"), ones, 1, "clamp") / 225 for x in (a, a * a))
    return mean, squares - mean * mean


def non_local_means(a: Array) -> Array:
    at = window(a, 3)
    total = weights = 0
    for r, c in SEARCH:
        weight = np.exp(-NEARNESS * sum3x3((at(r, c) - a) ** 2))
        total, weights = total + weight * at(r, c), weights + weight
    return total / weights


# --- images -----------------------------------------------------------------------------------------------------------


def unsharp(picture: Array) -> Array:
    return picture + 1.5 * (picture - gaussian(picture, 2.0))


def unsharp_bytes(picture: Array) -> Array:
    return np.uint8(np.clip(unsharp(picture.astype(np.float32)) + np.float32(0.5), 0, 255))


def canny(image: Array) -> Array:
    gx, gy = gradients(gaussian(image, 1.0))
    strength = np.sqrt(gx * gx + gy * gy)
    padded = np.pad(strength, 1)
    rows, columns = strength.shape
    x, y = np.abs(gx), np.abs(gy)
    diagonal = np.where(gx * gy > 0, 1, -1)
    row = np.where(y < x * TANGENT, 0, 1)
    column = np.where(y < x * TANGENT, 1, np.where(x < y * TANGENT, 0, diagonal))
    r, c = np.arange(1, rows + 1)[:, None], np.arange(1, columns + 1)
    kept = (strength > padded[r + row, c + column]) & (strength >= padded[r - row, c - column])
    return np.uint8(kept & (strength > 0.15)) + np.uint8(kept & (strength > 0.3))


def luma_blur_threshold(picture: Array) -> Array:
    grey = (np.int32(picture) @ np.array((77, 150, 29), np.int32)) >> 8
    blurred = along(along(grey, BINOMIAL, 1, "clamp"), BINOMIAL, 0, "clamp")
    return np.uint8(((blurred + 128) >> 8 > 128) * 255)


def graded(picture: Array) -> Array:
    mixed = picture.astype(np.float32) @ np.array(GRADING, np.float32).T
    return np.uint8(np.clip(mixed + np.float32(LIFT + 0.5), 0, 255))


def auto_exposure(image: Array) -> Array:
    levels = (sum3x3(image) * np.float32(1 / 9) * 255).astype(np.uint8)
    above = np.cumsum(np.bincount(levels.ravel(), minlength=256)[::-1])
    level = max(255 - int(np.searchsorted(above, image.size // 10)), 1) if image.size >= 10 else 256
    return np.minimum(image * np.float32(0.9 * 255 / level), 1)


def camera(raw: Array) -> Array:
    at = window(raw, 2, "reflect")
    around = [at(-2, 0), at(2, 0), at(0, -2), at(0, 2)]
    at = window(np.clip(raw, np.min(around, axis=0), np.max(around, axis=0)).astype(np.float32), 1, "reflect")
    own, sides, ends = at(0, 0), (at(0, -1) + at(0, 1)) * 0.5, (at(-1, 0) + at(1, 0)) * 0.5
    corners = (at(-1, -1) + at(-1, 1) + at(1, -1) + at(1, 1)) * 0.25
    r, c = np.indices(raw.shape) % 2
    where = 2 * r + c
    red = np.choose(where, (sides, own, corners, ends))
    green = np.choose(where, (own, (sides + ends) * 0.5, (sides + ends) * 0.5, own))
    blue = np.choose(where, (ends, corners, own, sides))
    pixel = np.stack((red, green, blue), -1) * np.float32(1 / 1023)
    x = np.maximum(pixel @ np.array(COLOURS, np.float32).T, 0)
    x = x * (6.2 * x + 0.5) / (x * (6.2 * x + 1.7) + 0.06)
    at = window(x, 1, "reflect")
    x = x + 0.5 * (x - 0.25 * (at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1)))
    return np.clip(x * 255 + 0.5, 0, 255).astype(np.uint8)


# --- simulations and reductions -------------------------------------------------------------------------------------------


def life(cells: Array) -> Array:
    at = window(cells, 1, "wrap")
    neighbours = sum(at(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1)) - cells
    return np.uint8((neighbours == 3) | ((neighbours == 2) & (cells == 1)))


def life_with_trace(cells: Array, trace: Array) -> tuple[Array, Array]:
    return life(cells), np.maximum(np.float32(0.97) * trace, cells)


def gray_scott(u: Array, v: Array) -> tuple[Array, Array]:
    def laplacian(a: Array) -> Array:
        return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a

    for _ in range(10):
        uvv = u * v * v
        u, v = u + (0.16 * laplacian(u) - uvv + 0.035 * (1 - u)), v + (0.08 * laplacian(v) + uvv - 0.095 * v)
    return u, v


def heat(times: int) -> Callable[[Array], Array]:
    def stepped(u: Array) -> Array:
        for _ in range(times):
            u = u + 0.1 * (sum(moved for axis in range(3) for moved in sides_of(u, axis)) - 6 * u)
        return u

    return stepped


def sides_of(u: Array, axis: int) -> tuple[Array, Array]:
    """The array moved by a point to each side."""
    n = u.shape[axis]
    before, behind = (u.take(bordered(np.arange(n) + k, n, "clamp"), axis) for k in (-1, 1))
    return before, behind


def sums(axis: int | None) -> Callable[[Array], Any]:
    return lambda x: np.float32(np.sum(chain_of_eight(x), axis=axis, dtype=np.float64))


def transpose_of_chain(x: Array) -> Array:
    return chain_of_eight(x).T


def histogram(levels: Array) -> Array:
    return np.bincount(levels.ravel(), minlength=256).astype(np.int32)
