"""The guide's relational functions, of every type and vector length, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop import dsl
from gpuop.dsl import *
from gpuop.dsl.builtins import functions as table

from .compare import all_same
from .samples import INTEGERS, available, samples

rng = np.random.default_rng(23)
FLOATS = ("float16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
TESTS: dict[str, Callable[..., Any]] = {
    "isequal": np.equal,
    "isnotequal": np.not_equal,
    "isgreater": np.greater,
    "isgreaterequal": np.greater_equal,
    "isless": np.less,
    "islessequal": np.less_equal,
    "islessgreater": lambda x, y: (x < y) | (x > y),
    "isordered": lambda x, y: ~(np.isnan(x) | np.isnan(y)),
    "isunordered": lambda x, y: np.isnan(x) | np.isnan(y),
    "isfinite": lambda x, y: np.isfinite(x),
    "isinf": lambda x, y: np.isinf(x),
    "isnan": lambda x, y: np.isnan(x),
    "isnormal": lambda x, y: np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).tiny),
    "signbit": lambda x, y: np.signbit(x),
}
OTHERS = {"any", "all", "bitselect", "select"}
ARITY = {e.name.lstrip("_"): e.arity for e in table.table()}


def test_no_function_is_forgotten() -> None:
    assert {e.name.lstrip("_") for e in table.table() if e.group == "relational"} == {*TESTS} | OTHERS


def needs(dtype: str) -> None:
    if dtype not in available():
        pytest.skip("no double")


def corners(dtype: str) -> Any:
    """The samples, both NaNs, denormals, and the values around the least normal one."""
    tiny, least = np.finfo(dtype).tiny, np.finfo(dtype).smallest_subnormal
    nan = np.nan if dtype == "float16" else -np.nan  # NVIDIA's conversion of a half drops a NaN's sign
    more = np.array([nan, least, -least, tiny, -tiny, tiny - least, least - tiny, -np.finfo(dtype).max], dtype)
    return np.append(samples(dtype), more)


def pairs(values: Any, lanes: int) -> list[Any]:
    """All pairs, as two arrays of scalars; or some, as vectors."""
    both = np.stack(np.meshgrid(values, values), -1).reshape(-1, 2)
    chosen = both if lanes == 1 else rng.permutation(both)[: 60 * lanes].reshape(-1, lanes, 2)
    return [np.ascontiguousarray(chosen[..., k]) for k in range(2)]


def field(array: Any) -> gp.Field:
    """A field over the first axis."""
    return gp.Field(np.ascontiguousarray(array), array.ndim - 1)


@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("dtype", FLOATS)
def test_tests(device: str, dtype: str, part: int) -> None:
    """int 0 or 1 of scalars; of vectors integers of the components' size, 0 or -1."""
    needs(dtype)
    names = list(TESTS)[part::2]
    for lanes in (1, 2 + FLOATS.index(dtype)):
        x, y = pairs(corners(dtype), lanes)

        def body(f, g):
            a, b = _readTensor(f), _readTensor(g)
            return tuple(getattr(dsl, f"_{name}")(*(a, b)[: ARITY[name]]) for name in names)

        kind = np.int32 if lanes == 1 else np.dtype(dtype.replace("float", "int"))
        truths = [TESTS[name](x, y).astype(kind) * (1 if lanes == 1 else -1) for name in names]
        all_same(gp.operator(body)(field(x), field(y)), truths, names)


def test_tests_of_other_operands(device: str) -> None:
    """Integers count as float; numbers and scalars take the others' type; results are conditions and indices."""
    x = np.array([-1.5, np.nan, np.inf, 0, 2], np.float32)
    n = np.arange(5, dtype=np.int64) - 2
    v = np.stack([x, x[::-1]], -1)

    def body(f, g, h):
        a, k, w = map(_readTensor, (f, g, h))
        chosen = _var(1)
        with _if(_isnan(a)):
            chosen @= 10
        with _elseif(_isinf(a)):
            chosen @= 20
        return (
            chosen, _isgreater(k, 0), _isless(0.5, a), _isnan(k), _isnormal(k), _isequal(w, a), _where(_isfinite(w), w, 0),
            _signbit(k), _isnotequal(_convert(w, "float16"), 2),
        )  # fmt: skip

    expected = (
        np.where(np.isnan(x), 10, np.where(np.isinf(x), 20, 1)).astype("i4"),
        (n > 0).astype("i4"),
        (x > 0.5).astype("i4"),
        n.astype("i4") * 0,
        (n != 0).astype("i4"),
        -(v == x[:, None]).astype("i4"),
        np.where(np.isfinite(v), v, 0).astype("f4"),
        (n < 0).astype("i4"),
        -(v.astype("f2") != 2).astype("i2"),
    )
    all_same(gp.operator(body)(field(x), field(n), field(v)), expected)


@pytest.mark.parametrize("lanes", [1, 2, 3, 4])
def test_any_and_all(device: str, lanes: int) -> None:
    """Signed integers count by their sign; bools by truth."""
    shape = (40,) if lanes == 1 else (40, lanes)
    arrays = [rng.choice(samples(d), shape) for d in SIGNED]

    def body(*fields):
        values = [_readTensor(f) for f in fields]
        return (*map(_any, values), *map(_all, values), _any(values[0] > 0), _all(values[1] != 0))

    truths = [a < 0 for a in arrays]
    whole = [t.reshape(40, -1) for t in (*truths, arrays[0] > 0, arrays[1] != 0)]
    expected = [t.any(1) for t in whole[:4]] + [t.all(1) for t in whole[:4]] + [whole[4].any(1), whole[5].all(1)]
    all_same(gp.operator(body)(*map(field, arrays)), [e.astype(np.int32) for e in expected])


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_bitselect(device: str, dtype: str) -> None:
    needs(dtype)
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")
    for lanes in (1, 2 + np.dtype(dtype).itemsize % 3):
        x, y = pairs(samples(dtype), lanes)
        mask = rng.integers(0, np.iinfo(unsigned).max, x.shape, unsigned, endpoint=True).view(dtype)
        if dtype in FLOATS:  # a NaN's bits do not survive on every device
            x, y, mask = (np.where(np.isnan(v), v.dtype.type(1), v) for v in (x, y, mask))
        p, q, m = (v.view(unsigned) for v in (x, y, mask))
        actual = gp.operator(lambda f, g, h: _bitselect(*map(_readTensor, (f, g, h))))(field(x), field(y), field(mask))
        all_same((actual,), ((p & ~m | q & m).view(dtype),))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_select(device: str, dtype: str) -> None:
    """A scalar condition is true where it is not zero, a vector's component where its highest bit is set."""
    c, v = rng.choice(samples(dtype), 60), rng.choice(samples(dtype), (60, 3))
    a, b = rng.standard_normal((2, 60)).astype(np.float32)
    p, q = rng.integers(-100, 100, (2, 60, 3)).astype(np.int16)

    def body(*fields):
        a, b, p, q, c, v = map(_readTensor, fields)
        return (
            _select(a, b, c), _select(p, q, v), _select(p, q, c), _select(a, b, v), _select(p, q, v > 0), _select(p, 7, c > 0),
            _select(1, 2, v),
        )  # fmt: skip

    true, high = c != 0, (v.view(f"u{v.itemsize}") >> np.array(8 * v.itemsize - 1, f"u{v.itemsize}")) != 0
    expected = (
        np.where(true, b, a),
        np.where(high, q, p),
        np.where(true[:, None], q, p),
        np.where(high, b[:, None], a[:, None]),
        np.where(v > 0, q, p),
        np.where((c > 0)[:, None], np.int16(7), p),
        np.where(high, 2, 1).astype(np.int32),
    )
    all_same(gp.operator(body)(*map(field, (a, b, p, q, c, v))), expected)
