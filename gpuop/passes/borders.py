"""Border rules as integer arithmetic, only as much of it as the range of a coordinate needs."""

from __future__ import annotations

from dataclasses import dataclass

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
        """Whether the coordinate is known to be at most `reach` steps outside, so that one correction suffices."""
        return self.low is not None and self.high is not None and self.low >= -reach and self.high < self.n + reach


def inside(b: Builder, c: Coordinate) -> Expr | None:
    """Whether the coordinate lies in the field; None when it always does."""
    test = b.apply("ge", c.at, 0) if c.below else None
    if c.above:
        high = b.apply("lt", c.at, c.extent)
        test = high if test is None else b.apply("and", test, high)
    return test


def clamp(b: Builder, c: Coordinate) -> Expr:
    at = b.apply("max", c.at, 0) if c.below else c.at
    return b.apply("min", at, b.apply("sub", c.extent, 1)) if c.above else at


def wrap(b: Builder, c: Coordinate) -> Expr:
    """numpy.pad's "wrap": the field repeats."""
    if not c.near(c.n):
        return _floor_mod(b, c.at, c.extent)
    at = c.at
    if c.above:
        at = b.apply("choose", b.apply("ge", c.at, c.extent), b.apply("sub", c.at, c.extent), at)
    return b.apply("choose", b.apply("lt", c.at, 0), b.apply("add", c.at, c.extent), at) if c.below else at


def symmetric(b: Builder, c: Coordinate) -> Expr:
    """numpy.pad's "symmetric": mirrored, the edge repeated."""
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
    """numpy.pad's "reflect": mirrored about the edge, which is not repeated."""
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


def _floor_mod(b: Builder, x: Expr, n: Expr) -> Expr:
    m = b.apply("mod", x, n)
    return b.apply("choose", b.apply("lt", m, 0), b.apply("add", m, n), m)


RULES = {"clamp": clamp, "fill": clamp, "wrap": wrap, "symmetric": symmetric, "reflect": reflect}


def place(b: Builder, c: Coordinate, border: str) -> Expr:
    """The coordinate to access: inside the field, unless the user promised that it is."""
    if border == "unchecked" or not (c.below or c.above):
        return c.at
    return RULES[border](b, c)
