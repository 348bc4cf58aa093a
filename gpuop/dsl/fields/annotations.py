"""Argument types of library functions, for type checkers and editors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, SupportsComplex, SupportsFloat, SupportsIndex, TypeAlias

import numpy.typing as npt


class HasArray(Protocol):
    """NumPy arrays and scalars, host arrays of other libraries, and Fields."""

    def __array__(self) -> Any:
        """A NumPy array of the values."""
        ...


class HasDLPack(Protocol):
    """Arrays of other libraries, in the memory of any device."""

    def __dlpack__(self) -> Any:
        """The capsule of DLPack."""
        ...


ArrayLike: TypeAlias = HasArray | HasDLPack | list[Any] | tuple[Any, ...] | int | float | complex
FieldOrArray: TypeAlias = ArrayLike  # a Field has `__array__`; the result is a Field, or an array of the same library
Axis: TypeAlias = SupportsIndex | str  # an axis of `array_shape`: a number, or the name of a dimension
Axes: TypeAlias = Axis | Sequence[Axis] | None  # None is all of them
Whole: TypeAlias = SupportsIndex
Wholes: TypeAlias = Whole | Sequence[Whole]  # one for all axes, or one for each
Number: TypeAlias = SupportsFloat | SupportsComplex | SupportsIndex
Numbers: TypeAlias = Number | Sequence[Number]
Mode: TypeAlias = Literal[
    "reflect", "constant", "nearest", "mirror", "wrap", "grid-constant", "grid-mirror", "grid-wrap"
]
Modes: TypeAlias = Mode | Sequence[Mode]
DType: TypeAlias = npt.DTypeLike | None
Output: TypeAlias = npt.DTypeLike | HasArray | HasDLPack | None  # a dtype, or an array that the result goes into
