"""Image functions on fields: `gpuop.ndimage` has the names, arguments and defaults of `scipy.ndimage`."""

from typing import NoReturn

from gpuop.base import lazy
from gpuop.base.errors import MissingError, meant

FUNCTIONS = {
    "distance.transforms": "distance_transform_bf distance_transform_cdt distance_transform_edt",
    "filters.correlation": "convolve convolve1d correlate correlate1d",
    "filters.derivatives": (
        "gaussian_gradient_magnitude gaussian_laplace generic_gradient_magnitude generic_laplace laplace prewitt sobel"
    ),
    "filters.extrema": "maximum_filter maximum_filter1d minimum_filter minimum_filter1d",
    "filters.fourier_filters": "fourier_ellipsoid fourier_gaussian fourier_shift fourier_uniform",
    "filters.generic_filters": "generic_filter generic_filter1d",
    "filters.ranks": "median_filter percentile_filter rank_filter",
    "filters.smoothing": "gaussian_filter gaussian_filter1d uniform_filter uniform_filter1d",
    "filters.vectorized_filter": "vectorized_filter",
    "interpolation.functions": "affine_transform geometric_transform map_coordinates rotate shift zoom",
    "interpolation.spline_filters": "spline_filter spline_filter1d",
    "measure.extreme_points": "extrema maximum maximum_position minimum minimum_position",
    "measure.labelled_parts": "find_objects histogram labeled_comprehension value_indices",
    "measure.labels": "label",
    "measure.statistics": "center_of_mass mean median standard_deviation sum sum_labels variance",
    "measure.watershed": "watershed_ift",
    "morphology.binary": (
        "binary_closing binary_dilation binary_erosion binary_fill_holes binary_hit_or_miss binary_opening "
        "binary_propagation generate_binary_structure iterate_structure"
    ),
    "morphology.grey": (
        "black_tophat grey_closing grey_dilation grey_erosion grey_opening morphological_gradient "
        "morphological_laplace white_tophat"
    ),
}
_NAMES = lazy.defined("gpuop.lib.ndimage", FUNCTIONS)
globals().update(_NAMES)
__all__ = [*sorted(_NAMES)]


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise MissingError(
        f"gpuop.ndimage has no `{name}`; `scipy.ndimage.{name}`, if there is one, takes `f.numpy()`{meant(name, __all__)}"
    )
