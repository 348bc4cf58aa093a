"""Cameras, simulations and reductions in Halide, with schedules as in its own apps."""

from __future__ import annotations

from typing import Any

import halide as hl

from .halide_stencils import (
    added,
    blurred,
    c,
    chained,
    edge,
    func,
    in_strips,
    reflected,
    rolling,
    slopes,
    wrapped,
    x,
    xi,
    y,
    yi,
)
from .images import BINOMIAL, COLOURS, TANGENT


def unsharp(a: Any) -> Any:
    smooth, down = blurred(reflected(a), 2.0, (x, y, c))
    out = func("unsharp", a[x, y, c] + 1.5 * (a[x, y, c] - smooth[x, y, c]), (x, y, c))
    return out, rolling(down)


def canny(a: Any) -> Any:
    rows, columns = a.height(), a.width()
    smooth, down = blurred(reflected(a), 1.0)
    inside = hl.Func("inside")
    inside[x, y] = smooth[hl.clamp(x, 0, columns - 1), hl.clamp(y, 0, rows - 1)]
    values = slopes(inside)
    gx, gy = func("gx", values[0]), func("gy", values[1])
    strength = func("strength", hl.sqrt(gx[x, y] * gx[x, y] + gy[x, y] * gy[x, y]))
    there = hl.BoundaryConditions.constant_exterior(strength, hl.f32(0), [(0, columns), (0, rows)])
    own, u, v = strength[x, y], gx[x, y], gy[x, y]

    def largest(i: int, j: int) -> Any:
        return (own > there[x + j, y + i]) & (own >= there[x - j, y - i])

    flat, steep = hl.abs(v) < hl.abs(u) * TANGENT, hl.abs(u) < hl.abs(v) * TANGENT
    slanted = hl.select(u * v > 0, largest(1, 1), largest(1, -1))
    kept = hl.select(flat, largest(0, 1), hl.select(steep, largest(1, 0), slanted))
    edges = hl.select(kept, own, 0.0)
    out = func("canny", hl.u8(edges > 0.15) + hl.u8(edges > 0.3))
    return out, rolling(down, smooth, gx, gy, strength)


def luma_blur_threshold(a: Any) -> Any:
    rows, columns = a.height(), a.width()
    inside = hl.Func("inside")
    inside[x, y, c] = hl.u16(a[hl.clamp(x, 0, columns - 1), hl.clamp(y, 0, rows - 1), c])
    grey = func("grey", hl.u8((77 * inside[x, y, 0] + 150 * inside[x, y, 1] + 29 * inside[x, y, 2]) >> 8))
    along = func("along", added(hl.u16(w) * hl.u16(grey[x + k - 2, y]) for k, w in enumerate(BINOMIAL)))
    down = (added(hl.u16(w) * along[x, y + k - 2] for k, w in enumerate(BINOMIAL)) + hl.u16(128)) >> 8
    out = func("luma", hl.select(down > 128, hl.u8(255), hl.u8(0)))
    return out, rolling(grey, along, lanes=32)


def counted(levels: Any, rows: int, columns: int) -> tuple[Any, Any]:
    """Histograms of 64 strips, and their sum."""
    i, s = hl.Var("i"), hl.Var("s")
    height = -(-rows // 64)
    r, t = hl.RDom([(0, columns), (0, height)]), hl.RDom([(0, 64)])
    part, total = hl.Func("part"), hl.Func("counts")
    part[i, s] = 0
    r.where(s * height + r.y < rows)
    part[hl.i32(levels(r.x, s * height + r.y)), s] += 1
    total[i] = 0
    total[i] += part[i, t]

    def schedule() -> None:
        part.compute_root().parallel(s)
        part.update().parallel(s)

    return total, schedule


def histogram(a: Any) -> Any:
    total, schedule = counted(lambda u, v: hl.clamp(hl.i32(a[u, v]), 0, 255), a.height(), a.width())
    return total, lambda out: schedule()


def auto_exposure(a: Any) -> Any:
    rows, columns = a.height(), a.width()
    g, i = edge(a), hl.Var("i")
    mean = added(g[x + j, y + k] for k in (-1, 0, 1) for j in (-1, 0, 1)) * (1 / 9)
    levels = func("levels", hl.u8(mean * 255.0))
    total, schedule_parts = counted(lambda u, v: hl.i32(levels[u, v]), rows, columns)
    r = hl.RDom([(1, 255)])
    above, level = hl.Func("above"), hl.Func("level")
    above[i] = total[i]
    above[255 - r] += above[256 - r]
    level[i] = 1
    level[0] = hl.max(level[0], hl.select(above[r] >= rows * columns // 10, hl.i32(r), 1))
    out = func("exposed", hl.min(a[x, y] * (hl.f32(0.9 * 255) / hl.f32(level[0])), 1.0))

    def schedule(out: Any) -> None:
        in_strips(out)
        schedule_parts()
        for stage in (total, above, level):
            stage.compute_root()
        in_strips(levels.compute_root())

    return out, schedule


def camera(a: Any) -> Any:
    g = reflected(a)
    around = [g[x, y - 2], g[x, y + 2], g[x - 2, y], g[x + 2, y]]
    low = hl.min(hl.min(around[0], around[1]), hl.min(around[2], around[3]))
    high = hl.max(hl.max(around[0], around[1]), hl.max(around[2], around[3]))
    clean = func("clean", hl.f32(hl.min(hl.max(g[x, y], low), high)))
    own, sides, ends = clean[x, y], (clean[x - 1, y] + clean[x + 1, y]) * 0.5, (clean[x, y - 1] + clean[x, y + 1]) * 0.5
    cross = (sides + ends) * 0.5
    corners = added(clean[x + j, y + i] for i in (-1, 1) for j in (-1, 1)) * 0.25
    even_row, even_column = y % 2 == 0, x % 2 == 0
    red = hl.select(even_row, hl.select(even_column, sides, own), hl.select(even_column, corners, ends))
    green = hl.select((x + y) % 2 == 0, own, cross)
    blue = hl.select(even_row, hl.select(even_column, ends, corners), hl.select(even_column, own, sides))
    pixel = [v * (1 / 1023) for v in (red, green, blue)]
    tones = [hl.max(added(w * v for w, v in zip(row, pixel, strict=True)), 0.0) for row in COLOURS]
    toned = hl.Func("toned")
    toned[x, y] = hl.Tuple([v * (6.2 * v + 0.5) / (v * (6.2 * v + 1.7) + 0.06) for v in tones])

    def sharp(k: int) -> Any:
        cross = toned[x, y - 1][k] + toned[x, y + 1][k] + toned[x - 1, y][k] + toned[x + 1, y][k]
        value = toned[x, y][k] + 0.5 * (toned[x, y][k] - 0.25 * cross)
        return hl.u8(hl.clamp(value * 255.0 + 0.5, 0.0, 255.0))

    out = func("camera", hl.mux(c, [sharp(k) for k in range(3)]), (x, y, c))

    def schedule(out: Any) -> None:
        out.bound(c, 0, 3).reorder(c, x, y).unroll(c).split(y, y, yi, 32).parallel(y).vectorize(x, 16)
        for stage in (clean, toned):
            stage.store_at(out, y).compute_at(out, yi).vectorize(x, 16)

    return out, schedule


# --- simulations: one step, which is run as often as it takes -----------------------------------------------------------


def life(a: Any) -> Any:
    g = wrapped(a)
    neighbours = added(g[x + j, y + i] for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    out = func("life", hl.u8((neighbours | g[x, y]) == 3))
    return out, lambda out: in_strips(out, lanes=64)


def gray_scott(a: Any, b: Any) -> Any:
    u, v = wrapped(a), wrapped(b)
    uvv = u[x, y] * v[x, y] * v[x, y]

    def laplacian(f: Any) -> Any:
        return f[x, y - 1] + f[x, y + 1] + f[x - 1, y] + f[x + 1, y] - 4.0 * f[x, y]

    out = hl.Func("gray_scott")
    next_u = u[x, y] + (0.16 * laplacian(u) - uvv + 0.035 * (1.0 - u[x, y]))
    out[x, y] = hl.Tuple([next_u, v[x, y] + (0.08 * laplacian(v) + uvv - 0.095 * v[x, y])])
    return out, in_strips


z = hl.Var("z")


def warmed(name: str, u: Any) -> Any:
    sides = u[x, y, z - 1] + u[x, y, z + 1] + u[x, y - 1, z] + u[x, y + 1, z] + u[x - 1, y, z] + u[x + 1, y, z]
    return func(name, u[x, y, z] + 0.1 * (sides - 6.0 * u[x, y, z]), (x, y, z))


def heat(a: Any) -> Any:
    return warmed("heat", edge(a)), lambda out: out.parallel(z).vectorize(x, 16)


def heat_twice(a: Any) -> Any:
    once = warmed("once", edge(a))
    out = warmed("twice", edge(once, [(0, a.dim(k).extent()) for k in range(3)]))

    def schedule(out: Any) -> None:
        out.split(y, y, yi, 16).reorder(x, yi, z, y).parallel(y).vectorize(x, 16)
        once.store_at(out, y).compute_at(out, z).vectorize(x, 16)

    return out, schedule


# --- reductions -----------------------------------------------------------------------------------------------------------


def row_sums(a: Any) -> Any:
    lane = hl.Var("lane")
    r, s = hl.RDom([(0, a.width() // 64)]), hl.RDom([(0, 64)])
    lanes, out = hl.Func("lanes"), hl.Func("row_sums")
    lanes[lane, y] = hl.f32(0)
    lanes[lane, y] += chained(a[64 * r + lane, y])
    out[y] = hl.f32(0)
    out[y] += lanes[s, y]

    def schedule(out: Any) -> None:
        out.compute_root().parallel(y, 32)
        out.update().parallel(y, 32)
        lanes.compute_at(out, y).vectorize(lane)
        lanes.update().reorder(lane, r).vectorize(lane)

    return out, schedule


def column_sums(a: Any) -> Any:
    s = hl.Var("s")
    height = a.height() // 32
    r, t = hl.RDom([(0, height)]), hl.RDom([(0, 32)])
    part, out = hl.Func("part"), hl.Func("column_sums")
    part[x, s] = hl.f32(0)
    part[x, s] += chained(a[x, s * height + r])
    out[x] = hl.f32(0)
    out[x] += part[x, t]

    def schedule(out: Any) -> None:
        out.vectorize(x, 16)
        out.update().reorder(x, t).vectorize(x, 16)
        part.compute_root().parallel(s).vectorize(x, 16)
        part.update().split(x, x, xi, 256).reorder(xi, r, x, s).parallel(s).vectorize(xi, 16)

    return out, schedule


def transpose(a: Any) -> Any:
    block, out = func("block", chained(a[x, y])), hl.Func("transpose")
    out[x, y] = block[y, x]

    def schedule(out: Any) -> None:
        out.tile(x, y, xi, yi, 16, 16).vectorize(xi).unroll(yi).parallel(y, 4)
        block.compute_at(out, x).vectorize(x).unroll(y)

    return out, schedule
