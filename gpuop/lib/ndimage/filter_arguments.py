"""Arguments of SciPy's image functions: axes, modes, origins, windows and the dtypes of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuop.base.errors import ArgumentError, UnsupportedError, described, warn
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.recorder.fill_values import numeric
from gpuop.dsl.recorder.trace_effects import warned
from gpuop.engine.jit.array_arguments import DTypeOfArray, takes_arrays
from gpuop.ir.dtype_names import COMPLEX_DTYPES, HALVES, complex_dtype, part_dtype, values_dtype
from gpuop.ir.types import FieldType, is_integer
from gpuop.lib.ndimage.scalar_arguments import whole

MODES = {  # modes of SciPy, and the borders of reads
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "nearest": "clamp",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
}
INTEGERS = ("int32", "int64")  # dtypes of sums of integers with integral weights
EXACT = 2**53  # bound of integers that float64 represents exactly
# Dtypes whose values are all exact in float32.
SMALL = ("bool", "int8", "uint8", "int16", "uint16", *HALVES, "float32", "unorm8")


@dataclass(frozen=True)
class ImageEdge:
    """Border of a field's reads.

    Attributes:
        border: border of `_readTensor`; "constant" reads `cval` outside.
    """

    border: str
    cval: Any = 0.0


def edge(mode: Any, cval: Any, field: Field) -> ImageEdge:
    """Return the edge of a field by a SciPy mode."""
    if not isinstance(mode, str) or mode not in MODES:
        hint = f"; that is a border of kernels, called {_by_border(mode)!r} here" if mode in set(MODES.values()) else ""
        raise ArgumentError(f"`mode` is one of {', '.join(MODES)}, not {mode!r}{hint}")
    outside = checked_cval(cval)
    check_real(outside, field)
    return ImageEdge(MODES[mode], outside if MODES[mode] == "constant" else 0.0)


def checked_cval(cval: Any) -> Any:
    """Check the value outside of a field.

    Raises:
        UnsupportedError: it is not a number; a TypeError.
    """
    if not numeric(cval):
        raise UnsupportedError(f"`cval` is a number, not {described(cval)}")
    return cval


def check_real(cval: Any, field: Field) -> None:
    """Refuse a complex value outside of a real field; a TypeError."""
    if field.dtype not in COMPLEX_DTYPES and isinstance(cval, (complex, np.complexfloating)):
        raise UnsupportedError(f"`cval` of a real field is a real number, not {cval}")


def _by_border(border: str) -> str:
    return next(mode for mode, each in MODES.items() if each == border)


def rank(field: Field) -> int:
    """Return the number of axes that are filtered: those of the grid. Each element of a tensor is filtered by itself."""
    return len(field.field_shape)


def axis_of(axis: Any, count: int) -> int:
    """Return the index of an axis, which may be negative."""
    number = whole(axis, "axis")
    if not -count <= number < count:
        raise ArgumentError(f"axis {axis} is out of range: the field has {count} {'axis' if count == 1 else 'axes'}")
    return number % count


def axes_of(axes: Any, count: int) -> tuple[int, ...]:
    """Return the indices of the axes that are filtered, without repeats; None stands for all of them."""
    if axes is None:
        return tuple(range(count))
    several = axes if isinstance(axes, (tuple, list, range)) else (axes,)
    if not all(is_integer(a) for a in several):
        message = (
            f"axes must be an integer, iterable of integers, or None; {axes!r} cannot be interpreted as an integer"
        )
        raise UnsupportedError(message) if several is axes or np.isscalar(axes) else ArgumentError(message)
    numbers = tuple(axis_of(a, count) for a in several)
    if len(set(numbers)) != len(numbers):
        raise ArgumentError(f"axes must be unique, and these are {axes}")
    return numbers


def window_axes(axes: Any, count: int) -> tuple[int, ...]:
    """Return the axes of an inseparable window, in the order of the grid, as SciPy takes them."""
    numbers = axes_of(axes, count)
    return tuple(range(count)) if len(numbers) == count else numbers


def each(value: Any, count: int, name: str) -> list[Any]:
    """Return a value for each axis, from one for all or a sequence of `count`.

    Raises:
        UnsupportedError: it is a Field, whose value is on the device; a TypeError.
        ArgumentError: the sequence has another length; a ValueError.
    """
    if isinstance(value, Field):
        raise UnsupportedError(
            f"`{name}` determines the kernels, so it is a Python number, as `{name}=2`, or one for each axis, not a Field, "
            "whose value is on the device; a gp.Parameter gives its value"
        )
    if isinstance(value, str) or not np.iterable(value):
        return [value] * count
    values = list(value)
    if len(values) != count:
        raise ArgumentError(
            f"`{name}`: sequence argument must have length equal to input rank, or to the number of axes that are filtered, "
            f"{count} here; it is {value}"
        )
    return values


def check_origin(origin: int, size: int, what: str = "points") -> None:
    """Refuse an origin that moves the window off its own point."""
    if not -(size // 2) <= whole(origin, "origin") <= (size - 1) // 2:
        raise ArgumentError(
            f"Invalid origin {origin}: of {size} {what} it lies in -{size // 2} … {(size - 1) // 2}, so that the window "
            "contains its own point"
        )


def advise(message: str) -> None:
    """Warn at the user line, at every call: a function that warns is not cached."""
    warned()
    warn(message)


def result_dtype(output: Any, field: Field, real: bool = True) -> str:
    """Return the dtype of a result: the field's unless `output=` is another; complex for complex numbers.

    Args:
        real: whether the weights are real.
    """
    complex_ = field.dtype in COMPLEX_DTYPES or not real
    if output is None and not complex_:
        return field.dtype
    kind = as_complex(field.type) if output is None else field.type.replace(dtype=output).dtype
    if complex_ and kind not in COMPLEX_DTYPES:
        if isinstance(output, DTypeOfArray):
            raise ArgumentError(f"output must have complex dtype: the result is complex, and the array is of {kind}")
        advise("promoting specified output dtype to complex")
        return as_complex(field.type.replace(dtype=kind))
    if kind in COMPLEX_DTYPES and not complex_:
        raise UnsupportedError(f"complex results of real fields: convert the field, as in `f.astype('{kind}')`")
    return kind


def as_complex(kind: FieldType) -> str:
    """Return SciPy's dtype of complex numbers whose parts hold the values of a field."""
    return np.promote_types(kind.array_dtype, np.complex64).name


def computed_in(field: Field, dtype: str) -> str:
    """Return the dtype of sums: float32 if field and result are exact in it, else float64, also for integers.

    Integer results are truncated, as in SciPy, so float32 sums that are slightly less than an integer would be off by one.
    """
    if field.dtype in COMPLEX_DTYPES:
        return part_dtype(max(field.dtype, dtype, key=lambda each: np.dtype(each).itemsize))
    return "float32" if field.dtype in SMALL and dtype in ("float32", *HALVES) else "float64"


def between_steps(field: Field, computed: str) -> str:
    """Return the dtype of a field between two steps whose sums have a dtype: complex for a complex field."""
    return complex_dtype(computed) if field.dtype in COMPLEX_DTYPES else computed


def summed_in(field: Field, dtype: str, weights: np.ndarray[Any, Any], at: ImageEdge) -> str:
    """Return the dtype of weighted sums: for integers with integral weights int32 where it holds all sums.

    It is int64, modulo 2^64, where sums may exceed the exact range of float64; all terms are exact in any case.
    """
    types = np.dtype(field.type.array_dtype), values_dtype(dtype)
    if any(kind.kind not in "biu" for kind in types) or field.dtype == "unorm8":
        return computed_in(field, dtype)
    whole = bool(np.all(np.abs(weights) < EXACT) and np.all(weights == np.rint(weights)))
    fits = at.border != "constant" or (not isinstance(at.cval, complex) and field.type.element.holds(at.cval))
    fits = fits and float(np.real(at.cval)).is_integer()
    if not (whole and fits):
        return computed_in(field, dtype)
    total = float(np.abs(weights).sum())
    least, most = field.type.element.ends
    if max(-least, most) * total < 2**31:
        return "int32"
    return "int64" if 2.0 ** (8 * types[0].itemsize) * total > EXACT else computed_in(field, dtype)


def method_of(method: Any, methods: Sequence[str]) -> Any:
    """Return the algorithm of `method=`, or None.

    Raises:
        ArgumentError: there is no such algorithm.
    """
    if method is not None and method not in methods:
        named = ", ".join(map(repr, methods))
        raise ArgumentError(f"`method` is one of {named}, or None for what suits the window, not {method!r}")
    return method


def as_output(result: Field, output: Any) -> Field:
    """Return the field in the dtype of `output=`, if there is one."""
    return result if output is None else result.astype(output)


def windows(size: Any, count: int, name: str = "size") -> list[int]:
    """Return the extents of a window along each axis."""
    return [whole(n, name) for n in each(size, count, name)]


def spread(window: np.ndarray[Any, Any], axes: Sequence[int], count: int, name: str) -> np.ndarray[Any, Any]:
    """Extend a window over some axes, in any order, to one over all axes."""
    if window.ndim != len(axes):
        raise ArgumentError(f"{name}.ndim ({window.ndim}) must match len(axes) ({len(axes)})")
    return np.expand_dims(window, tuple(a for a in range(count) if a not in axes))


def named(function: Callable[..., Any], name: str, about: str, *arrays: str) -> Callable[..., Any]:
    """Return a function of scipy.ndimage, which a factory has made, that takes arrays too as by `takes_arrays`."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"scipy.ndimage.{name}: {about}"
    return takes_arrays(*arrays)(function)


def with_more(function: Callable[..., Any], arguments: Any, keywords: Any) -> Callable[..., Any]:
    """Return a user function with its extra arguments bound, arrays among them.

    Raises:
        ArgumentError: it is not callable; a ValueError.
    """
    if not callable(function):
        raise ArgumentError(f"the function is a callable, not {described(function)}")
    if not arguments and not keywords:
        return function
    return lambda *values: function(*values, *arguments, **(keywords or {}))
