"""Symbolic values of a window for recording: an array for NumPy functions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k

# NumPy functions, and their implementations on symbolic values.
OF_VALUES: dict[Any, Callable[..., Any]] = {
    np.maximum: k._max,
    np.minimum: k._min,
    np.absolute: abs,
    np.sqrt: k._sqrt,
    np.exp: k._exp,
    np.log: k._log,
    np.conjugate: lambda value: value,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
}
EXTREMES = (np.maximum, np.minimum)


class WindowValues(np.ndarray[Any, Any]):
    """Symbolic values as an array of objects.

    NumPy computes with such arrays element by element, by the operators of their objects, so sums, means, products with weights and
    slices are recorded. Extremes and sorts compare, which kernel values cannot; those are implemented here.
    """

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [_plain(each) for each in inputs]
        if method == "reduce" and ufunc in EXTREMES:
            result = _reduced(OF_VALUES[ufunc], plain[0], options.get("axis", 0))
        elif ufunc is np.matmul:
            result = np.add.reduce(np.multiply(*plain))
        elif ufunc in OF_VALUES:
            result = np.frompyfunc(OF_VALUES[ufunc], ufunc.nin, 1)(*plain)
        else:
            result = getattr(ufunc, method)(*plain, **{n: v for n, v in options.items() if n != "out"})
        return result.view(WindowValues) if isinstance(result, np.ndarray) else result

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function is np.median and len(args) == 1 and _of_all(args[0].ndim, **options):
            return _median(list(_plain(args[0]).ravel()))
        if function is np.where and len(args) == 3:
            return np.frompyfunc(k._where, 3, 1)(*map(_plain, args)).view(WindowValues)
        return super().__array_function__(function, types, args, options)

    def std(self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, **options: Any) -> Any:
        result = self.var(axis=axis, ddof=ddof, **options)
        return np.sqrt(result) if isinstance(result, np.ndarray) else k._sqrt(result)


def of_values(ufunc: Any, values: Sequence[Any]) -> Any:
    """Apply a NumPy ufunc to symbolic values and numbers."""
    return OF_VALUES[ufunc](*values) if ufunc in OF_VALUES else ufunc(*map(_plain, values))


def window_values(values: Sequence[Any]) -> WindowValues:
    """Return an array of symbolic values."""
    result = np.empty(len(values), object)
    for n, value in enumerate(values):  # `np.array` would look into the values
        result[n] = value
    return result.view(WindowValues)


def _plain(arg: Any) -> Any:
    """Return an array of objects of the base class, which NumPy computes with directly."""
    if isinstance(arg, (np.ndarray, int, float, list, tuple)):
        return np.asarray(arg).view(np.ndarray)
    result = np.empty((), object)
    result[()] = arg
    return result


def _reduced(operation: Callable[..., Any], values: Any, axis: Any) -> Any:
    """Reduce the values along some axes."""
    axes = range(values.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    for each in sorted((a % values.ndim for a in axes), reverse=True):
        values = np.frompyfunc(operation, 2, 1).reduce(values, axis=each)
    return values


def _of_all(count: int, axis: Any = None) -> bool:
    axes = range(count) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return {a % count for a in axes} == set(range(count))


def _median(values: list[Any]) -> Any:
    middle = len(values) // 2
    if len(values) < 2:
        return values[0]
    return (
        k._select(values, middle)
        if len(values) % 2
        else (k._select(values, middle - 1) + k._select(values, middle)) / 2
    )
