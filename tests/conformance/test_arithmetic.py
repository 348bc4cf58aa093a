"""Arithmetic of integers and of floating values, at all pairs of corners."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import all_same, same
from .samples import available, samples

rng = np.random.default_rng(17)


def truncated(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def in_python(a: Any, b: Any) -> list[Any]:
    """The operators on Python's integers, wrapped to the type."""
    bits = a.dtype.itemsize * 8

    def each(function: Any) -> Any:
        exact = [function(int(x), int(y)) % 2**bits for x, y in zip(a, b, strict=True)]
        return np.array(exact, f"u{bits // 8}").view(a.dtype)

    return [
        each(f)
        for f in (
            lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, truncated,
            lambda x, y: x - truncated(x, y) * y if y else 0, lambda x, y: x // y if y else 0, lambda x, y: -x, lambda x, y: ~x,
            lambda x, y: x & y, lambda x, y: x | y, lambda x, y: x ^ y, lambda x, y: abs(x),
            lambda x, y: x << y % bits, lambda x, y: x >> y % bits, lambda x, y: x**3, lambda x, y: min(x, y),
        )
    ]  # fmt: skip


def arithmetic(a, b):
    first = (a + b, a - b, a * b, a / b), (a % b, a // b, -a, ~a)
    return (
        *(_vector(*four) for four in first),
        _vector(a & b, a | b, a ^ b, abs(a)),
        _vector(a << b, a >> b, a**3, _min(a, b)),
    )


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_integer_arithmetic(device: str, bits: int) -> None:
    """All pairs of corners; division by zero gives 0 and harms nobody; INT_MIN / -1 stays what it is."""
    arrays, expected = [], []
    for letter in "iu":
        corners = samples(f"{letter}{bits // 8}"[0] and ("int" if letter == "i" else "uint") + str(bits))
        pairs = np.stack(np.meshgrid(corners, corners), -1).reshape(-1, 2)
        arrays += [np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])]
        result = in_python(*arrays[-2:])
        expected += [np.stack(result[k : k + 4], -1) for k in (0, 4, 8, 12)]

    def body(a, b, c, d):
        return *arithmetic(_readTensor(a), _readTensor(b)), *arithmetic(_readTensor(c), _readTensor(d))

    results = gp.operator(body)(*map(gp.Field, arrays))
    all_same(results, expected)


def test_constants_fold_as_devices_compute(device: str) -> None:
    """The same corners with constant operands, which the compiler computes."""
    corners = [np.int32(v) for v in (-(2**31), -7, -1, 0, 1, 7, 2**31 - 1)]
    pairs = [(a, b) for a in corners for b in corners]

    def body():
        for k, (a, b) in enumerate(pairs):
            x, y = _convert_int(a), _convert_int(b)
            for j, v in enumerate(
                (
                    x + y,
                    x - y,
                    x * y,
                    x / y,
                    x % y,
                    x // y,
                    -x,
                    ~x,
                    x & y,
                    x | y,
                    x ^ y,
                    abs(x),
                    x << y,
                    x >> y,
                    x**3,
                    _min(x, y),
                )
            ):
                _writeTensorElement(_out0, v, k, j)

    kind = gp.FieldType(len(pairs), 16, "int32")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        actual = gp.operator(outputs=kind, default=0)(lambda: _one_thread(body))().numpy()
    same(actual, np.stack(in_python(*np.array(pairs, np.int32).T), -1))


def _one_thread(body: Any) -> None:
    with _if(_column == 0):
        body()


def test_float_arithmetic(device: str) -> None:
    """+ - * / sqrt are correctly rounded, half's too; % is fmod, // rounds down; comparisons of NaN are false."""
    for dtype in available(("float16", "float32", "float64")):
        corners = samples(dtype)
        corners = np.append(corners, rng.standard_normal(40).astype(dtype))
        a, b = (np.ascontiguousarray(x) for x in np.stack(np.meshgrid(corners, corners), -1).reshape(-1, 2).T)

        def body(f, g):
            x, y = _readTensor(f), _readTensor(g)
            return (
                _vector(x + y, x - y, x * y, x / y),
                _vector(_sqrt(x), -x, abs(x), x**2),
                x % y,
                _vector(x < y, x <= y, x == y, x != y),
                x // y,
            )

        with np.errstate(all="ignore"):
            wide = (a.astype("f4") / b.astype("f4")).astype(a.dtype) if dtype == "float16" else a / b
            expected = (np.stack([a + b, a - b, a * b, wide], -1), np.stack([np.sqrt(a), -a, abs(a), a * a], -1), np.fmod(a, b),
                        np.stack([a < b, a <= b, a == b, a != b], -1), np.floor(wide))  # fmt: skip
        all_same(gp.operator(body)(gp.Field(a), gp.Field(b)), expected)
