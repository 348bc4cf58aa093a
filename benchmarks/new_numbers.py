"""New numbers for functions that have run before: kernels built, and milliseconds of CPU, for a second and for later values.

    python benchmarks/new_numbers.py [--device NAME] [--size 256] [--case NAME] [--values 5]

Each function runs on one image with a first number, a second one, and further ones; SciPy's or NumPy's own time for one of them
stands beside. Times are those of all processors together (`time.process_time`), so they hold what compilers take.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.ndimage

import gpuop as gp
from gpuop import ndimage
from gpuop.base.config import config
from gpuop.runtime.base.compiled import CompilingBackend
from gpuop.runtime.devices import current

rng = np.random.default_rng(0)
Case = Callable[[Any, Any, float], Any]  # of a library, an image, and a number between 1 and 2


def angle(v: float) -> float:
    return 20.0 * v


def weights(v: float, *shape: int) -> np.ndarray:
    return np.random.default_rng(int(1000 * v)).random(shape)


CASES: dict[str, Case] = {
    "gaussian_filter sigma": lambda m, x, v: m.gaussian_filter(x, 2 + 0.05 * v),
    "gaussian_filter cval": lambda m, x, v: m.gaussian_filter(x, 2.0, mode="constant", cval=v),
    "gaussian_filter truncate": lambda m, x, v: m.gaussian_filter(x, 2.0, truncate=3.9 + 0.01 * v),
    "gaussian_filter order": lambda m, x, v: m.gaussian_filter(x, 2 + 0.05 * v, order=1),
    "gaussian_filter1d": lambda m, x, v: m.gaussian_filter1d(x, 2 + 0.05 * v),
    "gaussian_laplace": lambda m, x, v: m.gaussian_laplace(x, 2 + 0.05 * v),
    "gaussian_gradient_magnitude": lambda m, x, v: m.gaussian_gradient_magnitude(x, 2 + 0.05 * v),
    "uniform_filter cval": lambda m, x, v: m.uniform_filter(x, 5, mode="constant", cval=v),
    "correlate 3×3": lambda m, x, v: m.correlate(x, weights(v, 3, 3)),
    "correlate 5×5": lambda m, x, v: m.correlate(x, weights(v, 5, 5)),
    "correlate 15×15": lambda m, x, v: m.correlate(x, weights(v, 15, 15)),
    "correlate outer product": lambda m, x, v: m.correlate(x, np.outer(weights(v, 9), weights(v + 0.1, 9))),
    "convolve 5×5": lambda m, x, v: m.convolve(x, weights(v, 5, 5)),
    "convolve 21×21 (PSF)": lambda m, x, v: m.convolve(x, weights(v, 21, 21)),
    "correlate1d": lambda m, x, v: m.correlate1d(x, weights(v, 7)),
    "convolve1d": lambda m, x, v: m.convolve1d(x, weights(v, 7)),
    "convolve1d long": lambda m, x, v: m.convolve1d(x, weights(v, 151)),
    "percentile_filter": lambda m, x, v: m.percentile_filter(x, 30 * v, size=5),
    "rank_filter": lambda m, x, v: m.rank_filter(x, int(10 * v) - 8, size=5),
    "median_filter cval": lambda m, x, v: m.median_filter(x, 3, mode="constant", cval=v),
    "minimum_filter cval": lambda m, x, v: m.minimum_filter(x, 3, mode="constant", cval=v),
    "maximum_filter cval": lambda m, x, v: m.maximum_filter(x, 5, mode="constant", cval=v),
    "sobel cval": lambda m, x, v: m.sobel(x, mode="constant", cval=v),
    "prewitt cval": lambda m, x, v: m.prewitt(x, mode="constant", cval=v),
    "laplace cval": lambda m, x, v: m.laplace(x, mode="constant", cval=v),
    "grey_erosion cval": lambda m, x, v: m.grey_erosion(x, 3, mode="constant", cval=v),
    "grey_dilation structure": lambda m, x, v: m.grey_dilation(x, structure=weights(v, 3, 3)),
    "grey_opening structure": lambda m, x, v: m.grey_opening(x, structure=weights(v, 3, 3)),
    "grey_closing structure": lambda m, x, v: m.grey_closing(x, structure=weights(v, 3, 3)),
    "morphological_gradient": lambda m, x, v: m.morphological_gradient(x, structure=weights(v, 3, 3)),
    "morphological_laplace": lambda m, x, v: m.morphological_laplace(x, structure=weights(v, 3, 3)),
    "white_tophat": lambda m, x, v: m.white_tophat(x, structure=weights(v, 3, 3)),
    "black_tophat": lambda m, x, v: m.black_tophat(x, structure=weights(v, 3, 3)),
    "rotate angle": lambda m, x, v: m.rotate(x, angle(v), reshape=False, order=1),
    "rotate cubic": lambda m, x, v: m.rotate(x, angle(v), reshape=False),
    "rotate cval": lambda m, x, v: m.rotate(x, 20.0, reshape=False, order=1, cval=v),
    "shift": lambda m, x, v: m.shift(x, 3 * v),
    "shift whole": lambda m, x, v: m.shift(x, int(10 * v)),
    "shift cval": lambda m, x, v: m.shift(x, 3.3, cval=v),
    "zoom equal shape": lambda m, x, v: m.zoom(x, 1.5 + 1e-5 * v),
    "affine_transform matrix": lambda m, x, v: m.affine_transform(x, [[v, 0.1], [0.2, 1.1]]),
    "affine_transform diagonal": lambda m, x, v: m.affine_transform(x, [v, 1.1]),
    "affine_transform offset": lambda m, x, v: m.affine_transform(x, [[1.1, 0.1], [0.2, 1.1]], offset=(v, 2.0)),
    "map_coordinates cval": lambda m, x, v: m.map_coordinates(x, np.mgrid[:200, :200] * 1.5, cval=v),
    "spline_filter": lambda m, x, v: m.spline_filter(x + np.float32(v), output="float32"),
    "fourier_gaussian": lambda m, x, v: m.fourier_gaussian(x, v),
    "fourier_uniform": lambda m, x, v: m.fourier_uniform(x, 5 * v),
    "fourier_ellipsoid": lambda m, x, v: m.fourier_ellipsoid(x, 5 * v),
    "fourier_shift": lambda m, x, v: m.fourier_shift(x, 5 * v),
    "histogram bounds": lambda m, x, v: m.histogram(x, 0.0, v, 16),
    "distance_transform_edt sampling": lambda m, x, v: m.distance_transform_edt(x > 0.5, sampling=(v, 1.0)),
    "distance_transform_bf sampling": lambda m, x, v: m.distance_transform_bf(x[:32, :32] > 0.5, sampling=(v, 1.0)),
    "binary_dilation iterations": lambda m, x, v: m.binary_dilation(x > 0.9, iterations=int(3 * v)),
    "percentile of values": lambda m, x, v: _np(m).percentile(_of(m, x), 30 * v),
    "quantile of values": lambda m, x, v: _np(m).quantile(_of(m, x), 0.3 * v),
}


def _np(library: Any) -> Any:
    return np


def _of(library: Any, image: Any) -> Any:
    return gp.ScalarField(image) if library is ndimage else image


@gp.pipeline
def scaled(image, a):
    return gp.ScalarField(image) * a + 0.5


@gp.pipeline
def thresholded(image, t):
    f = gp.ScalarField(image)
    return np.where(f > t, f, 0.0)


@gp.pipeline
def clipped(image, low, high):
    return np.clip(gp.ScalarField(image), low, high)


@gp.pipeline
def divided(image, a):
    return gp.ScalarField(image) / a


@gp.pipeline
def powered(image, a):
    return gp.ScalarField(image) ** a


@gp.pipeline
def unsharp(image, sigma, amount):
    f = gp.ScalarField(image)
    return f + (f - ndimage.gaussian_filter(f, sigma)) * amount


PIPELINES: dict[str, Case] = {
    "pipeline x * a": lambda m, x, v: scaled(x, v) if m is ndimage else x * v + 0.5,
    "pipeline where(x > t)": lambda m, x, v: thresholded(x, v / 3) if m is ndimage else np.where(x > v / 3, x, 0),
    "pipeline clip": lambda m, x, v: clipped(x, v / 9, v / 3) if m is ndimage else np.clip(x, v / 9, v / 3),
    "pipeline x / a": lambda m, x, v: divided(x, v) if m is ndimage else x / v,
    "pipeline x ** a": lambda m, x, v: powered(x, v) if m is ndimage else x**v,
    "pipeline unsharp": lambda m, x, v: (
        unsharp(x, 2 + 0.05 * v, v) if m is ndimage else x + (x - m.gaussian_filter(x, 2 + 0.05 * v)) * v
    ),
    "Field x * a": lambda m, x, v: (gp.ScalarField(x) * v).numpy() if m is ndimage else x * v,
    "Field gaussian_filter": lambda m, x, v: _done(m.gaussian_filter(_of(m, x), 2 + 0.05 * v)),
    "Field clip": lambda m, x, v: _done(np.clip(_of(m, x), v / 9, v / 3)),
}


def _done(result: Any) -> Any:
    return result.numpy() if isinstance(result, gp.Field) else result


@contextmanager
def counted() -> Iterator[list[int]]:
    """The number of texts that compilers get."""
    backend = type(current())
    assert issubclass(backend, CompilingBackend)
    build, count = backend.build, [0]

    def counting(self: Any, program: Any, binary: bytes | None) -> Any:
        count[0] += 1
        return build(self, program, binary)

    backend.build = counting  # type: ignore[method-assign]
    try:
        yield count
    finally:
        backend.build = build  # type: ignore[method-assign]


def milliseconds(case: Case, library: Any, image: Any, v: float) -> float:
    began = time.process_time()
    _done(case(library, image, v))
    return 1e3 * (time.process_time() - began)


def measured(case: Case, image: Any, values: list[float], builds: list[int]) -> tuple[list[float], list[int], float]:
    """The times and the builds of each value, and the time of SciPy."""
    times, built = [], []
    for v in values:
        before = builds[0]
        times.append(milliseconds(case, ndimage, image, v))
        built.append(builds[0] - before)
    case(scipy.ndimage, image, 1.3)
    return times, built, statistics.median(milliseconds(case, scipy.ndimage, image, 1.3) for _ in range(3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="")
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--case", default="")
    parser.add_argument("--values", type=int, default=5)
    options = parser.parse_args()
    if options.device:
        gp.set_device(options.device)
    image = rng.random((options.size, options.size), np.float32)
    values = [1.0, *np.linspace(1.13, 1.87, options.values - 1).round(4).tolist()]
    medians, compiling = [], 0
    print(f"{current().name}: ms of CPU (builds) of the first, the second and further values")
    with TemporaryDirectory() as folder, counted() as builds:
        config.cache = Path(folder)
        for name, case in (CASES | PIPELINES).items():
            if options.case not in name:
                continue
            times, built, peer = measured(case, image, values, builds)
            later, new = statistics.median(times[2:]), sum(built[2:])
            medians.append(later)
            compiling += new > 0
            shown = " ".join(f"{t:8.1f} ({b})" for t, b in zip(times[:2], built[:2], strict=True))
            print(f"{name:34} {shown} {later:8.1f} ({new})  SciPy {peer:7.1f}", flush=True)
    print(f"median of further values {statistics.median(medians):.1f} ms, {compiling} of {len(medians)} build kernels")


if __name__ == "__main__":
    main()
