"""Numba's entries: each stage a compiled pass, with and without fastmath."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .contestant import Contestant, Maker
from .pipeline import Array, Pipeline
from .stencils import gaussian_weights


def entries(pipeline: Pipeline) -> dict[str, Maker]:
    import numba

    from . import numba_images, numba_stencils

    if pipeline.name not in PASSES:
        return {}

    def maker(fast: bool) -> Maker:
        known: dict[Any, Any] = {}

        def compiled(name: str) -> Any:
            function = getattr(numba_stencils, name, None) or getattr(numba_images, name)
            if function not in known:
                known[function] = numba.njit(parallel=True, fastmath=fast)(function)
            return known[function]

        def make(arrays: tuple[Array, ...]) -> Contestant:
            once, outputs = PASSES[pipeline.name](compiled, *arrays)

            def run(times: int) -> None:
                for _ in range(times):
                    once()

            run(1)
            channels = outputs[0].ndim == 3 and outputs[0].shape[0] == 3
            results = tuple(np.moveaxis(o, 0, -1) for o in outputs) if channels else outputs
            return Contestant(run, lambda: results, tuple(known))

        return make

    return {"Numba": maker(fast=False), "Numba fastmath": maker(fast=True)}


def alone(name: str, dtype: str = "float32") -> Callable[..., Any]:
    """One pass from the array to another one of its shape."""

    def passes(compiled: Any, a: Array) -> Any:
        out = np.empty(a.shape, dtype)
        return (lambda: compiled(name)(a, out)), (out,)

    return passes


def planes(picture: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(picture, -1, 0))


def gaussian(sigma: float) -> Callable[..., Any]:
    def passes(compiled: Any, a: Array) -> Any:
        out, weights = np.empty_like(a), np.float32(gaussian_weights(sigma))
        return (lambda: compiled("gauss")(a, weights, out)), (out,)

    return passes


def unsharp(compiled: Any, picture: Array) -> Any:
    channels, weights = planes(picture), np.float32(gaussian_weights(2.0))
    blurred, out = np.empty_like(channels), np.empty_like(channels)

    def once() -> None:
        for channel, blur, sharp in zip(channels, blurred, out, strict=True):
            compiled("gauss")(channel, weights, blur)
            compiled("sharper")(channel, blur, sharp)

    return once, (out,)


def canny(compiled: Any, a: Array) -> Any:
    weights = np.float32(gaussian_weights(1.0))
    smooth, gx, gy, strength = (np.empty_like(a) for _ in range(4))
    out = np.empty(a.shape, np.uint8)

    def once() -> None:
        compiled("gauss")(a, weights, smooth)
        compiled("gradients")(smooth, gx, gy, strength)
        compiled("thin")(gx, gy, strength, out)

    return once, (out,)


def mean_variance(compiled: Any, a: Array) -> Any:
    mean, variance = np.empty_like(a), np.empty_like(a)
    return (lambda: compiled("mean_variance")(a, mean, variance)), (mean, variance)


def luma_blur_threshold(compiled: Any, picture: Array) -> Any:
    channels = planes(picture)
    sums, out = np.empty(channels.shape[1:], np.uint16), np.empty(channels.shape[1:], np.uint8)

    def once() -> None:
        compiled("luma_rows")(channels, sums)
        compiled("blur_threshold")(sums, out)

    return once, (out,)


def auto_exposure(compiled: Any, image: Array) -> Any:
    levels, counts, out = np.empty(image.shape, np.uint8), np.empty(256, np.int32), np.empty_like(image)

    def once() -> None:
        compiled("levels_of")(image, levels)
        compiled("histogram")(levels, counts)
        compiled("brighten")(image, counts, out)

    return once, (out,)


def camera(compiled: Any, raw: Array) -> Any:
    cleaned, picture = np.empty_like(raw), np.empty((3, *raw.shape), np.float32)
    out = np.empty((3, *raw.shape), np.uint8)

    def once() -> None:
        compiled("without_hot_pixels")(raw, cleaned)
        compiled("colours")(cleaned, picture)
        compiled("sharpen")(picture, out)

    return once, (out,)


def gray_scott(compiled: Any, u: Array, v: Array) -> Any:
    pairs = [(np.empty_like(u), np.empty_like(v)) for _ in range(2)]

    def once() -> None:
        source = (u, v)
        for step in range(10):
            compiled("gray_scott")(*source, *pairs[step % 2])
            source = pairs[step % 2]

    return once, pairs[1]


def heat(times: int) -> Callable[..., Any]:
    def passes(compiled: Any, u: Array) -> Any:
        turns = [np.empty_like(u), np.empty_like(u)]

        def once() -> None:
            source = u
            for step in range(times):
                compiled("heat")(source, turns[step % 2])
                source = turns[step % 2]

        return once, (turns[(times - 1) % 2],)

    return passes


def life_trace(compiled: Any, cells: Array, trace: Array) -> Any:
    out, fading = np.empty_like(cells), np.empty_like(trace)
    return (lambda: compiled("life_trace")(cells, trace, out, fading)), (out, fading)


def to(name: str, shape: Callable[[tuple[int, ...]], tuple[int, ...]], dtype: str = "float32") -> Callable[..., Any]:
    """One pass from the array to one of another shape."""

    def passes(compiled: Any, a: Array) -> Any:
        out = np.empty(shape(a.shape), dtype)
        return (lambda: compiled(name)(a, out)), (out,)

    return passes


def sum_of_chain(compiled: Any, x: Array) -> Any:
    sums, out = np.empty(x.shape[0], np.float32), np.empty((), np.float32)

    def once() -> None:
        compiled("row_sums")(x, sums)
        out[...] = sums.sum()

    return once, (out,)


PASSES: dict[str, Callable[..., Any]] = {
    **{name: alone(name) for name in ("chain8", "conv3x3", "sobel", "median3x3", "harris", "bilateral5x5", "nlm")},
    "gauss2": gaussian(2.0),
    "gauss5": gaussian(5.0),
    "unsharp": unsharp,
    "canny": canny,
    "mean_variance": mean_variance,
    "luma_blur_threshold": luma_blur_threshold,
    "auto_exposure": auto_exposure,
    "camera": camera,
    "life": alone("life", "uint8"),
    "life_trace": life_trace,
    "gray_scott": gray_scott,
    "heat1": heat(1),
    "heat2": heat(2),
    "heat10": heat(10),
    "sum": sum_of_chain,
    "row_sums": to("row_sums", lambda shape: shape[:1]),
    "column_sums": to("column_sums", lambda shape: shape[1:]),
    "transpose": to("transpose", lambda shape: shape[::-1]),
    "histogram": to("histogram", lambda _: (256,), "int32"),
}
