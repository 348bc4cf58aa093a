"""The guide's integer functions, of every integer type and vector length, against Python's integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop import dsl
from gpuop.dsl import *
from gpuop.dsl.builtins import functions as table

from .compare import all_same
from .samples import INTEGERS, samples

rng = np.random.default_rng(23)
ARITY = {e.name.lstrip("_"): e.arity for e in table.table()}
Exact = Callable[..., int]


class Kind:
    """An integer type's bounds, and how whole numbers are brought inside."""

    def __init__(self, dtype: str) -> None:
        info = np.iinfo(dtype)
        self.bits, self.low, self.high = info.bits, int(info.min), int(info.max)

    def wrap(self, n: int) -> int:
        return (n - self.low) % 2**self.bits + self.low

    def clip(self, n: int) -> int:
        return min(max(n, self.low), self.high)

    def digits(self, n: int) -> str:
        return format(n % 2**self.bits, f"0{self.bits}b")

    def rotate(self, n: int, by: int) -> int:
        digits, by = self.digits(n), by % self.bits
        return self.wrap(int(digits[by:] + digits[:by], 2))


OF_PAIRS: dict[str, Exact] = {
    "abs_diff": lambda kind, x, y: abs(x - y),
    "add_sat": lambda kind, x, y: kind.clip(x + y),
    "sub_sat": lambda kind, x, y: kind.clip(x - y),
    "hadd": lambda kind, x, y: (x + y) >> 1,
    "rhadd": lambda kind, x, y: (x + y + 1) >> 1,
    "max": lambda kind, x, y: max(x, y),
    "min": lambda kind, x, y: min(x, y),
    "mul_hi": lambda kind, x, y: (x * y) >> kind.bits,
    "rotate": lambda kind, x, y: kind.rotate(x, y),
    "abs": lambda kind, x, y: abs(x),
}
OF_TRIPLES: dict[str, Exact] = {
    "clamp": lambda kind, x, low, high: min(max(x, low), high),
    "mad_hi": lambda kind, x, y, z: kind.wrap(((x * y) >> kind.bits) + z),
    "mad_sat": lambda kind, x, y, z: kind.clip(x * y + z),
    "clz": lambda kind, x, y, z: kind.bits - len(kind.digits(x).lstrip("0")),
    "popcount": lambda kind, x, y, z: kind.digits(x).count("1"),
}
OF_24_BITS: dict[str, Exact] = {
    "mul24": lambda kind, x, y, z: kind.wrap(x * y),
    "mad24": lambda kind, x, y, z: kind.wrap(x * y + z),
}


def unsigned(dtype: str) -> str:
    return f"u{dtype.lstrip('u')}"


def exactly(name: str, exact: Exact, dtype: str, *columns: Any) -> Any:
    rows = zip(*(c.tolist() for c in columns), strict=True)
    return np.array([exact(Kind(dtype), *row) for row in rows], unsigned(dtype) if "abs" in name else dtype)


@cache
def cases(arity: int, dtype: str) -> tuple[list[Any], dict[str, Any]]:
    """Every pair or triple of corners, and what the functions give."""
    corners = np.unique(samples(dtype)).tolist()
    columns = [np.array(c, dtype) for c in zip(*itertools.product(corners, repeat=arity), strict=True)]
    functions = OF_PAIRS if arity == 2 else OF_TRIPLES | (OF_24_BITS if dtype.endswith("int32") else {})
    return columns, {name: exactly(name, exact, dtype, *columns) for name, exact in functions.items()}


def calls(names: Any) -> Callable[..., Any]:
    """A body that calls functions of the first of its inputs."""

    def body(*fields):
        values = [_readTensor(f) for f in fields]
        return tuple(getattr(dsl, f"_{name}")(*values[: ARITY[name]]) for name in names)

    return body


def test_no_function_is_forgotten() -> None:
    group = {e.name.lstrip("_") for e in table.table() if e.group == "integer"}
    assert group | {"max", "min", "clamp"} == {*OF_PAIRS, *OF_TRIPLES, *OF_24_BITS}


@pytest.mark.parametrize("dtype", INTEGERS)
def test_functions(device: str, dtype: str) -> None:
    """Of scalars, all corners; of vectors, whose length differs from type to type, some of them."""
    for arity, lanes in itertools.product((2, 3), (1, 2 + INTEGERS.index(dtype) % 3)):
        columns, expected = cases(arity, dtype)
        every = np.arange(len(columns[0]))
        chosen = every if lanes == 1 else rng.permutation(every)[: 40 * lanes].reshape(-1, lanes)
        fields = [gp.Field(c[chosen], chosen.ndim - 1) for c in columns]
        all_same(gp.operator(calls(expected))(*fields), [e[chosen] for e in expected.values()], list(expected))


def test_types_convert_to_the_common_one(device: str) -> None:
    """By rank, without promotion to int; numbers and scalars take the others' type; bools are ints."""
    small, wide = np.array([-128, -1, 5], "i1"), np.array([7, 2**32 - 1, 2**31], "u4")
    vector = np.array([[1, -2], [3, -32768], [32767, 0]], "i2")

    def body(f, g, h):
        x, y, v = map(_readTensor, (f, g, h))
        return (
            _hadd(x, y), _sub_sat(x, 100), _add_sat(v, x), _abs(v), _abs_diff(x, _convert_uchar(y)), _rotate(x, -1),
            _rotate(v, y), _abs(x > 0), _mad_sat(x, y, 1), _mul24(_convert_int(x), -3),
        )  # fmt: skip

    x, y, v, short = small.astype(object) % 2**32, wide.astype(object), vector.astype(object), Kind("int16")
    expected = (
        np.array((x + y) // 2, "u4"),
        np.array(np.maximum(small.astype(int) - 100, -128), "i1"),
        np.array(np.clip(v + small.astype(object)[:, None], -(2**15), 2**15 - 1), "i2"),
        np.array(abs(v), "u2"),
        np.array([abs(int(a) % 256 - b) for a, b in zip(small, (7, 255, 255), strict=True)], "u1"),
        np.array([Kind("int8").rotate(a, -1) for a in small.tolist()], "i1"),
        np.array([[short.rotate(c, n) for c in row] for row, n in zip(v.tolist(), y.tolist(), strict=True)], "i2"),
        np.array([0, 0, 1], "u4"),
        np.array(np.minimum(x * y + 1, 2**32 - 1), "u4"),
        np.array(small.astype(int) * -3, "i4"),
    )
    all_same(gp.operator(body)(*(gp.Field(a, a.ndim - 1) for a in (small, wide, vector))), expected)
