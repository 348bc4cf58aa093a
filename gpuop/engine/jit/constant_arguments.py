"""Arguments of library functions besides fields and arrays, as hashable constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuop.base.records import dataclass
from gpuop.dsl.fields.from_arrays import NUMERIC, is_array
from gpuop.dsl.fields.from_arrays import Array as Numbers
from gpuop.dsl.operators.arguments import MOST_NUMBERS


def constant(value: Any) -> Any:
    """Return an argument as a hashable constant, whose numbers are not compiled in where they are many."""
    return frozen(ManyNumbers.of(value))


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
