"""A field's dtype equals what NumPy's dtype of its array equals; it is a string all the same."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest

import gpuop as gp

NAMES = ["bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))]
NAMES += ["float16", "float32", "float64", "complex64", "complex128"]
OTHERS = [
    *(np.dtype(name) for name in (*NAMES, "complex256", ">f4", ">i2", "U3", "O")),
    *(np.dtype(name).type for name in (*NAMES, "complex256")),
    *(bool, int, float, complex, object, str, list, 3),
    *NAMES,
]


@pytest.mark.parametrize("name", NAMES)
def test_equal_as_numpys_dtypes_are(name):
    array = np.zeros((2, 3), name)
    field = gp.ScalarField(array)
    for value in (
        field.dtype,
        field.type.dtype,
        gp.FieldType(3, dtype=name).dtype,
        gp.FieldType(3, dtype=array.dtype).dtype,
    ):
        for other in OTHERS:
            same = array.dtype == other
            assert (value == other, other == value, value != other, other != value) == (same, same, not same, not same)
        assert np.zeros(3, value).dtype == array.dtype
        assert np.dtype(value) == array.dtype


def test_unorm8_is_itself_only():
    values = gp.ColorField(np.zeros((2, 2, 3), np.uint8)).dtype
    for other in (*OTHERS, "unorm8"):
        same = isinstance(other, str) and str.__eq__("unorm8", other)
        assert (values == other, other == values, values != other, other != values) == (same, same, not same, not same)
    with pytest.raises(TypeError):
        np.zeros(3, values)


@pytest.mark.parametrize("name", [*NAMES, "unorm8"])
def test_it_is_a_string(name):
    values = gp.FieldType((2, 2), 3, name).dtype
    assert isinstance(values, str) and hash(values) == hash(name) and {name: 1}[values] == 1
    assert f"{values}|{values:>12}|{values!r}" == f"{name}|{name:>12}|{name!r}"
    assert json.dumps({"dtype": values}) == json.dumps({"dtype": name})
    for again in (pickle.loads(pickle.dumps(values)), copy.deepcopy(values)):
        assert again is values
    assert gp.FieldType((2, 2), 3, values) == gp.FieldType((2, 2), 3, name)
