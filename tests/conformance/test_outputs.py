"""Declarations of outputs: the type of the first Field, or functions of some arguments."""

from __future__ import annotations

import numpy as np

import gpuop as gp
from gpuop.dsl import *

from .compare import same

VALUES = np.arange(12, dtype="int16").reshape(3, 4)


def test_same_as_the_first_field(device: str) -> None:
    """It is declared, so that values convert."""
    scaled = gp.operator(outputs="same")(lambda by, f: _readTensor(f) * by)
    same(scaled(0.5, gp.ScalarField(VALUES)), (VALUES * 0.5).astype("int16"))

    @gp.operator(outputs=("same", gp.FieldType(5, dtype="uint8"), "same"))
    def several(f):
        for out in (_out0, _out2):
            _writeTensor(out, _readTensor(f) / 2.0)
        _writeTensor(_out1, 9, _column)

    halves, nines, others = several(gp.ScalarField(VALUES))
    same(halves, VALUES // 2)
    same(nines, np.array([9, 9, 9, 9, 0], "uint8"))
    same(others, VALUES // 2)


def test_functions_take_the_arguments_that_they_name() -> None:
    def rows(n: int, f: gp.Field) -> gp.FieldType:
        return f.type.replace(field_shape=(n, *f.field_shape[1:]))

    @gp.operator(outputs=rows)
    def first_rows(f, scale=2, n=1):
        return _readTensor(f, _row, _column) * scale

    same(first_rows(gp.ScalarField(VALUES), n=2), VALUES[:2] * 2)
    same(first_rows(gp.ScalarField(VALUES), 3), VALUES[:1] * 3)
    in_order = gp.operator(outputs=lambda a, b: a.type)(lambda f, g: _readTensor(g))
    same(in_order(gp.ScalarField(VALUES), gp.ScalarField(VALUES * 1.0)), VALUES)


def test_one_body_for_all_sizes_of_tensors(device: str) -> None:
    """Scalars, small tensors and big ones, beside fields of scalars, which all elements share."""

    @gp.operator(outputs="same")
    def scaled(f, by):
        with _forEachTensorElement(f.tensor_shape):
            most = _tensorElementVar(f)
            most @= _max(_readTensorElement(f, offset=(0, 1)), _readTensorElement(f))
            _writeTensorElement(_out0, most * _readTensorElement(by))

    factors = np.arange(15, dtype="float32").reshape(3, 5)
    for tensor in ((), (3,), (3, 3)):
        values = np.random.default_rng(1).integers(-9, 9, (3, 5, *tensor)).astype("float32")
        beside = values[:, [1, 2, 3, 4, 4]]
        want = np.maximum(values, beside) * factors.reshape(3, 5, *(1,) * len(tensor))
        same(scaled(gp.Field(values, len(tensor)), gp.ScalarField(factors)), want)
