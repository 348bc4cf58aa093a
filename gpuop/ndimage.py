"""Image functions on fields: `gpuop.ndimage` has the names, arguments and defaults of `scipy.ndimage`."""

from typing import NoReturn

from gpuop.base.errors import MissingError, meant
from gpuop.lib.ndimage.distance.transforms import distance_transform_bf, distance_transform_cdt, distance_transform_edt
from gpuop.lib.ndimage.filters.correlation import convolve, convolve1d, correlate, correlate1d
from gpuop.lib.ndimage.filters.derivatives import (
    gaussian_gradient_magnitude,
    gaussian_laplace,
    generic_gradient_magnitude,
    generic_laplace,
    laplace,
    prewitt,
    sobel,
)
from gpuop.lib.ndimage.filters.extrema import maximum_filter, maximum_filter1d, minimum_filter, minimum_filter1d
from gpuop.lib.ndimage.filters.fourier_filters import (
    fourier_ellipsoid,
    fourier_gaussian,
    fourier_shift,
    fourier_uniform,
)
from gpuop.lib.ndimage.filters.generic_filters import generic_filter, generic_filter1d
from gpuop.lib.ndimage.filters.ranks import median_filter, percentile_filter, rank_filter
from gpuop.lib.ndimage.filters.smoothing import gaussian_filter, gaussian_filter1d, uniform_filter, uniform_filter1d
from gpuop.lib.ndimage.filters.vectorized_filter import vectorized_filter
from gpuop.lib.ndimage.interpolation.functions import affine_transform, map_coordinates, rotate, shift, zoom
from gpuop.lib.ndimage.interpolation.geometric_transform import geometric_transform
from gpuop.lib.ndimage.interpolation.spline_filters import spline_filter, spline_filter1d
from gpuop.lib.ndimage.measure.extreme_points import extrema, maximum, maximum_position, minimum, minimum_position
from gpuop.lib.ndimage.measure.labelled_parts import find_objects, histogram, labeled_comprehension, value_indices
from gpuop.lib.ndimage.measure.labels import label
from gpuop.lib.ndimage.measure.statistics import (
    center_of_mass,
    mean,
    median,
    standard_deviation,
    sum,
    sum_labels,
    variance,
)
from gpuop.lib.ndimage.measure.watershed import watershed_ift
from gpuop.lib.ndimage.morphology.binary import (
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
from gpuop.lib.ndimage.morphology.grey import (
    black_tophat,
    grey_closing,
    grey_dilation,
    grey_erosion,
    grey_opening,
    morphological_gradient,
    morphological_laplace,
    white_tophat,
)

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
