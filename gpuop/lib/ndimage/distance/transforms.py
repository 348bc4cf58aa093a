"""Distance transforms of scipy.ndimage: distances of mask points from the nearest point outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError, UnsupportedError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.dsl.operators.variants import either
from gpuop.engine.jit.constant_arguments import frozen
from gpuop.ir.types import FieldType
from gpuop.lib.ndimage.distance.line_search import searched
from gpuop.lib.ndimage.distance.nearest import NONE, Metric, cost, nearest
from gpuop.lib.ndimage.filter_arguments import each
from gpuop.lib.ndimage.measure.host_results import as_array, is_lazy, measured, shape_of, wanted_dtype
from gpuop.lib.ndimage.morphology.binary import generate_binary_structure
from gpuop.lib.ndimage.scalar_arguments import numbers_of
from gpuop.ops.elementwise.algebra import astype
from gpuop.ops.layout.gather import Place, Reading, apart, gathered
from gpuop.ops.layout.join import stack
from gpuop.ops.layout.layouts import reshape
from gpuop.ops.sort.radix_sort import single

NAMES = {
    "euclidean": "euclidean",
    "chessboard": "chessboard",
    "taxicab": "taxicab",
    "cityblock": "taxicab",
    "manhattan": "taxicab",
}
UNREACHED = float(np.sqrt(np.finfo(np.float64).max))  # the result of SciPy's search where nothing is outside


def distance_transform_edt(
    input: Any,
    sampling: Any = None,
    return_distances: bool = True,
    return_indices: bool = False,
    distances: Any = None,
    indices: Any = None,
) -> Any:
    """scipy.ndimage.distance_transform_edt: the distance of each point of a mask from the nearest point outside of it.

    Args:
        input: a Field of scalars, or an array; points that are not 0 are in the mask.
        sampling: the spacing of points: a number, or one for each axis; 1 by default.
        return_distances, return_indices: results to return: distances, float64; and the coordinates of the nearest points, int32,
            with the axes first. Ties between equally near points may be broken differently on different devices.
        distances, indices: arrays that the results go into instead.

    Returns:
        Lazy Fields, or arrays of the input's library: the distances, the indices, or a tuple of both.

    Raises:
        ArgumentError: no result is asked for, or arrays have wrong shapes or dtypes; a ValueError and a RuntimeError.
        UnsupportedError: arrays beside a Field; a TypeError.
    """
    lengths = None if sampling is None else _sampled(sampling, _rank(input))
    request = _Request("distance_transform_edt", "float64", return_distances, return_indices, distances, indices)
    return request.of(input, Metric("euclidean", lengths), "past the first")


def distance_transform_cdt(
    input: Any,
    metric: Any = "chessboard",
    return_distances: bool = True,
    return_indices: bool = False,
    distances: Any = None,
    indices: Any = None,
) -> Any:
    """scipy.ndimage.distance_transform_cdt: `distance_transform_edt` in steps between neighbours: int32, -1 if nothing is outside.

    Args:
        metric: "chessboard", or "taxicab", "cityblock", "manhattan"; or the structure of either.

    Raises:
        UnsupportedError: another structure; a TypeError.
    """
    request = _Request("distance_transform_cdt", "int32", return_distances, return_indices, distances, indices)
    return request.of(input, Metric(_steps(metric, _rank(input))), "own")


def distance_transform_bf(
    input: Any,
    metric: Any = "euclidean",
    sampling: Any = None,
    return_distances: bool = True,
    return_indices: bool = False,
    distances: Any = None,
    indices: Any = None,
) -> Any:
    """scipy.ndimage.distance_transform_bf: distances by the name of a metric; numbers of steps are uint32.

    Args:
        metric: "euclidean", which `sampling` applies to, "chessboard", "taxicab", "cityblock" or "manhattan".
    """
    name = NAMES.get(str(metric).lower())
    if name is None:
        raise ArgumentError(f"distance metric not supported: {metric!r} is not one of {', '.join(NAMES)}")
    plain = sampling is None or name != "euclidean"
    lengths = None if plain else _sampled(sampling, _rank(input))
    dtype = "float64" if name == "euclidean" else "uint32"
    request = _Request("distance_transform_bf", dtype, return_distances, return_indices, distances, indices)
    return request.of(input, Metric(name, lengths), "first")


def _sampled(sampling: Any, count: int) -> tuple[float, ...]:
    """Return the spacing along each axis."""
    lengths = numbers_of(each(frozen(sampling), count, "sampling"), "sampling")
    return tuple(map(float, lengths))


def _rank(input: Any) -> int:
    return len(shape_of(as_array(input)))


def _steps(metric: Any, rank: int) -> str:
    if isinstance(metric, str):
        if NAMES.get(metric, "euclidean") == "euclidean":
            raise ArgumentError(
                f"invalid metric provided: {metric!r} is not chessboard, taxicab, cityblock or manhattan"
            )
        return NAMES[metric]
    neighbours = np.asarray(metric) != 0
    if any(n != 3 for n in neighbours.shape) or neighbours.ndim != rank:
        raise ArgumentError(f"metric sizes must be equal to 3 along each of {rank} axes, not {neighbours.shape}")
    for name, connectivity in (("taxicab", 1), ("chessboard", rank)):
        if np.array_equal(neighbours, generate_binary_structure(rank, connectivity)):
            return name
    raise UnsupportedError("a metric's structure is that of all neighbours, or of those along the axes")


class _Request:
    """Results that a call asks for, and the arrays that they go into.

    Args:
        name: name of the function.
        dtype: dtype of distances.
        lengths, places: whether distances and indices are asked for.
        distances, indices: arrays that they go into, or None.
    """

    def __init__(self, name: str, dtype: str, lengths: bool, places: bool, distances: Any, indices: Any) -> None:
        if not (lengths or places):
            raise ArgumentError("at least one of return_distances/return_indices must be True")
        for want, array, what in ((lengths, distances, "distances"), (places, indices, "indices")):
            if array is not None and not want:
                raise ArgumentError(f"return_{what} must be True if {what} is supplied")
        self.name, self.dtype, self.want = name, dtype, (lengths, places)
        self.into = distances, indices

    def of(self, input: Any, metric: Metric, nowhere: str) -> Any:
        input, lazy = as_array(input), is_lazy(input)
        shape = shape_of(input)
        for array, kind, what in zip(
            self.into, ((shape, self.dtype), ((len(shape), *shape), "int32")), ("distances", "indices"), strict=True
        ):
            dtype = wanted_dtype(self.name, array, kind[0], lazy, what)
            if dtype is not None and dtype != kind[1]:
                raise ArgumentError(f"{what} array must be {kind[1]}, not {dtype}")
        result = measured(_distances, input, None, metric, self.dtype, self.want, nowhere)
        results = []
        for array, part in zip([i for i, w in zip(self.into, self.want, strict=True) if w], result, strict=True):
            if array is None:
                results.append(np.asarray(part) if isinstance(part, np.generic) else part)
            else:
                array[...] = part
        return None if not results else results[0] if len(results) == 1 else tuple(results)


# --- on fields --------------------------------------------------------------------------------------------------------


def _distances(
    input: Field, _: None, metric: Metric, dtype: str, want: tuple[bool, bool], nowhere: str
) -> tuple[Field, ...]:
    if input.tensor_shape:
        raise UnsupportedError("distances are of scalars: take an element of the tensors, as in `f[..., 0]`")
    shape = tuple(input.field_shape)
    if not shape:
        parts = _distances(reshape(input, (1,)), None, metric, dtype, want, nowhere)
        if nowhere == "past the first":  # SciPy's result there is an index past the first axis
            return parts
        return (reshape(parts[0], ()), *parts[1:]) if want[0] else parts
    if not input.field_shape.points:
        parts = astype(input, dtype), astype(stack([input] * len(shape)), "int32")
        return tuple(part for part, w in zip(parts, want, strict=True) if w)
    ways = nearest(input, metric), searched(input, metric)  # on CPUs, and on GPUs
    result = []
    if want[0]:
        far, elsewhere = (reshape(_lengths(points, shape, metric, nowhere), shape) for points in ways)
        if metric.name != "euclidean" and not want[1] and sweeps(shape):
            far = swept(input, metric.name == "chessboard")
        far = either(single(), far, elsewhere)
        result.append(far if str(far.dtype) == dtype else _as_unsigned(far, dtype))
    if want[1]:
        along = [[_coordinate(points, shape, axis, nowhere) for points in ways] for axis in range(len(shape))]
        result.append(stack([reshape(either(single(), *each_way), shape) for each_way in along]))
    return tuple(result)


def _lengths(points: Field, shape: tuple[int, ...], metric: Metric, nowhere: str) -> Field:
    """Return the distances of points from others, given by their row-major indices."""

    def length(at: Place, read: Reading) -> Any:
        number, own = read.at(points, at), apart(at[0], shape)
        far = cost(metric, shape, range(len(shape)), own, k._max(number, 0))
        if metric.name != "euclidean":
            return k._where(number < 0, -1, far)
        if nowhere == "first":
            return k._where(number < 0, UNREACHED, k._sqrt(far))
        steps = [metric.along(axis, p + (axis == 0)) for axis, p in enumerate(own)]
        beyond = steps[0]
        for more in steps[1:]:
            beyond = beyond + more
        return k._sqrt(k._where(number < 0, beyond, far))

    out = FieldType(points.field_shape, (), metric.dtype)
    return gathered("distance", out, [points], length, (shape, metric, nowhere))


def _as_unsigned(result: Field, dtype: str) -> Field:
    def value(at: Place, read: Reading) -> Any:
        return k._as_uint(read.at(result, at))

    return gathered("distance", result.type.replace(dtype=dtype), [result], value, ())


def _coordinate(points: Field, shape: tuple[int, ...], axis: int, nowhere: str) -> Field:
    """Return the coordinate of points along an axis; where there is none, that of SciPy's algorithm."""

    def coordinate(at: Place, read: Reading) -> Any:
        number = read.at(points, at)
        none = apart(at[0], shape)[axis] if nowhere == "own" else NONE if nowhere != "first" and axis == 0 else 0
        return k._where(number < 0, none, apart(k._max(number, 0), shape)[axis])

    return gathered("nearest", points.type, [points], coordinate, (shape, axis, nowhere))


# --- chamfer distances on CPUs ----------------------------------------------------------------------------------------
# Steps to the nearest point outside of a mask, by sweeps over the rows of a plane.
# A shortest path goes first from row to row, straight or, where corners are neighbours, diagonally, and then along a row. So one
# thread sweeps down from the first row and another up from the last one, a vector of columns at a time (A. Rosenfeld, J. Pfaltz,
# Sequential operations in digital picture processing, 1966). Along a row, minima within 1, 3, 7 … columns are computed for all
# columns at once; minima of farther columns come from columns one vector apart, in a forward and a backward sweep.


MOST_COLUMNS = 1 << 13  # limit: a thread keeps two rows
APART = 32  # columns: a vector of int16
FAR = (1 << 15) - 1 - APART  # greater than any distance; APART steps more do not overflow int16


def sweeps(shape: Sequence[int]) -> bool:
    """Return whether distances in a grid of this shape are computed by sweeps."""
    return len(shape) == 2 and shape[1] <= MOST_COLUMNS and sum(shape) < FAR


def swept(mask: Field, aslant: bool) -> Field:
    """Return the number of steps from each point to the nearest 0: int32, -1 if there is none.

    Args:
        aslant: whether corners are neighbours.
    """
    return _along_rows(_from_ends(mask, aslant))


def _short(value: Any) -> Any:
    return k._convert(value, "int16")


def _from_ends(mask: Field, aslant: bool) -> Field:
    """Return the steps of paths down from the rows above, and of paths up from the rows below."""
    rows, columns = mask.field_shape

    def body() -> None:
        k._globalThreads(2)
        k._localThreads(1)
        line, last = k._shortArray(columns + 2), k._shortArray(columns + 2)
        with k._for(columns + 2) as c:
            last[c] = FAR
        with k._for(rows) as done:
            row = k._where(k._column == 0, done, rows - 1 - done)
            with k._for(columns) as c:
                near = k._min(k._min(last[c], last[c + 1]), last[c + 2]) if aslant else last[c + 1]
                inside = k._readTensor(mask, row, c, border="unchecked") != 0
                line[c + 1] = k._where(inside, _short(k._min(_short(near + 1), FAR)), _short(0))
            with k._for(columns) as c:
                last[c + 1] = line[c + 1]
                k._writeTensor(k._out0, line[c + 1], k._column, row, c)

    places = FieldType((2, rows, columns), (), "int16")
    return library_call("swept_rows", (places,), [mask], body, aslant, whole=True)[0]


def _along_rows(both: Field) -> Field:
    """Return the least steps of paths that end along a row."""
    _, rows, columns = both.field_shape
    blocks = -(-columns // APART)

    def body() -> None:
        k._globalThreads(rows)
        k._localThreads(1)
        line, near = (k._shortArray((blocks + 2) * APART) for _ in range(2))
        with k._for((blocks + 2) * APART) as c:
            line[c] = FAR
            near[c] = FAR
        with k._for(columns) as c:
            down, up = (k._readTensor(both, n, k._column, c, border="unchecked") for n in range(2))
            line[c + APART] = k._min(down, up)
        step = 1
        while step < APART:
            with k._for(columns) as c:
                aside = k._min(line[c + (APART - step)], line[c + (APART + step)])
                near[c + APART] = k._min(line[c + APART], _short(aside + step))
            line, near, step = near, line, 2 * step
        for behind in (-1, 1):
            with k._for(blocks) as n:
                begin = (n if behind < 0 else blocks - 1 - n) * APART + APART
                with k._for(APART) as c:
                    line[begin + c] = k._min(line[begin + c], _short(line[begin + c + behind * APART] + APART))
        with k._for(columns) as c:
            k._writeTensor(k._out0, k._where(line[c + APART] == FAR, -1, line[c + APART]), k._column, c)

    out = FieldType((rows, columns), (), "int32")
    return library_call("swept_columns", (out,), [both], body, rows, whole=True)[0]
