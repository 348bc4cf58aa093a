"""Values of random programs: arrays of every dtype with the numbers that go wrong, and what is expected of results."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

Rng = np.random.Generator
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "float32", "float64")
DTYPES = ("bool", *INTEGERS, *FLOATS, "unorm8")
COMMON = ("int32", "float32", "float32", "uint8", "bool", "float64", "int64", "uint32", "unorm8")
EXTENTS = (1, 1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 31)


class Rejected(Exception):
    """These operands have no defined result: the generator takes others."""


@dataclass(frozen=True, eq=False)
class Val:
    """The values of a field.

    Attributes:
        array: as `.numpy()` gives it; uint8 of unorm8.
        order: how many of its axes are the tensor's.
        ends: it may be looked at and not used: its last bits, or the signs of its zeros, are nobody's promise.
        exact: instead of the array, of what is within a bound of ULPs (longdouble).
        ulps: that bound.
        slack: instead of ULPs, an absolute bound at each place.
    """

    array: np.ndarray
    order: int = 0
    unorm: bool = False
    ends: bool = False
    exact: np.ndarray | None = None
    ulps: float = 0.0
    slack: np.ndarray | None = None

    @property
    def dtype(self) -> str:
        return "unorm8" if self.unorm else self.array.dtype.name

    @property
    def grid(self) -> tuple[int, ...]:
        return self.array.shape[: self.array.ndim - self.order]

    @property
    def tensor(self) -> tuple[int, ...]:
        return self.array.shape[self.array.ndim - self.order :]

    @property
    def type(self) -> tuple[Any, ...]:
        return self.grid, self.tensor, self.dtype

    @property
    def number(self) -> np.ndarray:
        """Operands of arithmetic."""
        return self.array.astype(np.float32) / np.float32(255) if self.unorm else self.array


def special(dtype: str) -> list[Any]:
    """The numbers that go wrong."""
    if dtype in ("bool", "unorm8"):
        return [False, True] if dtype == "bool" else [0, 1, 127, 128, 254, 255]
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        low, high = int(info.min), int(info.max)
        return [0, 1, 2, 3, 7, high, high - 1, high // 2, high // 2 + 1, low, low + 1, *([-1, -2, -7] if low else [])]
    info = np.finfo(dtype)
    return [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, math.inf, -math.inf, math.nan, float(info.max), float(info.tiny)]


def numbers(rng: Rng, dtype: str, count: int, wild: float = 0.3) -> tuple[Any, ...]:
    """Python numbers that the dtype holds: small ones, and with a probability remarkable ones."""
    results: list[Any] = []
    for _ in range(count):
        if rng.random() < wild:
            results.append(special(dtype)[rng.integers(len(special(dtype)))])
        elif dtype == "bool":
            results.append(bool(rng.integers(2)))
        elif dtype in FLOATS:
            results.append(float(rng.integers(-64, 65)) / 8)
        else:
            low = 0 if dtype.startswith("u") else -40
            results.append(int(rng.integers(low, 256 if dtype == "unorm8" else 41)))
    return tuple(results)


def array_of(values: tuple[Any, ...], dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """The values, again and again."""
    return np.resize(np.array(values, "uint8" if dtype == "unorm8" else dtype), shape)


def array_text(values: tuple[Any, ...], dtype: str, shape: tuple[int, ...]) -> str:
    return (
        f'np.resize(np.array([{", ".join(map(repr, values))}], "{"uint8" if dtype == "unorm8" else dtype}"), {shape})'
    )


def a_grid(rng: Rng, most: int = 150, dimensions: tuple[int, ...] = (0, 1, 1, 2, 2, 3)) -> tuple[int, ...]:
    """Ragged extents of so many points at most; now and then none, or enough for groups and lanes."""
    count = int(rng.choice(dimensions))
    if count == 1 and rng.random() < 0.2:
        return (int(rng.choice((64, 101, 128, 257, 1021, 1024))),)
    if count and rng.random() < 0.04:
        return tuple(int(n) for n in rng.permutation([0, 3, 5][:count]))
    while True:
        grid = tuple(int(n) for n in rng.choice(EXTENTS, count))
        if math.prod(grid) <= most:
            return grid


def a_tensor(rng: Rng) -> tuple[int, ...]:
    return ((), (), (), (), (2,), (3,), (4,), (1,), (5,), (7,), (2, 2), (2, 3), (3, 3), (1, 4))[rng.integers(14)]


# --- comparison -------------------------------------------------------------------------------------------------------


def disagreement(actual: Any, want: Val) -> tuple[str, np.ndarray | None]:
    """The fault in a result, and its place; an empty text if there is none."""
    actual = np.asarray(actual)
    if actual.shape != want.array.shape or actual.dtype != want.array.dtype:
        return f"{actual.dtype}{actual.shape}, not {want.array.dtype}{want.array.shape}", None
    with np.errstate(all="ignore"):
        wrong = ~_same(actual, want)
    return ("values" if wrong.any() else ""), wrong


def _same(actual: np.ndarray, want: Val) -> np.ndarray:
    array = want.array
    if array.dtype.kind != "f":
        return np.asarray(actual == array)
    nan = np.isnan(actual) & np.isnan(array)
    if want.slack is not None:
        exact = array if want.exact is None else want.exact
        near = np.abs(actual.astype(np.longdouble) - exact) <= want.slack
        return nan | near | (actual == array)
    if want.exact is not None:
        return nan | (ulps(actual, want.exact) <= want.ulps) | ((actual == array) & ~np.isfinite(array))
    equal = actual == array
    return nan | (equal if want.ends else equal & (np.signbit(actual) == np.signbit(array)))


def ulps(actual: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The distance of values, in units of the last place of the exact ones; infinity stands for what follows the greatest."""
    info = np.finfo(actual.dtype)
    _, exponent = np.frexp(np.maximum(np.abs(exact), np.longdouble(info.tiny)))
    unit = np.ldexp(np.longdouble(1), exponent - 1 - info.nmant)
    top = np.ldexp(np.longdouble(1), info.maxexp)
    bounded = np.where(np.isinf(actual), np.copysign(top, actual), actual.astype(np.longdouble))
    return np.asarray(np.abs(bounded - exact) / unit)
