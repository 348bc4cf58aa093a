"""The pipelines by their names, with what they are tried on."""

from __future__ import annotations

import numpy as np

from . import expected, expected_pyramids, images, pyramids, reductions, simulations, stencils
from .pipeline import VOLUME, Array, Pipeline

COLOURS = {"cpu": (2048, 2048), "gpu": (8192, 8192)}
PHOTO = {"cpu": (2160, 3840), "gpu": (2160, 3840)}  # as files are read: rows, columns, 3
LEVEL = 1.01 / 255  # of bytes, between which roundings differ
SMALL = {"cpu": (1024, 1024), "gpu": (4096, 4096)}
Shape = tuple[int, ...]
Arrays = tuple[Array, ...]


def smooth(shape: Shape, rng: np.random.Generator) -> Array:
    """A picture with large bright and dark areas, some noise, and all values from 0 to 1."""
    rows, columns = (np.linspace(0, 3 * np.pi, n, dtype=np.float32) for n in shape)
    return (np.sin(rows)[:, None] * np.cos(columns) + 1) * 0.45 + 0.1 * rng.random(shape, np.float32)


def picture(shape: Shape, rng: np.random.Generator) -> Arrays:
    return (smooth(shape, rng),)


def colours(shape: Shape, rng: np.random.Generator) -> Arrays:
    return (rng.random((*shape, 3), np.float32),)


def bytes_of(shape: Shape, rng: np.random.Generator) -> Arrays:
    return (np.uint8(255 * smooth(shape, rng)),)


def colours_in_bytes(shape: Shape, rng: np.random.Generator) -> Arrays:
    grey = np.uint8(200 * smooth(shape, rng))
    return (grey[..., None] + np.array((5, 20, 50), np.uint8),)


def raw(shape: Shape, rng: np.random.Generator) -> Arrays:
    """Of a sensor of 10 bits, a thousandth of whose points are hot."""
    values = np.uint16(900 * smooth(shape, rng))
    values[rng.random(shape, np.float32) < 0.001] = 1023
    return (values,)


def cells(shape: Shape, rng: np.random.Generator) -> Arrays:
    return (np.uint8(rng.random(shape, np.float32) < 0.4),)


def cells_and_trace(shape: Shape, rng: np.random.Generator) -> Arrays:
    return (*cells(shape, rng), rng.random(shape, np.float32))


def three_pictures(shape: Shape, rng: np.random.Generator) -> Arrays:
    return smooth(shape, rng), smooth(shape[::-1], rng).T.copy(), rng.random(shape, np.float32)


def two_substances(shape: Shape, rng: np.random.Generator) -> Arrays:
    return 1 - 0.1 * rng.random(shape, np.float32), 0.3 * rng.random(shape, np.float32)


CATALOGUE = {
    p.name: p
    for p in (
        Pipeline("chain8", "chain of eight", stencils.chain_of_eight, expected.chain_of_eight, share=1e-3),
        Pipeline("conv3x3", "3×3 convolution", stencils.convolve3x3, expected.convolve3x3),
        Pipeline("gauss2", "Gaussian σ=2", stencils.gaussian2, lambda a: expected.gaussian(a, 2.0)),
        Pipeline("gauss5", "Gaussian σ=5", stencils.gaussian5, lambda a: expected.gaussian(a, 5.0)),
        Pipeline("sobel", "Sobel magnitude", stencils.sobel, expected.sobel),
        Pipeline("median3x3", "3×3 median", stencils.median3x3, expected.median3x3),
        Pipeline("harris", "Harris", stencils.harris, expected.harris),
        Pipeline("unsharp", "unsharp mask, RGB", images.unsharp, expected.unsharp, colours, COLOURS, 1),
        Pipeline(
            "canny", "Canny without hysteresis, to uint8", images.canny, expected.canny, picture, share=2e-3
        ),
        Pipeline("bilateral5x5", "bilateral 5×5", stencils.bilateral5x5, expected.bilateral5x5),
        Pipeline(
            "nlm", "non-local means 7×7, 3×3", stencils.non_local_means, expected.non_local_means, picture, SMALL,
            error=2e-5,
        ),
        Pipeline(
            "mean_variance", "mean and variance 15×15", stencils.mean_variance, expected.mean_variance, error=1e-5
        ),
        Pipeline(
            "luma_blur_threshold", "uint8 RGB → luma → blur → threshold", images.luma_blur_threshold,
            expected.luma_blur_threshold, colours_in_bytes, tensor_order=1, error=0,
        ),
        Pipeline(
            "photo_unsharp", "unsharp mask of a photo, float32 RGB as it lies", images.photo_unsharp, expected.unsharp,
            colours, PHOTO, tensor_order=1, photo=True,
        ),
        Pipeline(
            "photo_unsharp_bytes", "unsharp mask of a photo, uint8 RGB as it lies", images.photo_unsharp_bytes,
            expected.unsharp_bytes, colours_in_bytes, PHOTO, tensor_order=1, error=2.6 * LEVEL, photo=True,
        ),
        Pipeline(
            "photo_luma_blur_threshold", "luma → blur → threshold of a photo, uint8 RGB as it lies", images.photo_luma,
            expected.luma_blur_threshold, colours_in_bytes, PHOTO, tensor_order=1, error=0, photo=True,
        ),
        Pipeline(
            "photo_grade", "grading of a photo, uint8 RGB as it lies", images.photo_grade, expected.graded,
            colours_in_bytes, PHOTO, tensor_order=1, error=LEVEL, photo=True,
        ),
        Pipeline("auto_exposure", "auto-exposure", images.auto_exposure, expected.auto_exposure, picture),
        Pipeline(
            "camera", "camera: uint16 raw → uint8 RGB", images.camera, expected.camera, raw, error=0, share=2e-3
        ),
        Pipeline(
            "pyramid_blend", "pyramid blending, 5 levels", pyramids.pyramid_blend, expected_pyramids.pyramid_blend,
            three_pictures,
        ),
        Pipeline(
            "local_laplacian", "local Laplacian, 5 levels", pyramids.local_laplacian, expected_pyramids.local_laplacian,
            picture, COLOURS, error=1e-5,
        ),
        Pipeline(
            "bilateral_grid", "bilateral grid", pyramids.bilateral_grid, expected_pyramids.bilateral_grid, picture,
            error=1e-5, share=1e-4,
        ),
        Pipeline("life", "Game of Life, uint8", simulations.life, expected.life, cells, error=0),
        Pipeline(
            "life_trace", "Game of Life with its trace", simulations.life_with_trace, expected.life_with_trace, cells_and_trace
        ),
        Pipeline(
            "gray_scott", "Gray–Scott, 10 steps", simulations.gray_scott, expected.gray_scott, two_substances, COLOURS
        ),
        Pipeline("heat1", "heat 3-D", simulations.heat, expected.heat(1), shapes=VOLUME),
        Pipeline("heat2", "heat 3-D, 2 steps", simulations.heat_twice, expected.heat(2), shapes=VOLUME),
        Pipeline("heat10", "heat 3-D, 10 steps", simulations.heat_ten_times, expected.heat(10), shapes=VOLUME),
        Pipeline("sum", "sum of a chain", reductions.sum_of_chain, expected.sums(None), error=1e-5),
        Pipeline("row_sums", "row sums of a chain", reductions.row_sums, expected.sums(1), error=1e-5),
        Pipeline("column_sums", "column sums of a chain", reductions.column_sums, expected.sums(0), error=1e-5),
        Pipeline("transpose", "transpose of a chain", reductions.transpose_of_chain, expected.transpose_of_chain, share=1e-3),
        Pipeline("histogram", "histogram, 256 bins, uint8", images.histogram, expected.histogram, bytes_of, error=0),
    )
}  # fmt: skip
