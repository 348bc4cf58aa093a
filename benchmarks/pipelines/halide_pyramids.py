"""Pyramids and grids in Halide: every level and stage is computed as a whole, rows in parallel, as in its own apps."""

from __future__ import annotations

from typing import Any

import halide as hl

from .halide_stencils import added, c, edge, func, x, y
from .pyramids import ALPHA, BINS, BLUR, CELL, INTENSITIES, LEVELS, SIGMA

Size = tuple[int, int]  # columns and rows


class Levels:
    """Functions with their sizes, and all of them that are to be scheduled."""

    def __init__(self) -> None:
        self.all: list[Any] = []

    def named(self, name: str, value: Any, args: Any) -> Any:
        self.all.append(func(f"{name}{len(self.all)}", value, args))
        return self.all[-1]

    def pyramid(self, f: Any, size: Size, args: Any) -> list[tuple[Any, Size]]:
        levels = [(f, size)]
        rest, weights = args[2:], (1.0, 3.0, 3.0, 1.0)
        while len(levels) < LEVELS:
            fine, (columns, rows) = levels[-1]
            g = inside(fine, (columns, rows), rest)
            below = func(
                f"rows{len(self.all)}",
                added(w * g[(x, 2 * y + k - 1, *rest)] for k, w in enumerate(weights)) * 0.125,
                args,
            )
            value = added(w * below[(2 * x + k - 1, y, *rest)] for k, w in enumerate(weights)) * 0.125
            levels.append((self.named("down", value, args), ((columns + 1) // 2, (rows + 1) // 2)))
        return levels

    def schedule(self, out: Any) -> None:
        for f in self.all:
            f.compute_root().parallel(y, 8).vectorize(x, 16)
        out.parallel(y, 8).vectorize(x, 16)


def inside(f: Any, size: Size, rest: Any = ()) -> Any:
    """The function at its nearest point."""
    return hl.BoundaryConditions.repeat_edge(f, [(0, n) for n in size])


def raised(level: tuple[Any, Size], *rest: Any) -> Any:
    """A level at the points of the next finer one."""
    g = inside(*level, rest)

    def row(r: Any) -> Any:
        far = x // 2 - 1 + 2 * (x % 2)
        return 0.75 * g[(x // 2, r, *rest)] + 0.25 * g[(far, r, *rest)]

    return 0.75 * row(y // 2) + 0.25 * row(y // 2 - 1 + 2 * (y % 2))


def collapsed(levels: Levels, parts: list[tuple[Any, Size]]) -> Any:
    result, size = parts[-1]
    for n, (part, finer) in enumerate(parts[-2::-1]):
        value = part[x, y] + raised((result, size))
        result = levels.named("sum", value, (x, y)) if n < len(parts) - 2 else func("collapsed", value)
        size = finer
    return result


def pyramid_blend(a: Any, b: Any, mask: Any) -> Any:
    levels, size = Levels(), (a.width(), a.height())
    first, second, weights = (
        levels.pyramid(func(f"input{n}", f[x, y]), size, (x, y)) for n, f in enumerate((a, b, mask))
    )
    parts = []
    for n in range(LEVELS):
        u, v, m = first[n][0][x, y], second[n][0][x, y], weights[n][0][x, y]
        if n < LEVELS - 1:
            u, v = u - raised(first[n + 1]), v - raised(second[n + 1])
        parts.append((func(f"blend{n}", m * u + (1.0 - m) * v), first[n][1]))
    return collapsed(levels, parts), levels.schedule


def local_laplacian(a: Any) -> Any:
    levels, size, k = Levels(), (a.width(), a.height()), hl.Var("k")
    difference = a[x, y] - hl.f32(k) * (1 / (INTENSITIES - 1))
    grown = ALPHA * difference * hl.exp(-(difference * difference) * (0.5 / SIGMA**2))
    remapped = levels.pyramid(func("remapped", a[x, y] + grown, (x, y, k)), size, (x, y, k))
    images = levels.pyramid(func("image", a[x, y]), size, (x, y))
    parts = []
    for n in range(LEVELS - 1):
        level = hl.clamp(images[n][0][x, y], 0.0, 1.0) * (INTENSITIES - 1)
        below = hl.clamp(hl.i32(level), 0, INTENSITIES - 2)
        part = level - hl.f32(below)
        detail = func(f"detail{n}", remapped[n][0][x, y, k] - raised(remapped[n + 1], k), (x, y, k))
        parts.append(
            (func(f"chosen{n}", (1.0 - part) * detail[x, y, below] + part * detail[x, y, below + 1]), images[n][1])
        )
    return collapsed(levels, [*parts, images[-1]]), levels.schedule


def bilateral_grid(a: Any) -> Any:
    """As Halide's own app, whose grid has the same cells."""
    rows, columns = a.height(), a.width()
    wide, high = -(-columns // CELL), -(-rows // CELL)
    g, z, r = edge(a), hl.Var("z"), hl.RDom([(0, CELL), (0, CELL)])
    value = hl.clamp(g[x * CELL + r.x, y * CELL + r.y], 0.0, 1.0)
    sums = hl.Func("sums")
    sums[x, y, z, c] = hl.f32(0)
    layer = hl.clamp(hl.i32(value * (BINS - 3) + 0.5) + 1, 0, BINS - 1)
    sums[x, y, layer, c] += hl.mux(c, [value, hl.f32(1)])
    args = (x, y, z, c)
    bounds = [(0, wide), (0, high), (0, BINS)]
    along_z = inside_grid(sums, bounds)
    layers = func("layers", added(w * along_z[x, y, z + n - 2, c] for n, w in enumerate(BLUR)), args)
    along_y = inside_grid(layers, bounds)
    down = func("down", added(w * along_y[x, y + n - 2, z, c] for n, w in enumerate(BLUR)), args)
    along_x = inside_grid(down, bounds)
    across = func("across", added(w * along_x[x + n - 2, y, z, c] for n, w in enumerate(BLUR)), args)
    out = sliced(a, inside_grid(across, bounds))

    def schedule(out: Any) -> None:
        sums.compute_root().parallel(y).vectorize(x, 16)
        sums.update().reorder(c, r.x, r.y, x, y).unroll(c).parallel(y)
        layers.compute_root().parallel(y).vectorize(x, 16)
        down.compute_root().parallel(y).vectorize(x, 16)
        across.compute_root().parallel(y).vectorize(x, 16)
        out.parallel(y, 8).vectorize(x, 16)

    return out, schedule


def inside_grid(f: Any, bounds: list[tuple[int, int]]) -> Any:
    return hl.BoundaryConditions.repeat_edge(f, bounds)


def sliced(a: Any, grid: Any) -> Any:
    """The grid at each point's place and value, linearly along its three axes."""
    layer = hl.clamp(a[x, y], 0.0, 1.0) * (BINS - 3) + 1.0
    below = hl.clamp(hl.i32(layer), 0, BINS - 2)
    parts = (hl.f32(x % CELL) * (1 / CELL), hl.f32(y % CELL) * (1 / CELL), layer - hl.f32(below))

    def at(k: int, i: int, j: int) -> Any:
        return hl.lerp(
            grid[x // CELL + j, y // CELL + i, below, k], grid[x // CELL + j, y // CELL + i, below + 1, k], parts[2]
        )

    def row(k: int, i: int) -> Any:
        return hl.lerp(at(k, i, 0), at(k, i, 1), parts[0])

    total, weight = (hl.lerp(row(k, 0), row(k, 1), parts[1]) for k in (0, 1))
    return func("sliced", total / weight)
