"""Derivative filters of scipy.ndimage: Sobel, Prewitt, Laplace, and gradient magnitudes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpuop.base.errors import ArgumentError, described
from gpuop.dsl.fields.field import Field
from gpuop.engine.jit.array_arguments import takes_arrays
from gpuop.ir.dtype_names import wide_float
from gpuop.lib.ndimage.filter_arguments import axes_of, axis_of, each, edge, rank, result_dtype
from gpuop.lib.ndimage.filters.correlation import along
from gpuop.lib.ndimage.filters.neighbours import in_dtype
from gpuop.lib.ndimage.filters.smoothing import gaussian_filter
from gpuop.ops.elementwise.algebra import length_of

Derivative = Callable[..., Field]  # arguments: a field, an axis, a dtype, a mode, `cval`, and extra arguments


@takes_arrays()
def prewitt(input: Any, axis: Any = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0) -> Any:
    """scipy.ndimage.prewitt: differences along an axis, summed along the others.

    Args:
        input, axis, output, cval: as in `correlate1d`.
        mode: as in `correlate1d`, or a sequence of one for each axis.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong modes or axes; a ValueError and a RuntimeError.
    """
    return _differences(input, axis, output, mode, cval, (1.0, 1.0, 1.0))


@takes_arrays()
def sobel(input: Any, axis: Any = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0) -> Any:
    """scipy.ndimage.sobel: as `prewitt`, with twice the weight in the middle."""
    return _differences(input, axis, output, mode, cval, (1.0, 2.0, 1.0))


def _differences(field: Field, axis: Any, output: Any, mode: Any, cval: Any, across: tuple[float, ...]) -> Field:
    main, modes, dtype = axis_of(axis, rank(field)), each(mode, rank(field), "mode"), result_dtype(output, field)
    steps = wide_float(dtype)
    result = along(field, (-1.0, 0.0, 1.0), main, steps, edge(modes[main], cval, field))
    for a in range(rank(field)):
        if a != main:
            result = along(result, across, a, steps, edge(modes[a], cval, field))
    return result.astype(dtype)


@takes_arrays()
def generic_laplace(
    input: Any,
    derivative2: Derivative,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    extra_arguments: tuple[Any, ...] = (),
    extra_keywords: Any = None,
    *,
    axes: Any = None,
) -> Any:
    """scipy.ndimage.generic_laplace: the sum of second derivatives along the axes.

    Args:
        input, output, cval: as in `correlate1d`.
        derivative2: function of a Field, an axis, a dtype, a mode, `cval` and the extra arguments; returns a Field.
        mode: as in `correlate1d`, or a sequence of one for each axis.
        axes: axes of the derivatives; by default all of the grid.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong modes or axes; a ValueError and a RuntimeError.
    """
    dtype = result_dtype(output, input)
    return _summed(input, derivative2, dtype, mode, cval, extra_arguments, extra_keywords, axes, lambda d: d)


def _summed(
    field: Field,
    derivative: Derivative,
    dtype: str,
    mode: Any,
    cval: Any,
    extra: tuple[Any, ...],
    keywords: Any,
    axes: Any,
    of: Callable[[Field], Field],
) -> Field:
    chosen = axes_of(axes, rank(field))
    _refuse_of_scipy(derivative)
    total: Any = None
    for axis, outside in zip(chosen, each(mode, len(chosen), "mode"), strict=True):
        slope = derivative(field, axis, wide_float(dtype), outside, cval, *extra, **dict(keywords or {}))
        if not isinstance(slope, Field):
            raise ArgumentError(
                f"a function of derivatives returns a Field, as `gp.ndimage.sobel`, not {described(slope)}"
            )
        result = of(slope)
        total = result if total is None else total + result
    return in_dtype(field, dtype) if total is None else total.astype(dtype)


def _refuse_of_scipy(derivative: Derivative) -> None:
    module, name = getattr(derivative, "__module__", None) or "", getattr(derivative, "__name__", "")
    if module.partition(".")[0] == "scipy":
        own = name if module.startswith("scipy.ndimage.") else "sobel"
        raise ArgumentError(
            f"the function of derivatives gets Fields and returns a Field, and scipy's {name} computes with NumPy arrays: "
            f"give one of gpuop, as `gp.ndimage.{own}`"
        )


@takes_arrays()
def laplace(input: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None) -> Any:
    """scipy.ndimage.laplace: `generic_laplace` of the second differences 1, -2, 1."""
    return _summed(input, _second, result_dtype(output, input), mode, cval, (), None, axes, lambda d: d)


def _second(field: Field, axis: int, output: Any, mode: Any, cval: Any) -> Field:
    return along(field, (1.0, -2.0, 1.0), axis, output, edge(mode, cval, field))


@takes_arrays()
def gaussian_laplace(
    input: Any,
    sigma: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Any = None,
    truncate: float = 4.0,
    radius: Any = None,
) -> Any:
    """scipy.ndimage.gaussian_laplace: `generic_laplace` of second derivatives of Gaussians.

    Args:
        input, output, mode, cval, axes: as in `generic_laplace`.
        sigma, truncate, radius: as in `gaussian_filter`.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong modes, axes or radii; a ValueError and a RuntimeError.
    """
    derivative = _gaussian(input, sigma, axes, 2, truncate, radius)
    return _summed(input, derivative, result_dtype(output, input), mode, cval, (), None, axes, lambda d: d)


def _gaussian(field: Field, sigma: Any, axes: Any, order: int, truncate: float, radius: Any) -> Derivative:
    """Return the Gaussian derivative of a field along an axis, as a function for `generic_laplace`."""
    chosen = axes_of(axes, rank(field))
    deviations = dict(zip(chosen, each(sigma, len(chosen), "sigma"), strict=True))

    def derivative(source: Field, axis: int, output: Any, mode: Any, cval: Any) -> Field:
        orders = [order if a == axis else 0 for a in range(rank(source))]
        sigmas = [deviations.get(a, 0) for a in range(rank(source))]
        return gaussian_filter(source, sigmas, orders, output, mode, cval, truncate, radius=radius)  # type: ignore[no-any-return]

    return derivative


@takes_arrays()
def generic_gradient_magnitude(
    input: Any,
    derivative: Derivative,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    extra_arguments: tuple[Any, ...] = (),
    extra_keywords: Any = None,
    *,
    axes: Any = None,
) -> Any:
    """scipy.ndimage.generic_gradient_magnitude: the Euclidean norm of the derivatives along the axes.

    Args:
        input, output, mode, cval, axes: as in `generic_laplace`.
        derivative: as `derivative2` of `generic_laplace`.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong modes or axes; a ValueError and a RuntimeError.
    """
    return _length(input, derivative, output, mode, cval, extra_arguments, extra_keywords, axes)


def _length(
    field: Field,
    derivative: Derivative,
    output: Any,
    mode: Any,
    cval: Any,
    extra: tuple[Any, ...],
    keywords: Any,
    axes: Any,
) -> Field:
    dtype = result_dtype(output, field)
    squares = _summed(field, derivative, wide_float(dtype), mode, cval, extra, keywords, axes, lambda d: d * d)
    if not axes_of(axes, rank(field)):
        return squares.astype(dtype)
    exact = squares if squares.type.element.kind == "f" else squares.astype("float64")
    return length_of(exact).astype(dtype)


@takes_arrays()
def gaussian_gradient_magnitude(
    input: Any,
    sigma: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Any = None,
    truncate: float = 4.0,
    radius: Any = None,
) -> Any:
    """scipy.ndimage.gaussian_gradient_magnitude: `generic_gradient_magnitude` of derivatives of Gaussians.

    Args:
        input, output, mode, cval, axes: as in `generic_laplace`.
        sigma, truncate, radius: as in `gaussian_filter`.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong modes, axes or radii; a ValueError and a RuntimeError.
    """
    derivative = _gaussian(input, sigma, axes, 1, truncate, radius)
    return _length(input, derivative, output, mode, cval, (), None, axes)
