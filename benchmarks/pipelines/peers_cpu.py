"""The pipelines in OpenCV, SciPy and NumPy on a CPU."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from .contestant import Contestant, Maker
from .images import BINOMIAL, GRADING, LIFT
from .pipeline import Array, Pipeline, as_tuple
from .stencils import KERNEL, gaussian_weights


def entry(function: Callable[..., Any]) -> Maker:
    """Of a function of arrays; one with an argument `out` gets the result of the first run to write into."""
    writes = "out" in inspect.signature(function).parameters

    def make(arrays: tuple[Array, ...]) -> Contestant:
        last: list[tuple[Array, ...]] = [as_tuple(function(*arrays))]
        into = {"out": last[0][0]} if writes else {}

        def run(times: int) -> None:
            for _ in range(times):
                last[0] = as_tuple(function(*arrays, **into))

        run(1)
        return Contestant(run, lambda: tuple(map(np.asarray, last[0])), (function,), allocates=not writes)

    return make


def numpy_entries(pipeline: Pipeline) -> dict[str, Maker]:
    return {"NumPy": entry(pipeline.expected)}


def scipy_entries(pipeline: Pipeline) -> dict[str, Maker]:
    from scipy import ndimage as nd

    from .scipy_programs import programs

    found = programs(np, nd) | {"histogram": lambda levels: nd.histogram(levels, 0, 256, 256).astype(np.int32)}
    return {"SciPy": entry(found[pipeline.program])} if pipeline.program in found else {}


def opencv_entries(pipeline: Pipeline) -> dict[str, Maker]:
    import cv2

    replicate, reflect = cv2.BORDER_REPLICATE, cv2.BORDER_REFLECT_101

    def gaussian(sigma: float) -> Callable[..., Array]:
        weights = np.float32(gaussian_weights(sigma))
        return lambda a, out=None: cv2.sepFilter2D(a, -1, weights, weights, dst=out, borderType=reflect)

    def gradients(a: Array) -> tuple[Array, Array]:
        x = cv2.Sobel(a, cv2.CV_32F, 1, 0, ksize=3, borderType=replicate)
        return x, cv2.Sobel(a, cv2.CV_32F, 0, 1, ksize=3, borderType=replicate)

    def box(a: Array, size: int, mean: bool) -> Array:
        return cv2.boxFilter(a, -1, (size, size), normalize=mean, borderType=replicate)

    def harris(a: Array, out: Any = None) -> Array:
        gx, gy = (cv2.multiply(g, 1 / 12) for g in gradients(a))
        products = (cv2.multiply(p, q) for p, q in ((gx, gx), (gy, gy), (gx, gy)))
        xx, yy, xy = (box(p, 3, mean=False) for p in products)
        trace = cv2.add(xx, yy)
        determinant = cv2.subtract(cv2.multiply(xx, yy), cv2.multiply(xy, xy))
        return cv2.subtract(determinant, cv2.multiply(trace, trace, scale=0.04), dst=out)

    def mean_variance(a: Array) -> tuple[Array, Array]:
        mean = box(a, 15, mean=True)
        return mean, cv2.subtract(box(cv2.multiply(a, a), 15, mean=True), cv2.multiply(mean, mean))

    def luma_blur_threshold(picture: Array, out: Any = None) -> Array:
        red, green, blue = (cv2.split(picture)[k].astype(np.float32) for k in range(3))
        grey = np.floor((77 * red + 150 * green + 29 * blue) * np.float32(1 / 256))
        weights = np.float32(BINOMIAL)
        blurred = cv2.sepFilter2D(grey, -1, weights, weights, borderType=replicate)
        return cv2.convertScaleAbs(cv2.threshold(blurred, 129 * 256 - 128.5, 255, cv2.THRESH_BINARY)[1], dst=out)

    def chain8(x: Array, out: Any = None) -> Array:
        root = cv2.sqrt(cv2.absdiff(cv2.multiply(x, 1.25), 0.5))
        return cv2.multiply(cv2.min(cv2.scaleAdd(root, 2, x), 1.5), 0.5, dst=out)

    def histogram(levels: Array) -> Array:
        return cv2.calcHist([levels], [0], None, [256], [0, 256]).ravel().astype(np.int32)

    found: dict[str, Callable[..., Any]] = {
        "chain8": chain8,
        "conv3x3": lambda a, out=None: cv2.filter2D(a, -1, np.float32(KERNEL), dst=out, borderType=replicate),
        "gauss2": gaussian(2.0),
        "gauss5": gaussian(5.0),
        "sobel": lambda a, out=None: cv2.magnitude(*gradients(a), magnitude=out),
        "median3x3": lambda a, out=None: cv2.medianBlur(a, 3, dst=out),
        "harris": harris,
        "mean_variance": mean_variance,
        "unsharp": lambda p, out=None: cv2.addWeighted(p, 2.5, gaussian(2.0)(p), -1.5, 0, dst=out),
        "unsharp_bytes": lambda p, out=None: cv2.addWeighted(
            p, 2.5, cv2.GaussianBlur(p, (0, 0), 2.0, borderType=reflect), -1.5, 0, dst=out
        ),
        "luma_blur_threshold": luma_blur_threshold,
        "grade": lambda p, out=None: cv2.transform(p, np.float32([[*row, LIFT] for row in GRADING]), dst=out),
        "sum": lambda x: np.float32(cv2.sumElems(chain8(x))[0]),
        "row_sums": lambda x: cv2.reduce(chain8(x), 1, cv2.REDUCE_SUM)[:, 0],
        "column_sums": lambda x: cv2.reduce(chain8(x), 0, cv2.REDUCE_SUM)[0],
        "transpose": lambda x, out=None: cv2.transpose(chain8(x), dst=out),
        "histogram": histogram,
    }
    return {"OpenCV": entry(found[pipeline.program])} if pipeline.program in found else {}
