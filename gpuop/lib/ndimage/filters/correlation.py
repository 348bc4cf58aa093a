"""Correlation and convolution of scipy.ndimage, over windows and along one axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError, warn
from gpuop.base.lru import BoundedCache
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import VectorField
from gpuop.dsl.fields.from_arrays import Array as Numbers
from gpuop.dsl.operators.operator import library_call
from gpuop.engine.jit.array_arguments import is_of_an_array, takes_arrays
from gpuop.ir.dtype_names import FLOATS
from gpuop.ir.types import FieldType
from gpuop.lib.fft.kernels.axes import fast_length
from gpuop.lib.fft.kernels.passes import read as pair_at
from gpuop.lib.fft.kernels.passes import times
from gpuop.lib.fft.kernels.transform_node import fourier
from gpuop.lib.fft.kernels.vendor_library import host_library
from gpuop.lib.ndimage.filter_arguments import (
    INTEGERS,
    ImageEdge,
    as_complex,
    axis_of,
    check_origin,
    computed_in,
    each,
    edge,
    method_of,
    rank,
    result_dtype,
    spread,
    summed_in,
    window_axes,
)
from gpuop.lib.ndimage.filters.neighbours import (
    Around,
    combined,
    neighbourhood,
    numbers_at,
    read_at,
    steps_along,
    stored,
)
from gpuop.lib.ndimage.filters.weighted_windows import EPSILON, WORTH, added, factors_of, has_table, one_by_one
from gpuop.lib.ndimage.scalar_arguments import numbers_of, whole
from gpuop.ops.elementwise.algebra import astype
from gpuop.ops.layout.gather import Place, Reading, flat, gathered, own_place
from gpuop.ops.target_choice import by_target

METHODS_OF_LINES = ("direct", "fft")
METHODS = ("direct", "separable", "fft")


@takes_arrays()
def correlate1d(
    input: Any,
    weights: Any,
    axis: Any = -1,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
    *,
    method: Any = None,
) -> Any:
    """scipy.ndimage.correlate1d: weighted sums of the values around each point, along one axis.

    Args:
        input: a Field, or an array.
        weights: one number or more; kernels are compiled for them. Complex weights are conjugated, and give complex results.
        axis: axis of the grid.
        output: a dtype, or an array; by default the dtype of `input`.
        mode: reflect, mirror, nearest, wrap or constant, as in SciPy; also grid-mirror, grid-wrap, grid-constant.
        cval: value outside, for mode constant.
        origin: shift of the window towards the axis' end.
        method: "direct", the default, or "fft", as in `correlate`.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong modes, axes, weights, origins or methods; a ValueError and a RuntimeError.
    """
    numbers, number = weights_of(weights), axis_of(axis, rank(input))
    return _along_line("correlate1d", input, numbers, number, output, edge(mode, cval, input), origin, method)


@takes_arrays()
def convolve1d(
    input: Any,
    weights: Any,
    axis: Any = -1,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
    *,
    method: Any = None,
) -> Any:
    """scipy.ndimage.convolve1d: `correlate1d` with reversed weights."""
    turned, number = weights_of(weights)[::-1].conj(), axis_of(axis, rank(input))
    shift = -whole(origin, "origin") - (len(turned) % 2 == 0)
    return _along_line("convolve1d", input, turned, number, output, edge(mode, cval, input), shift, method)


@takes_arrays()
def correlate(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    method: Any = None,
) -> Any:
    """scipy.ndimage.correlate: weighted sums of the values around each point, over as many axes as are filtered.

    Args:
        input, output, mode, cval: as in `correlate1d`.
        weights: an array of numbers; complex ones are conjugated, and give complex results.
        origin: shift of the window towards the end of each axis: an integer, or one for each.
        axes: axes of the weights; by default all.
        method: "direct" adds the values of the window one by one. "separable" filters axis by axis, for weights that are an outer
            product; it is the default for 49 weights or more, for integer results only if the factors are integers. Sums of
            integers are the same then, those of floats differ in the last places. "fft" multiplies spectra, in a time that hardly
            depends on the number of weights. Its errors are relative to the largest sums: 5e-7 of the greatest value times the sum
            of the weights' magnitudes in float32, 1e-15 in float64; if a value is an infinity or NaN, all sums are NaN. Integer
            results are exact, or refused: the field and the weights must be integers and not too large. It is the default for many
            weights of arrays on CPUs, if results are such integers; a warning says where it would take a tenth of the time.

    Returns:
        A lazy Field; for an array, an array of the same library.

    Raises:
        ArgumentError: wrong modes, axes, weights, origins or methods; a ValueError and a RuntimeError.
    """
    return _windowed("correlate", input, weights, output, edge(mode, cval, input), origin, axes, method, turned=False)


@takes_arrays()
def convolve(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    method: Any = None,
) -> Any:
    """scipy.ndimage.convolve: `correlate` with weights reversed along every axis."""
    return _windowed("convolve", input, weights, output, edge(mode, cval, input), origin, axes, method, turned=True)


def weights_of(weights: Any) -> Numbers:
    """Return the weights of an axis."""
    numbers = numbers_of(weights, "weights")
    if numbers.ndim != 1 or not numbers.size:
        raise ArgumentError(
            f"no filter weights given: they are one number or more in a row, not of shape {numbers.shape}"
        )
    return numbers


def by_parts(field: Field, weights: Numbers, output: Any, filtered: Callable[[Field, Numbers, str], Field]) -> Field:
    """Filter with real weights, or with the real and the imaginary parts of complex ones, which are conjugated."""
    if weights.dtype.kind != "c":
        return filtered(field, weights.astype(np.float64), result_dtype(output, field))
    kind = result_dtype(output, field, real=False)
    wide = np.promote_types(as_complex(field.type), kind).name
    both = field if field.dtype == wide else field.astype(wide)
    real, imaginary = (filtered(both, part.astype(np.float64), wide) for part in (weights.real, weights.imag))
    return astype(real - 1j * imaginary, kind)


def _along_line(
    name: str, field: Field, weights: Numbers, axis: int, output: Any, at: ImageEdge, origin: int, method: Any
) -> Field:
    check_origin(origin, len(weights), "weights")
    transformed = method_of(method, METHODS_OF_LINES) == "fft"
    shifts = [len(weights) // 2 + origin if a == axis else 0 for a in range(rank(field))]

    def filtered(part: Field, own: Numbers, dtype: str) -> Field:
        if not transformed:
            return along(part, own, axis, dtype, at, origin, name)
        return _summed(name, part, spread(own, (axis,), rank(field), "weights"), shifts, at, dtype, method)

    return by_parts(field, weights, output, filtered)


def along(
    field: Field,
    weights: Sequence[float] | Numbers,
    axis: int,
    output: Any,
    at: ImageEdge,
    origin: int = 0,
    name: str = "correlate1d",
    computed: str | None = None,
) -> Field:
    """Return the sums along an axis in SciPy's order of additions: pairs of equal weights first.

    Args:
        computed: the dtype of sums, if the values are known to need no other.
    """
    check_origin(origin, len(weights), "weights")
    weights = tuple(float(w) for w in weights)
    dtype, half = result_dtype(output, field), len(weights) // 2

    at_step = steps_along(axis, rank(field), origin)
    computed = computed or summed_in(field, dtype, np.array(weights), at)
    sign = _symmetry(weights)
    weights = tuple(map(int, weights)) if computed in INTEGERS else weights
    table = numbers_at(weights, computed)

    def total(around: Around) -> Any:
        if sign:

            def pair(n: Any) -> Any:
                low, high = around(at_step(n - half)), around(at_step(half - n))
                return (low + high if sign > 0 else low - high) * table(n)

            return combined(half, pair, _add, around(at_step(0)) * weights[half])
        last = len(weights) - 1
        start = around(at_step(last - half)) * weights[last]
        return combined(last, lambda n: around(at_step(n - half)) * table(n), _add, start)

    return neighbourhood(name, field, total, at, computed, dtype, (weights, axis, origin))


def _symmetry(weights: Sequence[float]) -> int:
    """Return 1 for symmetric weights, -1 for antisymmetric ones, else 0."""
    if len(weights) % 2 == 0:
        return 0
    half = len(weights) // 2
    sides = [(weights[half - n], weights[half + n]) for n in range(1, half + 1)]
    if all(abs(a - b) <= EPSILON for a, b in sides):
        return 1
    return -1 if all(abs(a + b) <= EPSILON for a, b in sides) else 0


def _add(total: Any, term: Any) -> Any:
    return total + term


def _windowed(
    name: str, field: Field, weights: Any, output: Any, at: ImageEdge, origin: Any, axes: Any, method: Any, turned: bool
) -> Field:
    method = method_of(method, METHODS)
    numbers, chosen = numbers_of(weights, "weights"), window_axes(axes, rank(field))
    window = spread(numbers, chosen, rank(field), "weights")
    origins = dict(zip(chosen, each(origin, len(chosen), "origin"), strict=True))
    if turned:
        window = np.flip(window).conj()
        origins = {a: -whole(o, "origin") - (window.shape[a] % 2 == 0) for a, o in origins.items()}
    for a, o in origins.items():
        check_origin(o, window.shape[a], "weights")
    if not window.size:
        return field
    shifts = [n // 2 + origins.get(a, 0) for a, n in enumerate(window.shape)]

    def filtered(part: Field, own: Numbers, dtype: str) -> Field:
        return _summed(name, part, own, shifts, at, dtype, method)

    return by_parts(field, window, output, filtered)


def _summed(
    name: str, field: Field, window: Numbers, shifts: Sequence[int], at: ImageEdge, dtype: str, method: Any
) -> Field:
    """Return the sums of a window with real weights."""
    args = name, field, window, shifts, at, dtype
    if method == "fft" and has_transform(field, window):
        check_exact(field, window, at, dtype)
        return by_fft(*args, "`method='fft'` asks for it")
    whole = dtype not in FLOATS
    separates = method == "separable" or (method is None and window.size >= WORTH)
    parts = factors_of(window, whole and method is None) if separates else None
    if parts is not None:
        return one_by_one(field, parts, shifts, at, dtype, along)
    if method == "separable" and window.any() and sum(n > 1 for n in window.shape) > 1:
        raise ArgumentError("`method='separable'` takes weights that are a product of one row of weights for each axis")
    return by_size(*args) if method is None and has_transform(field, window) else added(*args)


# --- correlation by Fourier transforms --------------------------------------------------------------------------------
# Products of spectra, in a time that hardly depends on the number of weights.
# A field is extended by its border, so that sums do not wrap around to its other end. The transform of the weights is computed in
# double precision on the host, and is a constant of the plan.


MANY = 256  # weights per transformed value from which on transforms are faster
DEAR = 10  # times as many, from which on the user is warned
TENTH = "takes a tenth of the time on a CPU, or less"
ROUNDED = 20 * 2.0**-53  # relative error bound of a transform in double and its inverse, per doubling of the length
_responses: BoundedCache[Any, Field] = BoundedCache(4)  # each is as large as an image


def has_transform(field: Field, window: Numbers) -> bool:
    """Return whether window and field need a transform."""
    return window.size > 1 and field.field_shape.points > 0


def by_size(name: str, field: Field, window: Numbers, shifts: Sequence[int], at: ImageEdge, dtype: str) -> Field:
    """Return the sums by the fastest of the methods with the same results.

    For a Field this is the direct one, because out-of-core programs may ask for windows of it.
    """
    args = name, field, window, shifts, at, dtype
    lengths = lengths_of(field, window)
    times_less = np.count_nonzero(window) * field.field_shape.points / (MANY * math.prod(lengths))
    if times_less < 1:
        return added(*args)
    why = _why_direct(field, window, at, dtype, TENTH if times_less >= DEAR else "does less")
    if why:
        if TENTH in why:
            warn(f"ndimage.{name} adds {window.size} weights one after the other at every point: {why}")
        return added(*args, f"one after the other: {why}")
    transformed = by_fft(*args, f"as {window.size} weights are many, and the sums are exact")
    if not has_table(field, window, at, computed_in(field, dtype)):
        return transformed
    direct = added(*args)
    return by_target(
        [
            ({"has_arrays": True, "device": "cpu"}, transformed),
            ({"has_arrays": True, "device": "gpu"}, direct),
            ({"has_arrays": False}, direct),
        ]
    )


def _why_direct(field: Field, window: Numbers, at: ImageEdge, dtype: str, less: str) -> str:
    """Return why many weights are added directly, and what transforms would save; "" if they are not."""
    if not _is_whole(field, dtype):
        return f"`method='fft'` {less}, but spreads an infinity or NaN to all sums, and gives tiny numbers for zeros"
    if why := why_inexact(field, window, at):
        return f"`method='fft'` may give other integers: {why}"
    if not is_of_an_array():
        return (
            f"`method='fft'` {less}, and gives the same, but needs the whole image, so nothing computes it in windows"
        )
    return ""


def _is_whole(field: Field, dtype: str) -> bool:
    """Return whether results are integers or truth values."""
    return field.type.replace(dtype=dtype).element.kind in "iub"


def by_fft(
    name: str, field: Field, window: Numbers, shifts: Sequence[int], at: ImageEdge, dtype: str, why: str
) -> Field:
    """Return the weighted sums of neighbours; integer results are rounded to the nearest."""
    computed = computed_in(field, dtype)
    axes = [a for a, n in enumerate(window.shape) if n > 1]
    lengths = lengths_of(field, window)
    lead = 1 if field.type.planes > 1 else 0
    numbers = [a + lead for a in axes]
    spectrum = fourier(
        _extended(name, field, lengths, shifts, at, computed), "r2c", numbers, -1, _half(lengths, axes), None
    )
    product = _product(name, spectrum, response(window, lengths, axes, computed), lead, axes)
    sums = fourier(product, "c2r", numbers, 1, lengths[axes[-1]], None)
    points = "×".join(str(lengths[a]) for a in axes)
    return _cut(name, sums, field.type.replace(dtype=dtype), f"by Fourier transforms of {points} points: {why}")


def lengths_of(field: Field, window: Numbers) -> list[int]:
    """Return the extents of the transform."""
    return [n if w == 1 else fast_length(n + w - 1) for n, w in zip(field.field_shape, window.shape, strict=True)]


def check_exact(field: Field, window: Numbers, at: ImageEdge, dtype: str) -> None:
    """Refuse integer results that may differ from SciPy's."""
    if _is_whole(field, dtype) and (why := why_inexact(field, window, at)):
        raise ArgumentError(
            "`method='fft'` rounds to the nearest integer, where exact sums are truncated, and may give other integers: "
            f"{why}; `output='float64'` gives the sums as they are"
        )


def why_inexact(field: Field, window: Numbers, at: ImageEdge) -> str:
    """Return why integer results may differ from SciPy's; "" where no sum is off by half a unit.

    The error bound of a transform is relative to the root of the sum of squares, which bounds each single value.
    """
    if not _is_whole(field, field.dtype):
        return f"the field is of {field.dtype}"
    if not np.array_equal(window, np.rint(window)) or at.cval != np.rint(at.cval):
        return "the weights, or `cval`, are not integers"
    limits = (0, 1) if field.dtype == "bool" else (np.iinfo(field.dtype).min, np.iinfo(field.dtype).max)
    largest = max(abs(float(n)) for n in (*limits, at.cval))
    points = math.prod(n for n, w in zip(lengths_of(field, window), window.shape, strict=True) if w > 1)
    error = ROUNDED * math.log2(2 * points) * math.sqrt(points) * largest * np.abs(window).sum()
    return "" if error < 0.5 else f"their sums, of {field.dtype} with such weights, are too large to be exact"


def _half(lengths: Sequence[int], axes: Sequence[int]) -> int:
    return lengths[axes[-1]] // 2 + 1


def response(window: Numbers, lengths: Sequence[int], axes: Sequence[int], dtype: str) -> Field:
    """Return the frequency response: the transform of the weights, divided by the number of values."""

    def spectrum() -> Field:
        library, options = host_library()
        numbers = library.rfft(window, lengths[axes[-1]], axes[-1], **options)
        for axis in axes[:-1]:
            numbers = library.fft(numbers, lengths[axis], axis, **options)
        numbers /= math.prod(lengths[axis] for axis in axes)
        return VectorField(np.stack([numbers.real, -numbers.imag], -1).astype(dtype))

    return _responses.find((window.tobytes(), window.shape, tuple(lengths), dtype), spectrum)


def _extended(
    name: str, field: Field, lengths: Sequence[int], shifts: Sequence[int], at: ImageEdge, dtype: str
) -> Field:
    """Return the extended field as real numbers, with the elements of tensors along an axis before the grid's."""
    planes, axes = field.type.planes, [a for a, n in enumerate(field.field_shape) if lengths[a] != n]
    lead = [planes] if planes > 1 else []

    def body() -> None:
        own = own_place(len(lead) + len(lengths))
        place = [p - shifts[a] if a in axes else p for a, p in enumerate(own[len(lead) :])]
        value = read_at(field, place, axes, Reading(True, own[0] if lead else None), at)
        k._writeTensor(k._out0, k._convert(value, dtype))

    key = (tuple(lengths), tuple(shifts), at, dtype)
    return library_call(f"{name}_extend", (FieldType((*lead, *lengths), (), dtype),), [field], body, key)[0]


def _product(name: str, spectrum: Field, weights: Field, lead: int, axes: Sequence[int]) -> Field:
    def body() -> None:
        own = own_place(len(spectrum.field_shape))
        place = [p if a in axes else 0 for a, p in enumerate(own[lead:])]
        k._writeTensor(k._out0, k._vector(*times(pair_at(spectrum, own), pair_at(weights, place))))

    return library_call(f"{name}_product", (spectrum.type,), [spectrum, weights], body, (lead, tuple(axes)))[0]


def _cut(name: str, sums: Field, out: FieldType, remark: str) -> Field:
    """Return the sums at the points of a field of this type."""
    grid, whole = len(out.field_shape), out.element.kind in "iub"

    def at_point(at: Place, read: Reading) -> Any:
        element = [*at[grid:], *([] if read.part is None else [read.part])]
        lead = [flat(element, out.parts)] if out.planes > 1 else []
        value = k._readTensor(sums, *lead, *at[:grid], border="unchecked")
        return stored(k._rint(value) if whole else value, out)

    return gathered(f"{name}_fft", out, [sums], at_point, (), remark=remark)
