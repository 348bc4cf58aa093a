"""Measurements of arrays: pipelines whose results become numbers and arrays, as in SciPy. For fields results stay fields."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import astuple, is_dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from gpuop.base.errors import ArgumentError, UnsupportedError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Placeholder, is_array
from gpuop.engine.interop import library_of, numpy_dtype
from gpuop.engine.jit.array_arguments import DTypeOfArray, an_array, as_field, refuse_swapped
from gpuop.engine.jit.pipeline import Pipeline, pipeline
from gpuop.lib.ndimage.measure.label_groups import LabelIndex, OpenIndex

TO_HOST = ("get", "cpu", "copy_to_host")  # methods of CuPy, PyTorch and Numba arrays
FROM_HOST: dict[str, Callable[[Any, Any, Any], Any]] = {  # an array of a library beside another one of it
    "cupy": lambda cupy, numbers, beside: cupy.asarray(numbers),
    "torch": lambda torch, numbers, beside: torch.as_tensor(numbers, device=beside.device),
}
Measure = Callable[..., Any]  # function of fields and constants that returns a field, or a tuple of fields


def measured(measure: Measure, input: Any, beside: Any, *constants: Any) -> Any:
    """Apply a measurement to a field, and to another one or None: for arrays results are numbers and arrays of their library.

    Args:
        constants: further arguments; a dataclass is compared by its fields, which are plain values. Results by a `LabelIndex` have
            its shape.
    """
    result, index = of_groups(measure, input, beside, *constants)
    if is_lazy(input, beside):
        return result
    several = isinstance(result, tuple)
    rows = [_number(each if index is None else rows_of(each, index)) for each in (result if several else (result,))]
    return tuple(rows) if several else rows[0]


def of_groups(measure: Measure, input: Any, beside: Any, *constants: Any) -> tuple[Any, LabelIndex | None]:
    """Apply a measurement, with results of all groups and the index that `rows_of` selects by; None if they are selected."""
    one, other = (as_array(arg) for arg in (input, beside))
    if is_lazy(one, other):
        return measure(as_field(one), None if other is None else as_field(other), *constants), None
    index = next((c for c in constants if isinstance(c, LabelIndex)), None)
    numbers = None if index is None else _open_numbers(index, one, other)
    if index is None or numbers is None:
        return _run(measure)(one, other, tuple(map(_plain, constants))), None
    open_index = OpenIndex(index.room, index.shape is None, index.whole)
    plain = tuple(_plain(open_index if c is index else c) for c in constants)
    return _run(measure)(one, other, plain, numbers), index


def _open_numbers(index: LabelIndex, values: Any, labels: Any) -> Any:
    """Return an index as the array that an OpenIndex has, of the library of values and labels.

    None if a kernel must know the numbers: they or the labels are no integers that int64 holds, or the library has no such array.
    """
    among = index.values
    if labels is None or not among or np.dtype(index.dtype).kind != "i":
        return None
    if numpy_dtype(labels).kind not in "iu" or numpy_dtype(labels) == np.uint64:
        return None
    ends_or_all = [among[0], among[-1]] if index.whole else [among[0]] * (index.room - len(among)) + among
    numbers = np.array(ends_or_all, np.int64)
    if type(values) is np.ndarray and type(labels) is np.ndarray:
        return numbers
    library = library_of(labels)
    if library != library_of(values) or library not in FROM_HOST:
        return None
    return FROM_HOST[library](sys.modules[library], numbers, labels)


def rows_of(result: Any, index: LabelIndex) -> Any:
    """Select the index's results from those of all groups."""
    if index.shape is None:
        return result
    places = np.array(index.places, np.int64) + (index.room - index.count)
    return result[places].reshape(*index.shape, *result.shape[1:])


def _plain(constant: Any) -> Any:
    """Return a constant as plain values."""
    several = is_dataclass(constant) and not isinstance(constant, type)
    return (type(constant), astuple(constant)) if several else constant


@lru_cache
def _run(measure: Measure) -> Pipeline:
    def of_fields(one: Any, other: Any, constants: tuple[Any, ...], numbers: Any = None) -> Any:
        args = [c[0](*c[1]) if isinstance(c, tuple) and c and isinstance(c[0], type) else c for c in constants]
        if numbers is not None:
            args = [replace(c, numbers=as_field(numbers)) if isinstance(c, OpenIndex) else c for c in args]
        return measure(as_field(one), None if other is None else as_field(other), *args)

    of_fields.__name__ = of_fields.__qualname__ = measure.__name__.strip("_")
    return pipeline(of_fields)


def as_array(arg: Any) -> Any:
    """Return a Field or an array of any library unchanged; convert others to NumPy."""
    return arg if arg is None or isinstance(arg, Field) or is_array(arg) else an_array(arg)


def _number(array: Any) -> Any:
    return array[()] if isinstance(array, np.ndarray) else array


def values_of(result: Any) -> Any:
    """Return a result's values as a NumPy array."""
    if isinstance(result, Field):
        return result.numpy()
    to_host = next((way for way in TO_HOST if hasattr(result, way)), None)
    return np.asarray(getattr(result, to_host)() if to_host else result)


def parted(row: Any, ends: Sequence[int]) -> list[Any]:
    """Split a row at each of these places."""
    if library_of(row) == "cupy":  # whose slices take several times as long
        return list(sys.modules["cupy"].split(row[: ends[-1]], ends[:-1]))
    return [row[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def shape_of(arg: Any) -> tuple[int, ...]:
    """Return the shape of a Field's grid, or of an array."""
    return tuple(arg.field_shape if isinstance(arg, Field) else arg.shape)


def is_lazy(*arg: Any) -> bool:
    """Return whether any argument is a field, or a placeholder of an array."""
    return any(isinstance(each, (Field, Placeholder)) for each in arg)


def wanted_dtype(name: str, output: Any, shape: tuple[int, ...], lazy: bool, argument: str = "output") -> Any:
    """Return the dtype that an argument asks for as `output=` does, or that of its array, or None.

    Raises:
        UnsupportedError: it is an array, beside a Field, or of the other byte order.
        ArgumentError: it has another shape.
    """
    if output is None or not is_array(output):
        refuse_swapped(name, output)
        return None if output is None else np.dtype(output).name
    if lazy:
        raise UnsupportedError(f"ndimage.{name}: with a Field `{argument}=` cannot be an array; results are Fields")
    if tuple(output.shape) != shape:
        raise ArgumentError(
            f"{argument} shape not correct, wrong shape: it is {tuple(output.shape)}, and the input's is {shape}"
        )
    return DTypeOfArray(numpy_dtype(output).name)
