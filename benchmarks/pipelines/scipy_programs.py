"""The pipelines in scipy.ndimage; CuPy has the same names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .stencils import KERNEL, gaussian_weights


def programs(np: Any, nd: Any) -> dict[str, Callable[..., Any]]:
    """The pipelines by their names, with NumPy and scipy.ndimage, or with CuPy and its own."""

    def gaussian(sigma: float, axes: tuple[int, ...] = (0, 1)) -> Callable[[Any], Any]:
        def blurred(a: Any, out: Any = None) -> Any:
            *first, last = axes
            weights = np.asarray(gaussian_weights(sigma), np.float32)
            for axis in first:
                a = nd.correlate1d(a, weights, axis, mode="mirror")
            return nd.correlate1d(a, weights, last, output=out, mode="mirror")

        return blurred

    def sobel(a: Any, out: Any = None) -> Any:
        return np.hypot(nd.sobel(a, 0, mode="nearest"), nd.sobel(a, 1, mode="nearest"), out)

    def harris(a: Any) -> Any:
        gx, gy = (nd.sobel(a, axis, mode="nearest") * np.float32(1 / 12) for axis in (1, 0))
        xx, yy, xy = (nd.uniform_filter(p, 3, mode="nearest") * 9 for p in (gx * gx, gy * gy, gx * gy))
        return xx * yy - xy * xy - 0.04 * (xx + yy) ** 2

    def mean_variance(a: Any) -> tuple[Any, Any]:
        mean = nd.uniform_filter(a, 15, mode="nearest")
        return mean, nd.uniform_filter(a * a, 15, mode="nearest") - mean * mean

    def unsharp(picture: Any, out: Any = None) -> Any:
        blurred = gaussian(2.0)(picture, out)
        blurred *= -1.5
        return np.add(blurred, np.float32(2.5) * picture, out=blurred)

    def life(cells: Any) -> Any:
        around = np.asarray([[1, 1, 1], [1, 0, 1], [1, 1, 1]], np.uint8)
        return ((nd.convolve(cells, around, mode="wrap") | cells) == 3).view(np.uint8)

    def life_trace(cells: Any, trace: Any) -> tuple[Any, Any]:
        return life(cells), np.maximum(np.float32(0.97) * trace, cells)

    return {
        "conv3x3": lambda a, out=None: nd.correlate(a, np.asarray(KERNEL, np.float32), out, mode="nearest"),
        "gauss2": gaussian(2.0),
        "gauss5": gaussian(5.0),
        "sobel": sobel,
        "median3x3": lambda a, out=None: nd.median_filter(a, 3, output=out, mode="nearest"),
        "harris": harris,
        "mean_variance": mean_variance,
        "unsharp": unsharp,
        "life": life,
        "life_trace": life_trace,
    }
