"""`_lowest` and `_highest`: the ends of every type, of values, fields, outputs and dtypes."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import all_same, same


def ends(dtype: str) -> tuple[object, object]:
    if dtype == "bool":
        return np.bool_(False), np.bool_(True)
    if dtype.startswith("float"):
        return np.dtype(dtype).type(-np.inf), np.dtype(dtype).type(np.inf)
    return np.dtype(dtype).type(np.iinfo(dtype).min), np.dtype(dtype).type(np.iinfo(dtype).max)


def test_every_type(device: str) -> None:
    dtypes = ("bool", "int8", "uint16", "uint64", "float16")
    actual = gp.operator(lambda *fs: tuple(end(f) for f in fs for end in (_lowest, _highest)))(
        *(gp.ScalarField(np.ones(3, dtype)) for dtype in dtypes)
    )
    all_same(actual, [np.full(3, end) for dtype in dtypes for end in ends(dtype)])


def test_tensors(device: str) -> None:
    """Of small tensors vectors, of big ones elements; of values, outputs, types and dtypes too."""
    values = np.arange(10, dtype="int16").reshape(5, 2)

    @gp.operator(outputs="same")
    def limited(v):
        most = _int2Var(_lowest(v))
        most @= _min(most, _highest("int32"))
        with _for(3) as k:
            most @= _max(most, _readTensor(v, k))
        _writeTensor(_out0, _where(_readTensor(v) > 7, _highest(_out0), _max(most, _lowest(most))))

    same(limited(gp.VectorField(values)), np.where(values > 7, 32767, values[:3].max(0)).astype("int16"))
    big = gp.VectorField(np.ones((4, 7), "uint8"))

    @gp.operator(outputs="same")
    def elements(v):
        with _forEachTensorElement(v.tensor_shape):
            _writeTensorElement(_out0, _highest(v.type) - _convert_uchar(_tensorElement))

    same(elements(big), np.tile((255 - np.arange(7)).astype("uint8"), (4, 1)))


def test_no_such_type() -> None:
    for wrong, message in ((3, "fields have no dtype '3'"), ("unorm8", "kernel values have no dtype unorm8")):
        with pytest.raises(gp.SemanticError, match=message):
            gp.operator(lambda f, wrong=wrong: _lowest(wrong))(gp.ScalarField(np.ones(3, "f")))
