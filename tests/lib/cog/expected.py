"""Values by NumPy and SciPy of the lines of docs/how-to/port-from-cog.md: functions of the arrays that stand for their fields."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.fft
import scipy.ndimage
import scipy.signal

GRIDS = {1: (9,), 2: (5, 7), 3: (3, 4, 5)}
TENSORS = {"scalars": (), "vectors": (3,), "matrices": (2, 2), "complex": (), "complex vectors": (3,), "colours": (3,)}
MODES = {"clamp": "nearest", "zero": "constant", "wrap": "wrap"}


def arrays(rank: int, kind: str) -> SimpleNamespace:
    """The values of the page's names: `f` and `g` are of the kind, the others follow from the rank."""
    rng, grid, window = np.random.default_rng(rank), GRIDS[rank], (3,) * rank

    def random(*shape: int) -> Any:
        return rng.random(shape, np.float32) * 0.9 + np.float32(0.05)

    a = SimpleNamespace(n=rank, f=random(*grid, *TENSORS[kind]), g=random(*grid, *TENSORS[kind]))
    if kind.startswith("complex"):
        a.f, a.g = a.f + 1j * a.g, a.g - 2j * a.f
    if kind == "colours":
        a.f = (a.f * 255).astype(np.uint8)
    if kind == "matrices":
        a.f = a.f * np.float32(0.4) + np.eye(2, dtype="float32") / 2  # which have inverses
    a.s, a.w, a.v, a.pairs, a.flow = (
        random(*grid),
        random(*window),
        random(*grid, 6),
        random(*grid, 2),
        random(*grid, rank) * 3 - 1,
    )
    a.row, a.one, a.planes, a.frame, a.bank = (
        random(3),
        random(2, 2),
        random(*window, 3),
        random(*window, 12),
        random(2, 3, 3, 3),
    )
    a.at, a.which, a.radius, a.corner = np.float32(1.7), np.int32(1), np.float32(2.5), random(rank) + 2
    a.which_of_each = np.array([2, 0, 5, 1])
    return a


def given(a: SimpleNamespace) -> dict[str, Any]:
    """Arguments in the lines that are no fields: extents, slices, footprints."""
    grid = GRIDS[a.n]
    return {
        "n": a.n,
        "by": (1, -2, 1)[: a.n],
        "larger": tuple(k + extra for k, extra in zip(grid, (4, 3, 2), strict=False)),
        "ranges": tuple(range(1, 3) for _ in grid),
        "window": (2,) * a.n,
        "numbers": a.f.size,
        "near": np.arange(3**a.n).reshape((3,) * a.n) % 4,
    }


def own(a: SimpleNamespace) -> tuple[int, ...]:
    return tuple(range(a.n))


def tensor(x: Any, a: SimpleNamespace) -> tuple[int, ...]:
    return tuple(range(a.n, x.ndim))


def wide(w: Any, x: Any) -> Any:
    """Weights of a grid for all elements of its tensors."""
    return w.reshape(w.shape + (1,) * (x.ndim - w.ndim))


def by_element(x: Any, a: SimpleNamespace, function: Callable[[Any], Any]) -> Any:
    """The function of each tensor element's grid."""
    flat = x.reshape(*x.shape[: a.n], -1)
    results = [function(flat[..., k]) for k in range(flat.shape[-1])]
    return np.stack(results, axis=-1).reshape(*results[0].shape, *x.shape[a.n :])


def correlated(x: Any, w: Any, border: str) -> Any:
    return scipy.ndimage.correlate(x, wide(w, x), mode=MODES[border])


def convolved(x: Any, w: Any, border: str) -> Any:
    return scipy.ndimage.convolve(x, wide(w, x), mode=MODES[border])


def planes(function: Callable[..., Any], x: Any, w: Any, pairs: Any, border: Any = "zero") -> Any:
    return np.stack([function(x[..., i], w[..., j], border) for i, j in pairs], axis=-1)


def valid(x: Any, w: Any, _: Any = None) -> Any:
    return scipy.signal.convolve(x, w, "valid", "direct")


def blocks(x: Any, factor: int) -> Any:
    return x.reshape(*x.shape[:-1], -1, factor)


def expanded(a: SimpleNamespace) -> Any:
    place = [
        [k if k < n else n - 1 if k < n + (m - n) // 2 else 0 for k in range(m)]
        for n, m in zip(a.f.shape, given(a)["larger"], strict=False)
    ]
    return a.f[np.ix_(*place)]


def shifted(a: SimpleNamespace) -> Any:
    out = np.zeros_like(a.f)
    for at in np.ndindex(*GRIDS[a.n]):
        to = tuple(k + b for k, b in zip(at, given(a)["by"], strict=True))
        if all(0 <= k < n for k, n in zip(to, out.shape, strict=False)):
            out[to] = a.f[at]
    return out


def upsampled(a: SimpleNamespace, factor: int, phase: int) -> Any:
    out = np.zeros((*(n * factor for n in GRIDS[a.n]), *a.f.shape[a.n :]), a.f.dtype)
    out[(slice(phase, None, factor),) * a.n] = a.f
    return out


def sampled(a: SimpleNamespace, place: Any, mode: str) -> Any:
    return by_element(a.f, a, lambda x: scipy.ndimage.map_coordinates(x.astype(float), place, order=1, mode=mode))


def windows(a: SimpleNamespace) -> Any:
    result = np.lib.stride_tricks.sliding_window_view(a.f, (3,) * a.n)
    return np.moveaxis(result.reshape(-1, *(3,) * a.n), 0, -1)


def extreme(a: SimpleNamespace, x: Any) -> Any:
    """The place of the greatest point of the neighbourhood, points outside left out."""
    out = np.zeros((*x.shape, a.n), "float32")
    for at in np.ndindex(*x.shape):
        best = -np.inf
        for step in np.argwhere(given(a)["near"]) - 1:
            to = tuple(np.array(at) + step)
            if all(0 <= k < n for k, n in zip(to, x.shape, strict=True)) and x[to] > best:
                best, out[at] = x[to], step
    return out


def oriented(a: SimpleNamespace) -> Any:
    angle = np.pi - 3 * (a.s - 0.5)
    y, x = np.indices(a.f.shape)
    sides = [
        scipy.ndimage.map_coordinates(
            a.f, [y - side * 1.3 * np.sin(angle), x + side * 1.3 * np.cos(angle)], order=1, mode="nearest"
        )
        for side in (1, -1)
    ]
    return np.where((a.f > sides[0]) & (a.f > sides[1]), a.f, 0)


def bilateral(a: SimpleNamespace) -> Any:
    def smooth(x: Any) -> Any:
        padded, total, weights = np.pad(x, 1, mode="edge"), 0.0, 0.0
        for at in np.ndindex(*(3,) * a.n):
            moved = padded[tuple(slice(k, k + n) for k, n in zip(at, x.shape, strict=True))]
            weight = (given(a)["near"][at] + 1) * np.exp(-(((x - moved) / 0.3) ** 2))
            total, weights = total + weight * moved, weights + weight
        return total / weights

    return by_element(a.f, a, smooth)


def lengths(a: SimpleNamespace, x: Any) -> Any:
    first = x[(slice(None),) * (a.n - 1) + (slice(1),)]
    return np.cumsum(1 + 2 * np.abs(np.diff(x, axis=a.n - 1, prepend=first)), axis=a.n - 1)


def between_edges(x: Any, length: Any, axis: int, radius: float) -> Any:
    lines, along = np.moveaxis(x, axis, 0), np.moveaxis(length, axis, 0)
    near = np.abs(along[:, None] - along[None]) <= radius
    near = near.reshape(near.shape + (1,) * (lines.ndim - along.ndim))
    return np.moveaxis((near * lines[None]).sum(1) / near.sum(1), 0, axis)


def slopes(a: SimpleNamespace, before: int) -> Any:
    """Differences along the axes, of points that have a neighbour along each of them."""
    out = np.zeros((*a.f.shape, a.n), "float32")
    for at in np.ndindex(*a.f.shape):
        others = [tuple(k + (1 - 2 * before) * (axis == c) for c, k in enumerate(at)) for axis in range(a.n)]
        if all(0 <= to[axis] < a.f.shape[axis] for axis, to in enumerate(others)):
            out[at] = [(a.f[to] - a.f[at]) * (1 - 2 * before) for to in others]
    return out


def divergence(a: SimpleNamespace) -> Any:
    """Minus the transposed matrix of forward differences."""
    out, shape = np.zeros(GRIDS[a.n]), GRIDS[a.n]
    for at in np.ndindex(*shape):
        if all(k < n - 1 for k, n in zip(at, shape, strict=True)):
            for axis in range(a.n):
                out[at] += a.flow[at][axis]
                out[tuple(k + (axis == c) for c, k in enumerate(at))] -= a.flow[at][axis]
    return out


def alpha(rgb: Any) -> Any:
    return np.concatenate([np.rint(rgb * 255), np.full((*rgb.shape[:-1], 1), 255)], axis=-1).astype(np.uint8)


def pair(x: Any) -> tuple[Any, Any]:
    return x.real, x.imag


def indices(a: SimpleNamespace, kind: str) -> Any:
    if kind == "subfield":
        return np.stack(np.meshgrid(*(np.arange(2) + c for c in a.corner), indexing="ij"))
    return np.indices(GRIDS[a.n]) - np.moveaxis(a.flow, -1, 0)


def frames(k: int, n: int) -> Any:
    return list(itertools.product(range(k), range(n)))
