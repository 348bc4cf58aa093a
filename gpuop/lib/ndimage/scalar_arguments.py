"""Numeric arguments of SciPy's functions: integers, real numbers, arrays and lists, converted to hashable constants."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuop.base.errors import ArgumentError, UnsupportedError, described
from gpuop.dsl.fields.from_arrays import NUMERIC, is_array
from gpuop.dsl.fields.from_arrays import Array as Numbers
from gpuop.dsl.operators.arguments import MOST_NUMBERS


def whole(value: Any, name: str) -> int:
    """Return an integer argument.

    Raises:
        UnsupportedError: it is not an integer; a TypeError.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise UnsupportedError(f"`{name}` is an integer, not {_shown(value)}") from None


def real(value: Any, name: str) -> float:
    """Return a real number; strings, which `float` would parse, are refused.

    Raises:
        UnsupportedError: it is not a real number; a TypeError.
    """
    try:
        if not _is_text(value):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise UnsupportedError(f"`{name}` is a number, not {_shown(value)}")


def numbers_of(values: Any, name: str) -> Numbers:
    """Return the numbers of an argument, in rows of one length.

    Raises:
        ArgumentError: rows differ in length, or values are not numbers; a ValueError.
    """
    try:
        numbers = np.asarray(values)
        return numbers if numbers.dtype.kind in NUMERIC else numbers.astype(np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"`{name}` is a number, or numbers in rows of one length") from None


def _is_text(value: Any) -> bool:
    """Return whether a value is a string, or an array of strings."""
    return isinstance(value, (str, bytes)) or (isinstance(value, np.ndarray) and value.dtype.kind in "SU")


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, (str, bytes, int, float, complex)) else described(value)


def frozen(value: Any) -> Any:
    """Return an argument as a hashable constant: arrays and lists become tuples."""
    if isinstance(value, (np.ndarray, np.generic)):
        return frozen(np.asarray(value).tolist())  # as in SciPy, masked arrays give all numbers
    if is_array(value):
        return frozen(np.asarray(value))
    if isinstance(value, dict):
        return tuple((name, frozen(item)) for name, item in value.items())
    return tuple(map(frozen, value)) if isinstance(value, (list, tuple)) else value


@dataclass(frozen=True)
class ManyNumbers:
    """A large array as a hashable constant that NumPy converts to an array; its numbers are not compiled in."""

    values: bytes
    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, value: Any) -> Any:
        """Wrap an array or list so long that a few of them exceed the limit of constants; return others unchanged."""
        array = _array_of(value)
        if array is None or array.size <= MOST_NUMBERS // 4:
            return value
        return cls(array.tobytes(), array.dtype.str, array.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Numbers:
        return np.frombuffer(self.values, self.dtype).reshape(self.shape).astype(dtype or self.dtype)


def _array_of(value: Any) -> Numbers | None:
    """Return the numbers of an array or a list; None for other values, non-numbers, or ragged lists."""
    if not is_array(value) and not _begins_with_number(value):
        return None
    try:
        array = np.asarray(value)
        array = np.array(array.tolist()) if array.dtype.hasobject else array
    except ValueError:
        return None
    return array if array.dtype.kind in NUMERIC else None


def _begins_with_number(value: Any) -> bool:
    """Return whether a value is a list, or nested lists, whose first member is a number: cheaper than converting a long one."""
    first = value
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    return first is not value and isinstance(first, (bool, int, float, complex, np.generic))
