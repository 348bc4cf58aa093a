"""Border rules of reads, a row each. Builtins, messages, docs, passes, the interpreter and tests read this table.

A rule is said twice: as integer arithmetic, only as much of it as the range of a coordinate needs, and in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.base.records import dataclass
from gpuop.ir.build import Builder
from gpuop.ir.nodes import Expr


@dataclass(frozen=True)
class Coordinate:
    """A coordinate along an axis of a field: its value, the extent (by name and as a number), and its range if known."""

    at: Expr
    extent: Expr
    n: int
    low: int | None
    high: int | None

    @property
    def below(self) -> bool:
        return self.low is None or self.low < 0

    @property
    def above(self) -> bool:
        return self.high is None or self.high >= self.n

    def near(self, reach: int) -> bool:
        """Return whether the coordinate is at most `reach` steps outside, so that one correction suffices."""
        return self.low is not None and self.high is not None and self.low >= -reach and self.high < self.n + reach


@dataclass(frozen=True)
class Border:
    """A rule for reads at coordinates outside of the field.

    Attributes:
        word: the name for users.
        doc: the value outside, in the words of the guide.
        index: the coordinate to read at instead; used only for coordinates that may lie outside.
        numpy: the same for an array of coordinates along an axis of this length; the result is always inside.
        elsewhere: its names in NumPy, SciPy, OpenCV and scikit-image, except "reflect", which means two rules there.
        hint: advice besides the word for users who come from there.
        filled: the value outside is the number `Read.fill`, not that at the coordinate.
    """

    word: str
    doc: str
    index: Callable[[Builder, Coordinate], Expr]
    numpy: Callable[[NDArray[Any], int], NDArray[Any]]
    elsewhere: tuple[str, ...] = ()
    hint: str = ""
    filled: bool = False

    @property
    def name(self) -> str:
        """The value of `Read.border`."""
        return "fill" if self.filled else self.word


# --- index arithmetic ---------------------------------------------------------------------------------------------------


def inside(b: Builder, c: Coordinate) -> Expr | None:
    """The condition that the coordinate lies in the field; None if it always does."""
    test = b.apply("ge", c.at, 0) if c.below else None
    if c.above:
        high = b.apply("lt", c.at, c.extent)
        test = high if test is None else b.apply("and", test, high)
    return test


def place(b: Builder, c: Coordinate, border: str) -> Expr:
    """The coordinate to access: inside the field, unless the user promised that it is."""
    return BORDERS[border].index(b, c) if c.below or c.above else c.at


def clamp(b: Builder, c: Coordinate) -> Expr:
    at = b.apply("max", c.at, 0) if c.below else c.at
    return b.apply("min", at, b.apply("sub", c.extent, 1)) if c.above else at


def wrap(b: Builder, c: Coordinate) -> Expr:
    if not c.near(c.n):
        return _floor_mod(b, c.at, c.extent)
    at = c.at
    if c.above:
        at = b.apply("choose", b.apply("ge", c.at, c.extent), b.apply("sub", c.at, c.extent), at)
    return b.apply("choose", b.apply("lt", c.at, 0), b.apply("add", c.at, c.extent), at) if c.below else at


def symmetric(b: Builder, c: Coordinate) -> Expr:
    if not c.near(c.n):
        period = b.apply("mul", c.extent, 2)
        m = _floor_mod(b, c.at, period)
        return b.apply("choose", b.apply("ge", m, c.extent), b.apply("sub", b.apply("sub", period, 1), m), m)
    at = c.at
    if c.above:
        last = b.apply("sub", b.apply("mul", c.extent, 2), 1)
        at = b.apply("choose", b.apply("ge", c.at, c.extent), b.apply("sub", last, c.at), at)
    return b.apply("choose", b.apply("lt", c.at, 0), b.apply("sub", -1, c.at), at) if c.below else at


def reflect(b: Builder, c: Coordinate) -> Expr:
    if c.n == 1:
        return b.apply("mul", c.at, 0)
    if not c.near(c.n - 1):
        period = b.apply("sub", b.apply("mul", c.extent, 2), 2)
        m = _floor_mod(b, c.at, period)
        return b.apply("choose", b.apply("ge", m, c.extent), b.apply("sub", period, m), m)
    at = c.at
    if c.above:
        last = b.apply("sub", b.apply("mul", c.extent, 2), 2)
        at = b.apply("choose", b.apply("ge", c.at, c.extent), b.apply("sub", last, c.at), at)
    return b.apply("abs", at) if c.below else at


def unchecked(b: Builder, c: Coordinate) -> Expr:
    return c.at


def _floor_mod(b: Builder, x: Expr, n: Expr) -> Expr:
    m = b.apply("mod", x, n)
    return b.apply("choose", b.apply("lt", m, 0), b.apply("add", m, n), m)


# --- in NumPy -----------------------------------------------------------------------------------------------------------


def clamped(at: NDArray[Any], n: int) -> NDArray[Any]:
    return np.asarray(np.clip(at, 0, n - 1))


def mirrored(at: NDArray[Any], n: int) -> NDArray[Any]:
    """Mirrored between the points outside and the edge, which is met twice."""
    return np.asarray(np.minimum(at % (2 * n), (-1 - at) % (2 * n)))


def reflected(at: NDArray[Any], n: int) -> NDArray[Any]:
    """Mirrored at the edge, which is met once."""
    period = max(2 * n - 2, 1)
    return np.asarray(np.minimum(at % period, -at % period))


# --- the table ----------------------------------------------------------------------------------------------------------

ROWS = (
    Border("clamp", "the nearest point", clamp, clamped, ("nearest", "edge", "replicate", "border")),
    Border("zero", "0; a number instead of a name: that number", clamp, clamped, ("constant",), " or a number", filled=True),
    Border("wrap", "the field again, from its other end", wrap, np.remainder, ("grid-wrap", "circular", "periodic", "repeat")),
    Border(
        "reflect", "the field mirrored, its edge not repeated", reflect, reflected,
        ("mirror", "reflect101", "reflect_101", "reflect-101"), " (the edge is not repeated)",
    ),
    Border(
        "symmetric", "the field mirrored, its edge repeated", symmetric, mirrored,
        ("grid-mirror", "half-symmetric"), " (the edge is repeated)",
    ),
    Border("unchecked", "nothing that can be relied on: coordinates are promised to lie inside", unchecked, clamped, ("none",)),
)  # fmt: skip
WORDS = {row.word: row for row in ROWS}
BORDERS = {row.name: row for row in ROWS}
