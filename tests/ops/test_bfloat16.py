"""NumPy's functions of bfloat16: float32's results of the same values, rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from tests.bfloat16 import ALL, nearest, pairs
from tests.ops.real_functions import BY_DEVICES, FUNCTIONS


def bf(values: Any) -> gp.Field:
    return gp.ScalarField(values, dtype="bfloat16")


def expected_of(name: str, operands: tuple[Any, ...]) -> Any:
    if name == "nextafter":
        return following(*operands)
    if name in BY_DEVICES:
        operands = tuple(o.astype(np.float64) for o in operands)
    result = getattr(np, name)(*operands)
    return nearest(result.astype(np.float32)) if result.dtype.kind == "f" else result


def following(x: Any, y: Any) -> Any:
    """The neighbour of each number, by the order of signed magnitudes."""
    bits = (x.view(np.uint32) >> 16).astype(np.int64)
    place = np.where(bits & 0x8000, -(bits & 0x7FFF), bits)
    moved = place + np.where(y > x, 1, -1)
    codes = np.where(moved < 0, 0x8000 | -moved, moved).astype(np.uint32) << np.uint32(16)
    result = np.where(x == y, y, codes.view(np.float32))
    result = np.where((place == 0) & (y < 0) & (y != 0), -(np.float32(2) ** -133), result)
    return np.where(np.isnan(x) | np.isnan(y), np.float32(np.nan), result)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_results_are_rounded_once(name: str, device: str) -> None:
    function = getattr(np, name)
    operands = (ALL,) if function.nin == 1 else pairs()
    try:
        function(*operands)
    except TypeError:  # of integers alone
        return
    field, expected = function(*map(bf, operands)), expected_of(name, operands)
    assert field.dtype == ("bfloat16" if expected.dtype.kind == "f" else expected.dtype)
    result = field.numpy()
    if name == "hypot":  # of infinity and NaN it is infinity, as C has it
        expected = np.where(np.isinf(operands[0]) | np.isinf(operands[1]), np.float32(np.inf), expected)
    if name in ("signbit", "copysign"):  # of a NaN the sign is nobody's promise
        finite = ~np.isnan(operands[-1])
        result, expected = result[finite], expected[finite]
    if name in BY_DEVICES:
        same = (result == expected) | ((result != result) & (expected != expected))
        assert np.count_nonzero(~same) < 1e-3 * expected.size, name
        np.testing.assert_allclose(result[~same].astype(float), expected[~same].astype(float), rtol=8e-3, atol=1e-38)
    else:
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("number", [0.1, 3, 0.7, -1e-5])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_are_rounded_first(device: str, number: float) -> None:
    """As of float16 in NumPy: a number beside bfloat16 is one of bfloat16."""
    for function in (np.multiply, np.floor_divide, np.remainder):
        expected = nearest(function(ALL, nearest(number)))
        np.testing.assert_array_equal(function(bf(ALL), number).numpy(), expected)


TYPES = {
    "bool": "bfloat16", "uint8": "bfloat16", "int32": "bfloat16", "int64": "bfloat16", "float16": "float32", "float32": "float32",
    "float64": "float64", "complex64": "complex64", "complex128": "complex128",
}  # fmt: skip


def test_types_of_results(device: str) -> None:
    """As in JAX and PyTorch."""
    field = bf([1.5, 2.0])
    for other, expected in TYPES.items():
        beside = gp.ComplexField([1j, 2]) if other == "complex64" else gp.Field(np.ones(2, other))
        assert (
            (field + beside).dtype == (beside * field).dtype == np.where(beside != 0, field, beside).dtype == expected
        )
    assert (field > 1).dtype == "bool" and (field + 1).dtype == (field * 2.5).dtype == (-field).dtype == "bfloat16"
    assert field.dtype != np.float32 and field.dtype != "float32" and field.dtype.itemsize == 2


ROW = nearest(np.float32([-30000, 35000, 40000, 3, 3.015625, 100, 0.1, 0.3, 2000, 2016]))
CALLS: dict[str, Any] = {
    "gradient": np.gradient,
    "gradient of uneven steps": lambda f: np.gradient(f, np.arange(10.0) ** 2 * 2),
    "trapezoid": lambda f: np.trapezoid(f, dx=0.25),
    "average": lambda f: np.average(f, weights=np.arange(10)),
    "sinc": lambda f: np.sinc(f / 8),
    "unwrap": np.unwrap,
    "modf": lambda f: np.modf(f)[0],
    "median": np.median,
    "percentile": lambda f: np.percentile(f, 30),
    "std": np.std,
    "var": np.var,
    "sum": np.sum,
    "mean": np.mean,
    "nansum": np.nansum,
    "cumsum": np.cumsum,
    "max": np.max,
    "diff": np.diff,
    "inner": lambda f: np.inner(f, f),
    "outer": lambda f: np.outer(f, f),
    "matmul": lambda f: f.reshape(2, 5) @ f.reshape(5, 2),
    "convolve": lambda f: np.convolve(f, [1, 2, 3]) if isinstance(f, np.ndarray) else np.convolve(f, bf([1, 2, 3])),
    "clip": lambda f: np.clip(f, 0.25, 96),
    "nan_to_num": np.nan_to_num,
    "round": np.round,
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_made_of_steps(name: str, device: str) -> None:
    """By NumPy in float64: half a unit in the last place, of 8 bits, and what the last bit of float32 makes of a tie."""
    field, expected = CALLS[name](bf(ROW)), CALLS[name](ROW.astype(np.float64))
    assert field.dtype == "bfloat16"
    near = 4e-3 if name == "sinc" else 1e-7
    np.testing.assert_allclose(field.numpy().astype(float), expected, rtol=2**-8 * 1.001, atol=near, err_msg=name)


def test_sums_do_not_stop_at_256(device: str) -> None:
    """Sums are accumulated in float32: one more than 256 is 256 in bfloat16."""
    ones = bf(np.ones(5000))
    assert float(ones.sum()) == nearest(5000.0) == 4992
    assert float(np.cumsum(ones)[4095]) == 4096
    assert float(gp.reduce(lambda a, b: a + b, ones, 0.0)) == 4992
    assert float(gp.linalg.norm(ones)) == nearest(np.sqrt(5000.0))


@pytest.mark.parametrize("count", [40, 5000])
def test_orders(device: str, count: int) -> None:
    rng = np.random.default_rng(count)
    values = ALL[rng.integers(0, 2**16, count)]
    values[:6] = [0.0, -0.0, np.nan, np.inf, -np.inf, -0.0]
    field = bf(values)
    np.testing.assert_array_equal(np.sort(field).numpy(), np.sort(values))
    places = np.argsort(field).numpy()
    assert np.array_equal(places, np.argsort(values, kind="stable"))
    numbers = values[np.isfinite(values)]
    edges = np.unique(numbers)
    np.testing.assert_array_equal(np.unique(bf(numbers)).numpy(), edges)
    assert np.unique(bf(numbers)).dtype == "bfloat16"
    np.testing.assert_array_equal(np.searchsorted(bf(edges), bf(numbers)).numpy(), np.searchsorted(edges, numbers))
    assert np.isin(bf(numbers), bf(edges[::2])).numpy().tolist() == np.isin(numbers, edges[::2]).tolist()
    assert int(np.argmax(field)) == np.argmax(values)
    own, known = (
        np.histogram(bf(np.clip(numbers, -9, 9)), 7, (-3, 4)),
        np.histogram(np.clip(numbers, -9, 9), 7, (-3, 4)),
    )
    assert own[0].numpy().tolist() == known[0].tolist()


def test_made_and_random(device: str) -> None:
    np.testing.assert_array_equal(gp.arange(300, dtype="bfloat16").numpy(), nearest(np.arange(300.0)))
    np.testing.assert_array_equal(
        gp.linspace(0, 1, 7, dtype="bfloat16").numpy(), nearest(np.linspace(0, 1, 7, dtype=np.float32))
    )
    assert (gp.full((3,), 0.1, "bfloat16").numpy() == nearest(0.1)).all()
    for draw in (gp.random.uniform, gp.random.normal):
        field = draw(gp.random.key(7), (4000,), "bfloat16")
        drawn = field.numpy()
        assert field.dtype == "bfloat16" and np.array_equal(drawn, nearest(drawn))
        assert abs(drawn.mean() - (0.5 if draw is gp.random.uniform else 0)) < 0.06
    uniform = gp.random.uniform(gp.random.key(7), (4000,), "bfloat16").numpy()
    assert uniform.min() == 0 and uniform.max() == 1 - 2**-8 and len(np.unique(uniform)) == 256


@pytest.mark.parametrize("decimals", [1, 3, -1])
def test_rounding_to_decimals(decimals: int, device: str) -> None:
    values = ALL[np.isfinite(ALL) & (np.abs(ALL) < 1e30)]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.round(bf(values), decimals).numpy(), nearest(np.round(values, decimals)))
