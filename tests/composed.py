"""Image pipelines composed of small operators, as users write them: what planning, generated text and compilers must stand.

`PIPELINES` has for each name a function of the rows and columns of its images that gives the wanted fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

import gpuop as gp
from gpuop.dsl import *

BINOMIAL = (1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16)
LEVELS = 5


def image(rows: int, columns: int, dtype: str = "float32", seed: int = 0) -> gp.Field:
    rng = np.random.default_rng(seed)
    return gp.ScalarField((rng.random((rows, columns)) * (1 if dtype == "float32" else 256)).astype(dtype))


def gaussian_weights(sigma: float) -> tuple[float, ...]:
    reach = int(4 * sigma + 0.5)
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    return tuple(map(float, weights / weights.sum()))


# --- stencils ---------------------------------------------------------------------------------------------------------


@gp.operator
def along_rows(f, weights, border="reflect"):
    reach = len(weights) // 2
    return sum(w * _readTensor(f, _row + k - reach, _column, border=border) for k, w in enumerate(weights))


@gp.operator
def along_columns(f, weights, border="reflect"):
    reach = len(weights) // 2
    return sum(w * _readTensor(f, _row, _column + k - reach, border=border) for k, w in enumerate(weights))


@gp.operator
def sobel_x(f):
    def at(r):
        return _readTensor(f, _row + r, _column + 1) - _readTensor(f, _row + r, _column - 1)

    return at(-1) + 2 * at(0) + at(1)


@gp.operator
def sobel_y(f):
    def at(c):
        return _readTensor(f, _row + 1, _column + c) - _readTensor(f, _row - 1, _column + c)

    return at(-1) + 2 * at(0) + at(1)


@gp.operator
def box(f, size):
    reach = size // 2
    return sum(_readTensor(f, _row + r - reach, _column + c - reach) for r in range(size) for c in range(size))


@gp.operator
def shifted(f, rows, columns):
    return _readTensor(f, _row + rows, _column + columns)


@gp.operator
def bilateral(f, reach):
    own, total, weights = _readTensor(f), _var(0.0), _var(0.0)
    for r in range(-reach, reach + 1):
        for c in range(-reach, reach + 1):
            value = _readTensor(f, _row + r, _column + c)
            weight = _exp(-0.1 * (r * r + c * c) - 50 * (value - own) ** 2)
            total += weight * value
            weights += weight
    return total / weights


@gp.operator
def thin(strength, gx, gy):
    """The strength where it is a maximum across the edge, else 0."""
    own, x, y = _readTensor(strength), _readTensor(gx), _readTensor(gy)
    kept = _var(own)
    for upright, dr, dc in ((False, 0, 1), (True, 1, 0)):
        steep = (abs(y) > abs(x)) if upright else (abs(y) <= abs(x))
        before, after = _readTensor(strength, _row - dr, _column - dc), _readTensor(strength, _row + dr, _column + dc)
        with _if(steep & ((after > own) | (before > own))):
            kept @= 0.0
    return kept


@gp.operator
def neighbours(cells):
    offsets = ((r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if r or c)
    return sum(_readTensor(cells, _row + r, _column + c, border="wrap") for r, c in offsets)


@gp.operator
def alive(cells, count):
    n = _readTensor(count)
    return _convert_uchar(_where((n == 3) | ((n == 2) & (_readTensor(cells) == 1)), 1, 0))


@gp.operator
def laplacian(f):
    return (
        _readTensor(f, _row - 1, _column, border="wrap")
        + _readTensor(f, _row + 1, _column, border="wrap")
        + _readTensor(f, _row, _column - 1, border="wrap")
        + _readTensor(f, _row, _column + 1, border="wrap")
        - 4 * _readTensor(f)
    )


def blurred(f, weights=BINOMIAL):
    return along_columns(along_rows(f, weights), weights)


def harris(rows, columns):
    f = image(rows, columns)
    gx, gy = sobel_x(f) / 12, sobel_y(f) / 12
    xx, xy, yy = (box(product, 3) for product in (gx * gx, gx * gy, gy * gy))
    trace = xx + yy
    return [xx * yy - xy * xy - 0.04 * trace * trace]


def canny(rows, columns):
    f = blurred(image(rows, columns), gaussian_weights(1.4))
    gx, gy = sobel_x(f), sobel_y(f)
    edges = thin(np.sqrt(gx * gx + gy * gy), gx, gy)
    return [(edges > 0.1) * 0.5 + (edges > 0.2) * 0.5]


def variance(rows, columns):
    f = image(rows, columns)
    weights = (1 / 15,) * 15
    mean = blurred(f, weights)
    return [mean, blurred(f * f, weights) - mean * mean]


def unsharp(rows, columns):
    f = gp.VectorField(np.random.default_rng(0).random((rows, columns, 3), np.float32))
    return [np.clip(f + 0.7 * (f - blurred(f, gaussian_weights(2))), 0, 1)]


def non_local_means(rows, columns):
    """A search window of 7×7, patches of 3×3: 49 shifted differences, summed over patches, each a weight."""
    f = image(rows, columns)
    total = weights = None
    for r in range(-3, 4):
        for c in range(-3, 4):
            moved = shifted(f, r, c)
            difference = f - moved
            weight = np.exp(box(difference * difference, 3) * -10.0)
            total = weight * moved if total is None else total + weight * moved
            weights = weight if weights is None else weights + weight
    return [total / weights]


def game_of_life(rows, columns):
    cells = gp.ScalarField(np.random.default_rng(0).integers(0, 2, (rows, columns), np.uint8))
    return [alive(cells, neighbours(cells))]


def gray_scott(rows, columns):
    u, v = image(rows, columns), image(rows, columns, seed=1)
    for _ in range(2):
        reaction = u * v * v
        u, v = (
            u + (0.16 * laplacian(u) - reaction + 0.035 * (1 - u)),
            v + (0.08 * laplacian(v) + reaction - 0.1 * v),
        )
    return [u, v]


# --- pyramids ---------------------------------------------------------------------------------------------------------


@gp.operator(outputs=lambda f, like: like)
def down_rows(f, like):
    return sum(w * _readTensor(f, 2 * _row + k - 2, _column) for k, w in enumerate(BINOMIAL))


@gp.operator(outputs=lambda f, like: like)
def down_columns(f, like):
    return sum(w * _readTensor(f, _row, 2 * _column + k - 2) for k, w in enumerate(BINOMIAL))


@gp.operator(outputs=lambda f, like: like)
def up_rows(f, like):
    return 0.25 * _readTensor(f, (_row - 1) / 2, _column) + 0.75 * _readTensor(f, _row / 2, _column)


@gp.operator(outputs=lambda f, like: like)
def up_columns(f, like):
    return 0.25 * _readTensor(f, _row, (_column - 1) / 2) + 0.75 * _readTensor(f, _row, _column / 2)


def down(f):
    rows, columns = f.field_shape
    narrow = gp.FieldType(((rows + 1) // 2, columns))
    return down_columns(down_rows(f, narrow), gp.FieldType(((rows + 1) // 2, (columns + 1) // 2)))


def up(f, like):
    return up_columns(up_rows(f, gp.FieldType((like.field_shape[0], f.field_shape[1]))), like.type)


def pyramid(f: gp.Field) -> list[gp.Field]:
    levels = [f]
    while len(levels) < LEVELS:
        levels.append(down(levels[-1]))
    return levels


def details(levels: Sequence[gp.Field]) -> list[gp.Field]:
    return [fine - up(coarse, fine) for fine, coarse in pairwise(levels)] + [levels[-1]]


def collapsed(levels: Sequence[gp.Field]) -> gp.Field:
    out = levels[-1]
    for level in reversed(levels[:-1]):
        out = level + up(out, level)
    return out


def pyramid_blending(rows, columns):
    a, b, mask = (image(rows, columns, seed=k) for k in range(3))
    first, second, weights = details(pyramid(a)), details(pyramid(b)), pyramid(mask)
    return [collapsed([w * x + (1 - w) * y for w, x, y in zip(weights, first, second, strict=True)])]


def local_laplacian(rows, columns):
    """Details of five remapped copies, chosen by the level of grey that the image has there."""
    f = image(rows, columns)
    grey = pyramid(f)
    tones = [k / (LEVELS - 1) for k in range(LEVELS)]
    remapped = [details(pyramid(f + 0.3 * (f - tone) * np.exp((f - tone) * (f - tone) * -8.0))) for tone in tones]
    out = []
    for level, base in enumerate(grey[:-1]):
        weights = [np.maximum(1 - abs(base - tone) * (LEVELS - 1), 0) for tone in tones]
        chosen = weights[0] * remapped[0][level]
        for weight, copy in zip(weights[1:], remapped[1:], strict=True):
            chosen = chosen + weight * copy[level]
        out.append(chosen)
    return [collapsed([*out, grey[-1]])]


# --- cameras ----------------------------------------------------------------------------------------------------------


@gp.operator
def without_hot_pixels(raw):
    own = _readTensor(raw)
    near = [_readTensor(raw, _row + r, _column + c) for r, c in ((-2, 0), (2, 0), (0, -2), (0, 2))]
    return _clamp(own, 0.0, _max(_max(near[0], near[1]), _max(near[2], near[3])))


@gp.operator
def demosaiced(raw):
    def mean(*offsets):
        return sum(_readTensor(raw, _row + r, _column + c) for r, c in offsets) / len(offsets)

    own, cross = _readTensor(raw), mean((-1, 0), (1, 0), (0, -1), (0, 1))
    corners, beside, above = mean((-1, -1), (-1, 1), (1, -1), (1, 1)), mean((0, -1), (0, 1)), mean((-1, 0), (1, 0))
    even_row, even_column = (_row & 1) == 0, (_column & 1) == 0
    red = _where(even_row, _where(even_column, beside, own), _where(even_column, corners, above))
    green = _where(even_row == even_column, own, cross)
    blue = _where(even_row, _where(even_column, above, corners), _where(even_column, own, beside))
    return _float3(red, green, blue)


@gp.operator
def coloured(f):
    r, g, b = _readTensor(f)
    return _float3(1.6 * r - 0.4 * g - 0.2 * b, 1.5 * g - 0.3 * r - 0.2 * b, 1.7 * b - 0.1 * r - 0.6 * g)


@gp.operator
def to_bytes(f):
    return _convert_uchar3(_clamp(_readTensor(f) * 255.0, 0.0, 255.0))


def camera(rows, columns):
    f = coloured(demosaiced(without_hot_pixels(image(rows, columns))))
    curved = np.maximum(f, 0) ** (1 / 2.2)
    return [to_bytes(curved + 0.5 * (curved - blurred(curved)))]


@gp.operator
def luma(f):
    r, g, b = _readTensor(f)
    return _convert_uchar((77 * _convert_int(r) + 150 * _convert_int(g) + 29 * _convert_int(b)) >> 8)


@gp.operator
def binomial_rows(f):
    return sum(w * _convert_int(_readTensor(f, _row + k - 2, _column)) for k, w in enumerate((1, 4, 6, 4, 1)))


@gp.operator
def binomial_columns(f):
    return _convert_uchar(sum(w * _readTensor(f, _row, _column + k - 2) for k, w in enumerate((1, 4, 6, 4, 1))) >> 8)


def luma_threshold(rows, columns):
    picture = gp.VectorField(np.random.default_rng(0).integers(0, 256, (rows, columns, 3), np.uint8))
    return [binomial_columns(binomial_rows(luma(picture))) > 128]


@gp.operator(outputs=gp.FieldType(256, dtype="int32"))
def histogram(levels):
    _globalThreads(levels)
    _atomic_inc(_pointerTo(_out0, _readTensor(levels)))


@gp.operator
def to_levels(f):
    return _convert_uchar(_clamp(_readTensor(f) * 255.0, 0.0, 255.0))


def auto_exposure(rows, columns):
    smooth = blurred(image(rows, columns))
    counts = histogram(to_levels(smooth))
    bright = (counts * gp.ScalarField(np.arange(256, dtype=np.float32))).sum() / (255.0 * rows * columns)
    return [np.clip(smooth * (0.5 / bright), 0, 1)]


# --- pointwise, and reductions ----------------------------------------------------------------------------------------


def chain(rows, columns):
    f = image(rows, columns)
    return [np.clip(np.sqrt(abs(f * 2 - 1) + 0.5), 0.1, 0.9) ** 2 + f]


def total_of_chain(rows, columns):
    return [chain(rows, columns)[0].sum()]


def rows_and_columns_of_chain(rows, columns):
    (f,) = chain(rows, columns)
    return [f.sum(axis=1), f.sum(axis=0)]


def statistics(rows, columns):
    f = image(rows, columns)
    return [f.sum(), f.max(), f.mean(), f.argmin()]


def total_of_bytes(rows, columns):
    return [image(rows, columns, "uint8").sum()]


def normalised(rows, columns):
    f = image(rows, columns)
    return [(f - f.min()) / (f.max() - f.min())]


def total_of_stencil(rows, columns):
    return [box(image(rows, columns), 5).sum()]


def columns_of_stencil(rows, columns):
    return [box(image(rows, columns), 5).sum(axis=0)]


Pipeline = Callable[[int, int], list[gp.Field]]
PIPELINES: dict[str, Pipeline] = {
    "chain": chain,
    "gaussian": lambda rows, columns: [blurred(image(rows, columns), gaussian_weights(5))],
    "bilateral": lambda rows, columns: [bilateral(image(rows, columns), 2)],
    "transpose": lambda rows, columns: [image(rows, columns)[:, ::2]],
    **{
        function.__name__: function
        for function in (
            harris,
            canny,
            variance,
            unsharp,
            non_local_means,
            game_of_life,
            gray_scott,
            pyramid_blending,
            local_laplacian,
            camera,
            luma_threshold,
            auto_exposure,
            total_of_chain,
            rows_and_columns_of_chain,
            statistics,
            total_of_bytes,
            normalised,
            total_of_stencil,
            columns_of_stencil,
        )
    },
}
