"""Axis lengths: positions are ints, and so are their sums with borders, windows and groups."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from gpuop.base.errors import Loc, SemanticError
from gpuop.ir.types import MOST_GRID, FieldType

MOST_PLACES = 2**31 - 1  # points that an int can number; beyond that, linear indices are longs
MOST_COUNTED = 2**31 - 2**20  # threads; the rest is for the tail threads of the last group
LONGEST_AXIS = (
    2**30 - 2**20
)  # borders mirror at twice as much, windows and shifts lie as far outside, and all of these are ints
WAYS = (
    "reshape it to two axes, as `a.reshape(rows, -1)` does for arrays, or let `gp.stream` compute it in chunks"
    " (positions in kernels are 32-bit integers)"
)
_most: ContextVar[int] = ContextVar("most", default=LONGEST_AXIS)


def most_points() -> int:
    """Greatest number of points of an axis."""
    return _most.get()


@contextmanager
def in_windows(shapes: Sequence[Sequence[int]]) -> Iterator[None]:
    """Fields may be as long as arrays of these shapes: kernels are made for windows of them, and never for all of it."""
    longest = max((max(*shape, math.prod(shape[:-2])) for shape in shapes if shape), default=0)
    if longest <= LONGEST_AXIS:
        yield
        return
    token = _most.set(longest)
    try:
        yield
    except SemanticError as error:
        raise SemanticError(f"{error.message}; {_in_windows(longest)}", error.loc) from error
    finally:
        _most.reset(token)


def check_position(operator: str, extent: int, loc: Loc | None) -> None:
    """Refuse a position along an axis that ints do not count, which windows have too.

    Raises:
        SemanticError: says whose.
    """
    if extent > LONGEST_AXIS:
        raise SemanticError(f"operator `{operator}` computes with a position; {_in_windows(extent)}", loc)


def _in_windows(extent: int) -> str:
    return (
        f"an axis has {extent} points, more than {LONGEST_AXIS} (positions in kernels are 32-bit integers): windows and chunks"
        " of it are computed where nothing depends on the position"
    )


def check_axes(kind: FieldType) -> None:
    """Refuse a field with an axis that ints do not count.

    Raises:
        SemanticError: says which one.
    """
    if kind.longest > LONGEST_AXIS and kind.longest > _most.get():
        raise SemanticError(_too_long(kind))


def _too_long(kind: FieldType) -> str:
    for axis, extent in enumerate(kind.array_shape):
        if extent > LONGEST_AXIS:
            return f"axis {axis} of a {kind} field has {extent} points, more than {LONGEST_AXIS}: {WAYS}"
    grid, tensor = len(kind.field_shape), kind.planes
    together = f"more than {LONGEST_AXIS} together: {WAYS}"
    if kind.folded.field_shape and kind.folded.field_shape[0] > LONGEST_AXIS:
        return (
            f"the first {grid - MOST_GRID + 1} axes of a {kind} field are one axis in kernels, of "
            f"{kind.folded.field_shape[0]} points, {together}"
        )
    if tensor > LONGEST_AXIS:
        return f"the tensors of a {kind} field have {tensor} elements, {together}"
    return f"the layers of a {kind} field and the elements of its tensors are one axis in kernels, of {kind.longest}, {together}"
