"""Numeric arguments of SciPy's functions: integers, real numbers, arrays and lists."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from gpuop.base.errors import ArgumentError, UnsupportedError, described
from gpuop.dsl.fields.from_arrays import NUMERIC
from gpuop.dsl.fields.from_arrays import Array as Numbers


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
