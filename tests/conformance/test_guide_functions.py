"""Functions of kernels as the guide writes them: with its types as annotations, and kernels by `isBigTensor`."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

VALUES = np.random.default_rng(0).random((5, 7), np.float32)


def average(a: GPUExpression, b: GPUExpression) -> GPUExpression:
    return (a + b) / 2.0


def counter() -> GPUVariable:
    return _int4Var()


def row_of_three() -> GPUArrayVariable:
    return _floatArray(3)


def test_functions_with_annotations(device):
    kinds = []

    @gp.operator
    def averaged(f):
        v, n, a = _readTensor(f), counter(), row_of_three()
        n += 1
        a[1] = v
        kinds.extend([isinstance(v, GPUExpression), isinstance(n, GPUVariable), isinstance(a, GPUArrayVariable)])
        kinds.append(isinstance(n, GPUExpression))
        return average(v, a[1] + n.w)

    np.testing.assert_allclose(averaged(gp.ScalarField(VALUES)).numpy(), VALUES + 0.5, rtol=1e-6)
    assert set(kinds) == {True}
    assert all(inspect.getdoc(kind) for kind in (GPUExpression, GPUVariable, GPUArrayVariable))


@pytest.mark.parametrize("shape", [(3,), (4,), (5,), (2, 2), (3, 3)])
def test_squares_of_big_and_small_tensors(device, shape):
    """The guide's program, of one kernel or the other."""

    @gp.operator(outputs="same")
    def square(v):
        if isBigTensor(v.tensor_shape):
            with _forEachTensorElement(v.tensor_shape):
                element = _tensorElementVar(v)
                element @= _readTensorElement(v, _tensorElement)
                _writeTensorElement(_out0, element * element, _tensorElement)
        else:
            tensor = _tensorVar(v)
            tensor @= _readTensor(v)
            _writeTensor(_out0, tensor * tensor)

    values = np.random.default_rng(1).random((4, 6, *shape), np.float32)
    field = (gp.VectorField if len(shape) == 1 else gp.MatrixField)(values)
    np.testing.assert_array_equal(square(field).numpy(), values * values)
    assert isBigTensor(gp.Shape(*shape)) == isBigTensor(shape) == isBigTensor(field) == (np.prod(shape) > 4)


@pytest.mark.parametrize("whole", [False, True])
def test_threads_are_numbered_anew_in_groups_that_the_grid_cuts(device, whole):
    """As row-major order has those that are left, whether tail threads run or not."""

    @gp.operator(outputs=(gp.FieldType((3, 6), dtype="uint32"), *[gp.FieldType((3, 6), dtype="int32")] * 3))
    def exchanged(f):
        _localThreads(2, 4, whole_groups=whole)
        own = _row * 10 + _column + _convert_int(_readTensor(f))
        _writeTensor(_out0, _ballotGroup(own % 2 == 0))
        _writeTensor(_out1, _shuffleGroup(own, 4))
        _writeTensor(_out2, _countGroup(own >= 0, over=4))
        _writeTensor(_out3, _shuffleGroup(own, 1, over=4))

    results = [each.numpy() for each in exchanged(gp.zeros((3, 6)))]
    for rows in ([0, 1], [2]):
        for columns in ([0, 1, 2, 3], [4, 5]):
            group = np.array([[r * 10 + c for c in columns] for r in rows])
            own = group.ravel()
            here = np.ix_(rows, columns)
            bits = sum(1 << k for k, value in enumerate(own) if value % 2 == 0)
            fifth = own[4] if len(own) > 4 else group
            assert (results[0][here] == bits).all() and (results[1][here] == fifth).all()
            assert (results[2][here] == len(columns)).all()  # four threads are a row of a whole group
            assert (results[3][here] == group[:, 1:2]).all()
