"""`with _window(weights) as (offset, weight):`, a loop over an array of weights around each point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.dsl.builtins.indices import _ravel
from gpuop.dsl.builtins.loops import _for
from gpuop.dsl.builtins.shared_memory import MANY_WEIGHTS, _constantArray, constants_of
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.dsl.recorder.value import Value, apply
from gpuop.ir.types import is_integer

MOST_WRITTEN_OUT = 256  # most numbers of a window whose loop is unrolled
MOST_DIMENSIONS = 3  # limit of a table


class _window(_for):
    """`with _window(weights) as (offset, weight):` records its block for every element of a constant array, as `_for` does.

    `offset` is how far the element lies from the thread's own point, as `_readTensor(f, offset=offset)` takes it, and `weight` its
    number. Up to 256 elements are written out, with their numbers in the text; of more there is a table in constant memory.

    Args:
        weights: a NumPy array of any dimensions, or nested lists, known in Python: an argument of the operator, say.
        centre: the place in the array that lies at the thread's own point, by default n // 2 along each dimension.
        unroll: as of `_for`, if it is to be otherwise.
    """

    word = "_window"

    def __init__(self, weights: Any, *, centre: Any = None, unroll: Any = None) -> None:
        if isinstance(weights, FieldLike):
            raise SemanticError(
                "`_window` takes numbers that are known in Python, not a Field; loop over one by `with _for(w.field_shape) as "
                f"place:`, and read `_readTensor(w, *place)`{MANY_WEIGHTS}"
            )
        numbers = constants_of(weights)
        self.shape = numbers.shape
        self.centre = _centre(self.shape, centre)
        self.table = _constantArray(numbers if numbers.ndim <= MOST_DIMENSIONS else numbers.ravel())
        super().__init__(self.shape, unroll=numbers.size <= MOST_WRITTEN_OUT if unroll is None else unroll)

    def opens(self) -> tuple[tuple[Value, ...], Value]:
        place = super().opens()
        index = place if len(place) <= MOST_DIMENSIONS else _ravel(place, self.shape)
        offset = tuple(apply("sub", at, middle) for at, middle in zip(place, self.centre, strict=True))
        return offset, self.table[index]

    def _names(self) -> Sequence[str]:
        return ("",) * len(self.axes)


def _centre(shape: tuple[int, ...], given: Any) -> tuple[int, ...]:
    if given is None:
        return tuple(n // 2 for n in shape)
    centre = tuple(given) if isinstance(given, (tuple, list, np.ndarray)) else (given,)
    if len(centre) != len(shape) or not all(is_integer(n) for n in centre):
        raise SemanticError(f"`centre=` is an integer for each of {len(shape)} dimensions, not {given!r}")
    return tuple(int(n) for n in centre)
