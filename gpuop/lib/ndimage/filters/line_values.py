"""Symbolic values of a line for recording: elements at an offset from each point, as functions treat all points alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from gpuop.lib.ndimage.filters.neighbours import MOST
from gpuop.lib.ndimage.filters.window_values import of_values

Steps = Callable[[int], Any]


class LineValues(NDArrayOperatorsMixin):
    """A symbolic line, or a part of one: ufuncs act on elements, and slices shift them.

    Other uses raise an error, and then the function is called with arrays.

    Args:
        count: number of values.
        at: function from an offset to the value at that offset from the result's place.
    """

    def __init__(self, count: int, at: Steps) -> None:
        self.shape, self.at = (count,), at

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, part: Any) -> LineValues:
        first, stop, step = _range(part, len(self))
        if step != 1:
            raise TypeError("a part of a recorded line has its values one after the other")
        at = self.at
        return LineValues(max(stop - first, 0), lambda steps: at(steps + first))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        (into,) = options.pop("out", (None,))
        if method != "__call__" or options:
            return NotImplemented
        made = _elementwise(lambda *values: of_values(ufunc, values), inputs)
        if into is None:
            return made
        into[...] = made
        return into

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function is np.copyto and not options:
            into, made = args
            into[...] = made
            return None
        if function in (np.convolve, np.correlate) and (args[2:] or tuple(options.values())) == ("valid",):
            return _weighted(args[0], np.asarray(args[1], np.float64)[:: -1 if function is np.convolve else 1])
        return NotImplemented


class ResultLine(LineValues):
    """The line that a function writes its result to."""

    def __init__(self, count: int) -> None:
        super().__init__(count, lambda steps: 0.0)

    def __getitem__(self, part: Any) -> LineValues:
        self._check(part)
        return self

    def __setitem__(self, part: Any, made: Any) -> None:
        self._check(part)
        self.at = _elementwise(lambda value, _: value, (made, self)).at

    def _check(self, part: Any) -> None:
        if _range(part, len(self)) != (0, len(self), 1):
            raise TypeError("a recorded result is written as a whole")


def _range(part: Any, count: int) -> tuple[int, int, int]:
    if part is Ellipsis:
        return 0, count, 1
    if not isinstance(part, slice):
        raise TypeError("a recorded line has no values that are asked for by number")
    return part.indices(count)


def _elementwise(function: Callable[..., Any], given: tuple[Any, ...]) -> LineValues:
    """Apply a function to the elements of lines of one length, and to numbers."""
    lengths = {len(line) for line in given if isinstance(line, LineValues)}
    others = [number for number in given if not isinstance(number, LineValues)]
    if len(lengths) != 1 or any(np.ndim(number) for number in others):
        raise TypeError("recorded lines are computed with beside those of one length, and numbers")
    steps = [line.at if isinstance(line, LineValues) else _same(line) for line in given]
    return LineValues(lengths.pop(), lambda n: function(*(at(n) for at in steps)))


def _same(number: Any) -> Steps:
    return lambda steps: number


def _weighted(line: Any, weights: np.ndarray[Any, Any]) -> LineValues:
    """Return the weighted sums of neighbouring values."""
    if not isinstance(line, LineValues) or weights.ndim != 1 or not 0 < len(weights) <= min(MOST, len(line)):
        raise TypeError("a recorded line is weighted by a few numbers")
    numbers, count = weights.tolist(), len(line) - len(weights) + 1
    return LineValues(count, lambda n: sum(line.at(n + m) * w for m, w in enumerate(numbers)))
