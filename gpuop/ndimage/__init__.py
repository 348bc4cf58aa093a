"""SciPy's functions of images, on fields: `gpuop.ndimage` has the names, arguments and defaults of `scipy.ndimage`."""

from typing import NoReturn

from gpuop.errors import MissingError, meant
from gpuop.ndimage.binary_morphology import (
    binary_closing,
    binary_dilation,
    binary_erosion,
    binary_fill_holes,
    binary_hit_or_miss,
    binary_opening,
    binary_propagation,
    generate_binary_structure,
    iterate_structure,
)
from gpuop.ndimage.correlation import convolve, convolve1d, correlate, correlate1d
from gpuop.ndimage.derivatives import (
    gaussian_gradient_magnitude,
    gaussian_laplace,
    generic_gradient_magnitude,
    generic_laplace,
    laplace,
    prewitt,
    sobel,
)
from gpuop.ndimage.distance_transforms import distance_transform_bf, distance_transform_cdt, distance_transform_edt
from gpuop.ndimage.extrema import maximum_filter, maximum_filter1d, minimum_filter, minimum_filter1d
from gpuop.ndimage.extreme_points import extrema, maximum, maximum_position, minimum, minimum_position
from gpuop.ndimage.fourier_filters import fourier_ellipsoid, fourier_gaussian, fourier_shift, fourier_uniform
from gpuop.ndimage.generic_filters import generic_filter, generic_filter1d
from gpuop.ndimage.grey_morphology import (
    black_tophat,
    grey_closing,
    grey_dilation,
    grey_erosion,
    grey_opening,
    morphological_gradient,
    morphological_laplace,
    white_tophat,
)
from gpuop.ndimage.interpolation import affine_transform, map_coordinates, rotate, shift, zoom
from gpuop.ndimage.labelled_parts import find_objects, histogram, labeled_comprehension, value_indices
from gpuop.ndimage.labels import label
from gpuop.ndimage.mappings import geometric_transform
from gpuop.ndimage.ranks import median_filter, percentile_filter, rank_filter
from gpuop.ndimage.smoothing import gaussian_filter, gaussian_filter1d, uniform_filter, uniform_filter1d
from gpuop.ndimage.splines import spline_filter, spline_filter1d
from gpuop.ndimage.statistics import center_of_mass, mean, median, standard_deviation, sum, sum_labels, variance
from gpuop.ndimage.vectorized import vectorized_filter
from gpuop.ndimage.watersheds import watershed_ift

__all__ = [
    "affine_transform",
    "binary_closing",
    "binary_dilation",
    "binary_erosion",
    "binary_fill_holes",
    "binary_hit_or_miss",
    "binary_opening",
    "binary_propagation",
    "black_tophat",
    "center_of_mass",
    "convolve",
    "convolve1d",
    "correlate",
    "correlate1d",
    "distance_transform_bf",
    "distance_transform_cdt",
    "distance_transform_edt",
    "extrema",
    "find_objects",
    "fourier_ellipsoid",
    "fourier_gaussian",
    "fourier_shift",
    "fourier_uniform",
    "gaussian_filter",
    "gaussian_filter1d",
    "gaussian_gradient_magnitude",
    "gaussian_laplace",
    "generate_binary_structure",
    "generic_filter",
    "generic_filter1d",
    "generic_gradient_magnitude",
    "generic_laplace",
    "geometric_transform",
    "grey_closing",
    "grey_dilation",
    "grey_erosion",
    "grey_opening",
    "histogram",
    "iterate_structure",
    "label",
    "labeled_comprehension",
    "laplace",
    "map_coordinates",
    "maximum",
    "maximum_filter",
    "maximum_filter1d",
    "maximum_position",
    "mean",
    "median",
    "median_filter",
    "minimum",
    "minimum_filter",
    "minimum_filter1d",
    "minimum_position",
    "morphological_gradient",
    "morphological_laplace",
    "percentile_filter",
    "prewitt",
    "rank_filter",
    "rotate",
    "shift",
    "sobel",
    "spline_filter",
    "spline_filter1d",
    "standard_deviation",
    "sum",
    "sum_labels",
    "uniform_filter",
    "uniform_filter1d",
    "value_indices",
    "variance",
    "vectorized_filter",
    "watershed_ift",
    "white_tophat",
    "zoom",
]


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise MissingError(
        f"gpuop.ndimage has no `{name}`; `scipy.ndimage.{name}`, if there is one, takes `f.numpy()`{meant(name, __all__)}"
    )
