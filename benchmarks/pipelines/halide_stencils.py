"""Stencils in Halide: what is computed, and which stages the rows of a strip keep, as in Halide's own apps."""

from __future__ import annotations

from typing import Any

import halide as hl

from .stencils import KERNEL, NEARNESS, RANGE, SPATIAL, gaussian_weights

x, y, c, xi, yi = (hl.Var(name) for name in ("x", "y", "c", "xi", "yi"))
edge, reflected, wrapped = (
    hl.BoundaryConditions.repeat_edge,
    hl.BoundaryConditions.mirror_interior,
    hl.BoundaryConditions.repeat_image,
)
NINE = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]  # rows, columns


def func(name: str, value: Any, args: Any = (x, y)) -> Any:
    f = hl.Func(name)
    f[args] = value
    return f


def added(terms: Any) -> Any:
    first, *others = terms
    for term in others:
        first = first + term
    return first


def in_strips(out: Any, rows: int = 32, lanes: int = 16) -> None:
    """Strips of rows in parallel."""
    out.split(y, y, yi, rows).parallel(y).vectorize(x, lanes)


def rolling(*stages: Any, lanes: int = 16) -> Any:
    """The schedule that keeps the rows of each stage while it goes through a strip."""

    def schedule(out: Any) -> None:
        in_strips(out, lanes=lanes)
        for stage in stages:
            stage.store_at(out, y).compute_at(out, yi).vectorize(x, lanes)

    return schedule


def chained(v: Any) -> Any:
    return hl.min(hl.sqrt(hl.abs(v * 1.25 - 0.5)) * 2.0 + v, 1.5) * 0.5


def chain8(a: Any) -> Any:
    return func("chain", chained(a[x, y])), in_strips


def conv3x3(a: Any) -> Any:
    g = edge(a)
    return func("conv", added(KERNEL[i + 1][j + 1] * g[x + j, y + i] for i, j in NINE)), in_strips


def slopes(g: Any, scale: float = 1.0) -> tuple[Any, Any]:
    gx = g[x + 1, y - 1] + 2.0 * g[x + 1, y] + g[x + 1, y + 1] - g[x - 1, y - 1] - 2.0 * g[x - 1, y] - g[x - 1, y + 1]
    gy = g[x - 1, y + 1] + 2.0 * g[x, y + 1] + g[x + 1, y + 1] - g[x - 1, y - 1] - 2.0 * g[x, y - 1] - g[x + 1, y - 1]
    return (gx, gy) if scale == 1 else (gx * scale, gy * scale)


def sobel(a: Any) -> Any:
    gx, gy = slopes(edge(a))
    return func("sobel", hl.sqrt(gx * gx + gy * gy)), in_strips


def median3x3(a: Any) -> Any:
    g = edge(a)
    column = [g[x, y + i] for i in (-1, 0, 1)]
    low = func("low", hl.min(hl.min(column[0], column[1]), column[2]))
    high = func("high", hl.max(hl.max(column[0], column[1]), column[2]))
    middle = func("middle", of_three(*column))
    lows = hl.max(hl.max(low[x - 1, y], low[x, y]), low[x + 1, y])
    highs = hl.min(hl.min(high[x - 1, y], high[x, y]), high[x + 1, y])
    out = func("median", of_three(lows, of_three(*(middle[x + j, y] for j in (-1, 0, 1))), highs))
    return out, rolling(low, middle, high)


def of_three(a: Any, b: Any, d: Any) -> Any:
    return hl.max(hl.min(a, b), hl.min(hl.max(a, b), d))


def blurred(g: Any, sigma: float, args: Any = (x, y)) -> tuple[Any, Any]:
    """Down the columns, then along the rows."""
    weights, rest = gaussian_weights(sigma), args[2:]
    radius = len(weights) // 2
    down = func("down", added(w * g[(x, y + k - radius, *rest)] for k, w in enumerate(weights)), args)
    return func("along", added(w * down[(x + k - radius, y, *rest)] for k, w in enumerate(weights)), args), down


def gaussian(sigma: float) -> Any:
    def made(a: Any) -> Any:
        out, down = blurred(reflected(a), sigma)
        return out, rolling(down)

    return made


def harris(a: Any) -> Any:
    values = slopes(edge(a), 1 / 12)
    gx, gy = func("gx", values[0]), func("gy", values[1])

    def box(f: Any, g: Any) -> Any:
        return added(f[x + j, y + i] * g[x + j, y + i] for i, j in NINE)

    xx, yy, xy = box(gx, gx), box(gy, gy), box(gx, gy)
    out = func("harris", xx * yy - xy * xy - 0.04 * (xx + yy) * (xx + yy))

    def schedule(out: Any) -> None:
        rolling(gx, gy)(out)
        gx.compute_with(gy, x)

    return out, schedule


def bilateral5x5(a: Any) -> Any:
    g = edge(a)
    total = weights = None
    for i in range(5):
        for j in range(5):
            value = g[x + j - 2, y + i - 2]
            weight = hl.exp(-(value - g[x, y]) * (value - g[x, y]) * RANGE) * SPATIAL[i][j]
            total = weight * value if total is None else total + weight * value
            weights = weight if weights is None else weights + weight
    return func("bilateral", total / weights), in_strips


def nlm(a: Any) -> Any:
    """Sums of squared differences for all offsets, along rows and then columns, a strip at a time."""
    g = edge(a)
    i, j, r = hl.Var("i"), hl.Var("j"), hl.RDom([(-3, 7), (-3, 7)])
    rows, columns = a.height(), a.width()
    moved = g[hl.clamp(x, 0, columns - 1) + j, hl.clamp(y, 0, rows - 1) + i]
    difference = moved - g[x, y]
    squares = func("squares", difference * difference, (x, y, j, i))
    along = func("along", added(squares[x + k, y, j, i] for k in (-1, 0, 1)), (x, y, j, i))
    weight = func("weight", hl.exp(-NEARNESS * added(along[x, y + k, j, i] for k in (-1, 0, 1))), (x, y, j, i))
    sums = hl.Func("sums")
    sums[x, y] = hl.Tuple([hl.f32(0), hl.f32(0)])
    w = weight[x, y, r.x, r.y]
    sums[x, y] = hl.Tuple([sums[x, y][0] + w * g[x + r.x, y + r.y], sums[x, y][1] + w])
    out = func("nlm", sums[x, y][0] / sums[x, y][1])

    def schedule(out: Any) -> None:
        out.tile(x, y, xi, yi, 128, 16).parallel(y).vectorize(xi, 16)
        sums.compute_at(out, x).vectorize(x, 16)
        sums.update().reorder(x, y, r.x, r.y).vectorize(x, 16)
        along.compute_at(sums, r.x).vectorize(x, 16)

    return out, schedule


def mean_variance(a: Any) -> Any:
    g = edge(a)
    sums = [added(f(k) for k in range(-7, 8)) for f in (lambda k: g[x, y + k], lambda k: g[x, y + k] * g[x, y + k])]
    down = hl.Func("down")
    down[x, y] = hl.Tuple(sums)
    mean = func("mean", added(down[x + k, y][0] for k in range(-7, 8)) * (1 / 225))
    out = hl.Func("mean_variance")
    variance = added(down[x + k, y][1] for k in range(-7, 8)) * (1 / 225) - mean[x, y] * mean[x, y]
    out[x, y] = hl.Tuple([mean[x, y], variance])
    return out, rolling(down)
