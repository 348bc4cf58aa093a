"""Numbers and lists of Python in the dtype of their field, with the digits that NumPy gives them."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl.fields.from_arrays import INTEGERS

WIDE = gp.asarray(np.array([0.1, 0.2]))
DIGITS = {
    "float64": [0.1, 1e300, 2**53 + 1, 2**70, -(2**63) - 1],
    "complex128": [0.1j, 1e300],
    "float32": [0.1, 2**31, 2**70],
    "int64": [123456789.7, 1e10],
    "bool": [2**70, 0.0],
}
LISTS = {
    "add": lambda f: np.add(f, [0.3, 0.4]),
    "where": lambda f: np.where([True, False], f, [0.3, 0.4]),
    "clip": lambda f: np.clip(f, [0.15, 0.15], None),
    "isin": lambda f: np.isin(f, [0.1, 0.3]),
    "searchsorted": lambda f: np.searchsorted(f, [0.1, 0.2]),
}


@pytest.mark.parametrize("dtype", INTEGERS)
def test_ends_of_integers(dtype):
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    ends = [least, least + 1, most - 1, most]
    for field in (
        gp.asarray(ends, dtype),
        gp.ScalarField(ends, dtype=dtype),
        gp.VectorField([ends], dtype=dtype),
        gp.full((), ends, dtype),
        gp.updated(gp.zeros((4,), dtype), np.s_[:], ends),
    ):
        assert field.dtype == dtype
        assert field.numpy().ravel().tolist() == ends
    assert gp.asarray(most, dtype).numpy() == np.asarray(most, dtype)
    for beyond in (least - 1, most + 1):
        sentence = f"{beyond} does not fit {dtype}, which is {least} to {most}"
        for values in (beyond, [0, beyond]):
            with pytest.raises(gp.SemanticError) as refused:
                gp.asarray(values, dtype)
            assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize("dtype", DIGITS)
def test_digits(dtype):
    for number in DIGITS[dtype]:
        np.testing.assert_array_equal(gp.asarray([number], dtype).numpy(), np.asarray([number], dtype), strict=True)
    mixed = [-1, 2**63]
    if dtype in ("float64", "float32"):
        np.testing.assert_array_equal(gp.asarray(mixed, dtype).numpy(), np.asarray(mixed, dtype), strict=True)


def test_an_integer_beyond_all_floats():
    with pytest.raises(gp.SemanticError, match=r"an integer beyond ±1.8e\+308 does not fit float64"):
        gp.asarray([2**1100], "float64")


def test_without_a_dtype_integers_have_32_bits():
    with pytest.raises(
        gp.SemanticError, match="an integer of this list does not fit int32; give a NumPy array of int64"
    ):
        gp.asarray([2**31])


@pytest.mark.parametrize("name", LISTS)
def test_lists_beside_fields_of_64_bits(name):
    np.testing.assert_array_equal(LISTS[name](WIDE).numpy(), LISTS[name](WIDE.numpy()))


def test_integers_beside_fields_of_fewer_bits():
    for dtype, values in (("int8", [300, -200, 5]), ("uint8", [-1, 256]), ("int64", [2**62, -(2**63)]), ("int8", 300)):
        row = np.array([1, 5, 100], dtype)
        actual = np.searchsorted(gp.asarray(row), values).numpy()
        np.testing.assert_array_equal(actual, np.searchsorted(row, values))
    long = np.array([1, 2**40])
    np.testing.assert_array_equal(np.add(gp.asarray(long), [2**41, 1]).numpy(), np.add(long, [2**41, 1]), strict=True)
