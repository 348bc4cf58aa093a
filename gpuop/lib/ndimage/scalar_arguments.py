"""Numbers that arguments of SciPy's functions are: integers, real ones, arrays and lists of them; as constants to be hashed."""

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
    """An integer argument.

    Raises:
        UnsupportedError: it is none; a TypeError.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise UnsupportedError(f"`{name}` is an integer, not {_shown(value)}") from None


def real(value: Any, name: str) -> float:
    """A real number as argument: no text of one, which Python would take.

    Raises:
        UnsupportedError: it is none; a TypeError.
    """
    try:
        if not _is_text(value):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise UnsupportedError(f"`{name}` is a number, not {_shown(value)}")


def numbers_of(values: Any, name: str) -> Numbers:
    """The numbers of an argument, which stand in rows of one length.

    Raises:
        ArgumentError: they do not, or are none; a ValueError.
    """
    try:
        numbers = np.asarray(values)
        return numbers if numbers.dtype.kind in NUMERIC else numbers.astype(np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"`{name}` is a number, or numbers in rows of one length") from None


def _is_text(value: Any) -> bool:
    """Whether it is a text, or an array of such."""
    return isinstance(value, (str, bytes)) or (isinstance(value, np.ndarray) and value.dtype.kind in "SU")


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, (str, bytes, int, float, complex)) else described(value)


def frozen(value: Any) -> Any:
    """An argument as a constant that can be hashed: arrays and lists as tuples."""
    if isinstance(value, (np.ndarray, np.generic)):
        return frozen(np.asarray(value).tolist())  # of masked arrays all numbers, as in SciPy
    if is_array(value):
        return frozen(np.asarray(value))
    if isinstance(value, dict):
        return tuple((name, frozen(item)) for name, item in value.items())
    return tuple(map(frozen, value)) if isinstance(value, (list, tuple)) else value


@dataclass(frozen=True)
class ManyNumbers:
    """A large array as a constant that can be hashed, which NumPy makes an array of: no list of numbers that are compiled in."""

    values: bytes
    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, value: Any) -> Any:
        """An array, or a list, of so many numbers that a few such have more than constants do; others as they are."""
        array = _array_of(value)
        if array is None or array.size <= MOST_NUMBERS // 4:
            return value
        return cls(array.tobytes(), array.dtype.str, array.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Numbers:
        return np.frombuffer(self.values, self.dtype).reshape(self.shape).astype(dtype or self.dtype)


def _array_of(value: Any) -> Numbers | None:
    """The numbers of an array or a list; None of what is neither, or has no numbers, or lists of several lengths."""
    if not is_array(value) and not _begins_with_number(value):
        return None
    try:
        array = np.asarray(value)
        array = np.array(array.tolist()) if array.dtype.hasobject else array
    except ValueError:
        return None
    return array if array.dtype.kind in NUMERIC else None


def _begins_with_number(value: Any) -> bool:
    """Whether it is a list, or lists, whose first member is a number: cheaper than an array of what may be long."""
    first = value
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    return first is not value and isinstance(first, (bool, int, float, complex, np.generic))
