"""Numbers that stand in for a field's: `default=` where nothing is written, `border=` where a read is outside."""

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

COMPLEX = (np.arange(6).reshape(2, 3) + 1j).astype(np.complex64)
PAIRS = np.stack([COMPLEX, -COMPLEX], -1)
TRIPLES = np.stack([COMPLEX, -COMPLEX, 2 * COMPLEX], -1)


def to_the_left(f):
    _writeTensor(_out0, _readTensor(f), _row, _column - 1)


def first(f):
    with _if(_column < 1):
        _writeTensor(_out0, _readTensor(f))


@pytest.mark.parametrize("number", [2, 1j, 3 - 4j, np.complex64(1 + 2j), True])
def test_complex_defaults_are_complex_numbers(device, number):
    for array, tensor in ((COMPLEX, 0), (PAIRS, 1)):
        want = np.full_like(array, number)
        want[:, :1] = array[:, :1]
        actual = gp.operator(default=number)(first)(gp.Field(array, tensor)).numpy()
        np.testing.assert_array_equal(actual, want)


@pytest.mark.parametrize("number", [2, 1j, 3 - 4j, 1 + 1j])
def test_complex_borders_are_complex_numbers(device, number):
    want = np.pad(COMPLEX, ((0, 0), (0, 1)), constant_values=number)[:, 1:]
    actual = gp.operator(lambda f: _readTensor(f, _row, _column + 1, border=number))(gp.ComplexField(COMPLEX))
    np.testing.assert_array_equal(actual.numpy(), want)
    for array in (PAIRS, TRIPLES):
        want = np.pad(array, ((0, 0), (0, 1), (0, 0)), constant_values=number)[:, 1:]

        @gp.operator(outputs=lambda f: f.type)
        def moved(f):
            with _forEachTensorElement(f.type.parts):
                value = _readTensorElement(f, _row, _column + 1, _tensorElement, border=number)
                _writeTensorElement(_out0, value, _tensorElement)

        np.testing.assert_array_equal(moved(gp.Field(array, 1)).numpy(), want)


@pytest.mark.parametrize("body", [to_the_left, first])
@pytest.mark.parametrize(
    ("dtype", "number", "values"),
    [
        ("uint8", 255.0, 255), ("uint8", np.inf, 255), ("int16", -np.inf, -32768), ("uint8", True, 1), ("bool", 1, True),
        ("int64", 2**63 - 1, 2**63 - 1), ("uint64", 2**64 - 1, 2**64 - 1), ("float32", 2**70, 2.0**70),
        ("float32", np.inf, np.inf), ("float32", np.float64(0.1), np.float32(0.1)), ("complex64", 1 + 1j, 1 + 1j),
    ],
)  # fmt: skip
def test_defaults_are_what_the_output_holds(device, body, dtype, number, values):
    actual = gp.operator(default=number)(body)(gp.ScalarField(np.zeros((2, 3), dtype))).numpy()
    np.testing.assert_array_equal(actual[:, -1], np.array([values] * 2, dtype))


@pytest.mark.parametrize("body", [to_the_left, first])
@pytest.mark.parametrize(
    ("dtype", "number", "wrong"),
    [
        *(("uint8", n, f"default={n!r} does not fit the output's dtype, uint8") for n in (300, -1, 1e9, np.nan, 0.5, 1j)),
        ("bool", -1, "default=-1 does not fit the output's dtype, bool; write True or False"),
        ("float32", 1j, "default=1j does not fit the output's dtype, float32"),
        ("float32", 10**400, "does not fit the output's dtype, float32"),
        ("int32", 2**70, "does not fit the output's dtype, int32"),
        ("float32", "a", "`default=` wants a number, not a str"),
        ("float32", np.array([1.0, 2.0]), "`default=` wants a number, not an ndarray"),
        ("float32", gp.Parameter(1.0), "`default=` wants a number, not a Parameter; write the value of a Field in the kernel"),
    ],
)  # fmt: skip
def test_other_defaults_are_refused(body, dtype, number, wrong):
    with pytest.raises(gp.SemanticError) as caught:
        gp.operator(default=number)(body)(gp.ScalarField(np.zeros((2, 3), dtype)))
    assert wrong in caught.value.message
    assert caught.value.loc.file == __file__


def test_one_number_fills_memory():
    with pytest.raises(gp.SemanticError, match="_out0 is written at computed places") as caught:
        gp.operator(default=2)(to_the_left)(gp.ComplexField(COMPLEX))
    assert caught.value.loc.file == __file__
