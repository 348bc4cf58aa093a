"""NumPy functions that count values in bins, and integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError, SemanticError, described
from gpuop.dsl.fields import services
from gpuop.dsl.fields.derivative_rules import with_rule
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.dsl.recorder.value import NUMBERS
from gpuop.ir.dtype_names import COMPLEX_DTYPES, values_dtype, wide_float
from gpuop.ir.types import FieldType, is_integer
from gpuop.ops.create.computed_fields import filled
from gpuop.ops.data_dependent_shapes import has_values, integers, on_device
from gpuop.ops.elementwise.algebra import apply, astype
from gpuop.ops.layout.axes import a_field, whole_number
from gpuop.ops.layout.join import diff
from gpuop.ops.layout.layouts import ravel, reshape
from gpuop.ops.reduce.bins import Bins, bins_among, equal_bins, known_bins
from gpuop.ops.reduce.kernels import planes_of
from gpuop.ops.reduce.reducers import PER_ITERATION
from gpuop.ops.sort.search import edges_of, ordered

ADVICE = '`np.bincount(f.astype("uint8"), minlength=256)` and `np.histogram(f, n, (0, n - 1))` have as many as they say'

MOST_COUNTS = 2**31 - 1


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Field, Field]:
    """numpy.histogram."""
    values = own = ordered("histogram", a_field("histogram", a))
    if values.dtype in ("int64", "uint64") and _are_floats(bins, values):
        values = astype(values, "float64")  # as NumPy compares them with such edges
    edges, result = _bins(
        values, bins, _own_ends(values, own, int(bins)) if range is None and is_integer(bins) else range
    )
    values = astype(values, wide_float(values.dtype))
    if weights is None:
        counts = counted("histogram", values, result)
    else:
        factors = _weights("histogram", weights, values)
        counts = _wrapped(weighed("histogram", values, factors, result, _summed(factors)), factors.dtype)
    if not density:
        return counts, edges
    widths = astype(diff(edges), "float64")
    shares = apply("true_divide", astype(counts, "float64"), widths)
    return apply("true_divide", shares, astype(counts.sum(), "float64")), edges


def _are_floats(bins: Any, values: Field) -> bool:
    """Return whether values are compared with edges as floats: always with computed edges."""
    if isinstance(bins, (Field, np.ndarray, list, tuple)):
        edges = np.dtype(bins.type.array_dtype) if isinstance(bins, Field) else np.asarray(bins).dtype
        return edges.kind in "iuf" and np.result_type(edges, values.type.array_dtype).kind == "f"
    return is_integer(bins)


def _bins(values: Field, bins: Any, ends: Any) -> tuple[Field, Bins]:
    """Return the edges as NumPy does, and the bins between them."""
    compared = values.type.replace(dtype=wide_float(values.dtype))
    if isinstance(bins, Field):
        if len(bins.type.array_shape) != 1 or bins.tensor_shape or bins.type.array_shape.points < 2:
            raise SemanticError(f"histogram: edges of bins are a row of two or more, not a {bins.type} field")
        return bins, bins_among(ordered("histogram", bins), compared)
    if isinstance(bins, str):
        raise SemanticError(
            f"histogram: the number of bins of {bins!r} depends on the values; `np.histogram_bin_edges(f.numpy(), {bins!r})` gives "
            "edges"
        )
    if is_integer(bins):
        if bins < 1:
            raise SemanticError(f"histogram: there is one bin or more, not {bins}")
        low, high = _ends(values, ends)
        if isinstance(low, Field) or isinstance(high, Field):
            weak = [values_dtype(n.dtype) if isinstance(n, Field) else n for n in (low, high)]
            number = np.result_type(*weak, values.type.array_dtype)
            low, high = (n if isinstance(n, Field) else Field(np.asarray(n, number)) for n in (low, high))
            return equal_bins(low, high, int(bins), values.type)
        edges = _between(values, int(bins), (low, high))
        return Field(edges), known_bins(edges, compared, True)
    if np.ndim(bins) == 0:
        raise SemanticError(f"histogram: `bins=` is a number of bins, or a row of edges, not {described(bins)}")
    edges = edges_of("histogram", bins)
    if edges.size < 2 or not np.all(edges[:-1] <= edges[1:]):
        raise SemanticError("histogram: edges of bins are a row of two or more that increase")
    return Field(edges), known_bins(edges, compared, False)


def _ends(values: Field, ends: Any) -> tuple[Any, Any]:
    """Return the ends of the range: numbers or fields."""
    if not isinstance(ends, (tuple, list)) or len(ends) != 2:
        raise SemanticError(f"histogram: `range=` is a pair of numbers, not {described(ends)}")
    for end in ends:
        if not isinstance(end, NUMBERS) and not (isinstance(end, Field) and not end.type.array_shape):
            raise SemanticError(
                f"histogram: an end of `range=` is a number, or a field of one number, not {described(end)}"
            )
    return tuple(ends)


def _own_ends(values: Field, own: Field, count: int) -> tuple[Any, Any]:
    """Return the least and the greatest value; those in memory are checked, others are computed with the counts.

    Args:
        own: the values before their conversion.
        count: number of bins.
    """
    if not values.type.array_shape.points:
        return 0, 1
    low, high = values.min(), values.max()
    wide = np.dtype(own.type.array_dtype).kind == "f" or own.dtype in (
        "int64",
        "uint64",
    )  # others have no ends too near
    if wide and count > 0 and has_values(own):
        ends = [float(end) for end in services.above.evaluate(low, high)]
        if not np.all(np.isfinite(ends)):
            raise ArgumentError(
                f"histogram: the range of the values, {ends[0]:g} to {ends[1]:g}, is not finite; give finite ends by "
                "`range=`; values outside are not counted"
            )
        if np.isfinite(ends[1] - ends[0]):
            _between(values, count, (ends[0], ends[1]))
    return low, high


def _between(values: Field, count: int, ends: tuple[Any, Any]) -> Any:
    if not ends[0] <= ends[1] or not np.all(np.isfinite(ends)):
        raise SemanticError(f"histogram: `range=` is two finite numbers that increase, not {ends}")
    if not np.isfinite(float(ends[1]) - float(ends[0])):
        raise ArgumentError(f"histogram: the ends of `range=`, {ends[0]} and {ends[1]}, are too far apart for float64")
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.histogram_bin_edges(np.empty(0, values.type.array_dtype), count, ends)
    except ValueError:
        raise ArgumentError(
            f"histogram: too many bins for the range: {values.dtype} has too few numbers between {ends[0]} and {ends[1]} for "
            f"{count} bins"
        ) from None


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Field:
    """numpy.bincount."""
    field = a_field("bincount", x)
    if np.dtype(field.type.array_dtype).kind not in "biu" or field.dtype in ("unorm8", "uint64"):
        raise SemanticError(f"bincount counts integers of up to int64, not {field.dtype}")
    if len(field.type.array_shape) != 1 or field.tensor_shape:
        raise SemanticError(f"bincount counts the values of a row, not a {field.type} field; `.ravel()` makes one")
    least = whole_number(minlength, "bincount: `minlength=`")
    if least < 0:
        raise SemanticError(f"bincount: `minlength=` is 0 or more, not {least}")
    _check_room(least, f"`minlength={least}`")
    values = ordered("bincount", field)
    values, count = _all_counted(values, least)
    result = Bins(count, "own")
    if weights is None:
        return counted("bincount", values, result)
    return weighed("bincount", values, _weights("bincount", weights, values), result, "float64")


def _all_counted(values: Field, least: int) -> tuple[Field, int]:
    """Return the values and the number of counts, which is known if no value of the dtype exceeds `minlength=`."""
    ends = np.iinfo(values.type.array_dtype)
    if not values.type.array_shape.points or (ends.min == 0 and ends.max < least):
        return values, least
    values = on_device("bincount", ADVICE, values)
    low, high = integers(values.min(), values.max())
    if low < 0:
        raise SemanticError(f"bincount counts numbers of 0 or more, not {low}")
    _check_room(high + 1, f"a value of {high}")
    return values, max(least, high + 1)


def _check_room(count: int, cause: str) -> None:
    """Raise a SemanticError if indices of counts exceed an int."""
    if count > MOST_COUNTS:
        raise SemanticError(
            f"bincount: {cause} asks for {count} counts, which are more than {MOST_COUNTS}; "
            "`np.unique(f, return_counts=True)` counts only the values that occur"
        )


def _weights(name: str, weights: Any, values: Field) -> Field:
    field = a_field(name, weights)
    if field.type.array_shape != values.type.array_shape:
        raise SemanticError(
            f"{name}: weights have the shape of the counted values, {tuple(values.type.array_shape)}, not "
            f"{tuple(field.type.array_shape)}"
        )
    if field.dtype in COMPLEX_DTYPES:
        raise SemanticError(f"{name}: weights are real; take `.real` and `.imag` one after the other")
    return astype(field, "float32") if field.dtype == "unorm8" else field


def _summed(weights: Field) -> str:
    """Return the dtype of sums of weights: integers wrap around, as in NumPy."""
    return {"i": "int64", "u": "uint64"}.get(np.dtype(weights.type.array_dtype).kind, "float64")


def _wrapped(sums: Field, dtype: Any) -> Field:
    """Return a value in a dtype: the low bits of integers."""
    wide, narrow = np.dtype(sums.type.array_dtype), values_dtype(str(dtype))
    if wide.kind != "f" and narrow.itemsize < wide.itemsize:
        bits, low = 8 * narrow.itemsize, int(np.iinfo(narrow).min)
        sums = apply("add", apply("bitwise_and", apply("subtract", sums, low), (1 << bits) - 1), low)
    return astype(sums, dtype)


# --- the kernels that count values in bins, and that sum weights in bins ----------------------------------------------
# Counts do not depend on the order, so threads count in the result, or in copies of it if that is faster
# (`passes/schedules/common/privatize.py`). Sums of floats do: each thread sums a chunk of the values in order, and then the
# sums of the chunks are added. Chunks depend on the shape alone, so results are equal on every device.


WORTH = 8  # values of a chunk for each bin
MOST_CHUNKS = 1 << 14
Reads = Callable[[Any], Any]  # returns the sum of a bin
Writes = Callable[[Any, Any], None]
LOCAL = 1 << 12  # bins whose sums a thread has in local memory


def counted(name: str, values: Field, bins: Bins) -> Field:
    """Return the number of values in each bin: int64."""
    points = values.type.array_shape.points
    out = FieldType(bins.count, (), "int32" if points < 2**31 else "int64")
    if not points or bins.how == "none":
        return filled(out.replace(dtype="int64"), 0)
    source = values if values.field_shape else reshape(values, (1, *values.tensor_shape))
    planes = planes_of(source.type)

    def body() -> None:
        k._globalThreads(source.field_shape, planes)
        value = k._readTensorElement(source, k._tensorElement) if planes else k._readTensor(source)
        k._atomic_inc(k._pointerTo(k._out0, bins.place(value)))

    return astype(library_call(name, (out,), [source, *bins.fields], body, bins.key)[0], "int64")


def weighed(name: str, values: Field, weights: Field, bins: Bins, dtype: str, runs: bool = False) -> Field:
    """Return the sums of weights in each bin, in the accumulator's dtype.

    Args:
        runs: whether neighbouring values often belong to one bin, as labels do: then its sum stays in a variable.
    """
    values, weights = ravel(values), ravel(weights)
    result = _weighed(name, values, weights, bins, dtype, runs)
    if np.dtype(weights.type.array_dtype).kind != "f" or dtype != "float64":
        return result

    def pulled(inputs: Sequence[Field], result: Field, cotangent: Field) -> list[Field]:
        return [_of_own_bins(name, values, cotangent, bins, inputs[0].type)]

    def pushed(inputs: Sequence[Field], result: Field, tangents: Sequence[Field | None]) -> Field | None:
        (tangent,) = tangents
        return None if tangent is None else weighed(name, values, tangent, bins, dtype, runs)

    return with_rule(Field.of(result.node), name, [weights], pulled, pushed)


def _weighed(name: str, values: Field, weights: Field, bins: Bins, dtype: str, runs: bool) -> Field:
    points = values.field_shape.points
    if not points or bins.how == "none":
        return filled(FieldType(bins.count, (), dtype), 0)
    chunks = min(max(points // (WORTH * bins.count), 1), MOST_CHUNKS)
    size = -(-points // chunks)
    chunks = -(-points // size)

    def body() -> None:
        k._globalThreads(chunks)
        k._localThreads(1)
        add, write = _sums(bins.count, dtype, runs)
        first = k._column * size
        stop = k._min(first + size, points)
        whole = first + (stop - first) / PER_ITERATION * PER_ITERATION
        with k._for(first, whole, PER_ITERATION) as at:
            _add_few(values, weights, bins, add, at, PER_ITERATION)
        with k._for(whole, stop) as at:
            _add_few(values, weights, bins, add, at, 1)
        write()

    kind = FieldType((chunks, bins.count), (), dtype)
    key = ("weighed", size, runs, *bins.key)
    return library_call(name, (kind,), [values, weights, *bins.fields], body, key, whole=True)[0].sum(axis=0)


def _of_own_bins(name: str, values: Field, sums: Field, bins: Bins, kind: FieldType) -> Field:
    """The number of each value's bin; 0 where it is in none."""

    def body() -> None:
        place = bins.place(k._readTensor(values))
        number = k._convert(k._readTensor(sums, place), str(kind.dtype))
        k._writeTensor(k._out0, k._where((place >= 0) & (place < bins.count), number, 0))

    return library_call(f"{name}_back", (kind,), [values, sums, *bins.fields], body, ("back", *bins.key))[0]


def _add_few(values: Field, weights: Field, bins: Bins, add: Callable[..., None], at: Any, count: int) -> None:
    """Read a few values and their weights, then add these in order."""
    places = [bins.place(k._readTensor(values, at + n, border="unchecked")) for n in range(count)]
    numbers = [k._readTensor(weights, at + n, border="unchecked") for n in range(count)]
    for place, weight in zip(places, numbers, strict=True):
        with k._if((place >= 0) & (place < bins.count)):
            add(place, weight)


def _sums(count: int, dtype: str, runs: bool) -> tuple[Callable[..., None], Callable[[], None]]:
    """Return functions that add to the sum of a bin, and that write all sums at the end; many sums are in the result itself."""
    adding = _adding_to_runs if runs else _adding
    if count > LOCAL:
        with k._for(count) as n:
            k._writeTensor(k._out0, 0, k._column, n)
        return adding(
            dtype,
            lambda place: k._readTensor(k._out0, k._column, place),
            lambda place, total: k._writeTensor(k._out0, total, k._column, place),
        )
    arrays = {"float64": k._doubleArray, "int64": k._longArray, "uint64": k._ulongArray}
    sums = k._local(arrays[dtype](count))
    with k._for(count) as n:
        sums[n] = 0
    add, write_last = adding(dtype, lambda place: sums[place], sums.__setitem__)

    def write() -> None:
        write_last()
        with k._for(count) as n:
            k._writeTensor(k._out0, sums[n], k._column, n)

    return add, write


def _adding(dtype: str, read: Reads, write: Writes) -> tuple[Callable[..., None], Callable[[], None]]:
    return lambda place, weight: write(place, read(place) + k._convert(weight, dtype)), lambda: None


def _adding_to_runs(dtype: str, read: Reads, write: Writes) -> tuple[Callable[..., None], Callable[[], None]]:
    """Return the same functions, with the sum of the last bin in a variable."""
    own, total = k._var(0), k._var(k._convert(0, dtype))

    def add(place: Any, weight: Any) -> None:
        with k._if(place != own):
            write(own, total)
            own.assign(place)
            total.assign(read(place))
        total.assign(total + k._convert(weight, dtype))

    return add, lambda: write(own, total)
