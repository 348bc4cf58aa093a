"""Threads over tensor elements: only where each writes its own element, and everything else is filled."""

from __future__ import annotations

import numpy as np

import gpuop as gp
from gpuop.dsl import *
from tests.harness import fused, image, same_bits

GRID, TENSOR = (5, 9), (6,)
BIG = image(*GRID, *TENSOR)


def test_the_last_turn_wins(device):
    """Several elements of the loop write one place: a thread for each would race."""

    @gp.operator(outputs=lambda f: (f.type, f.type.replace(tensor_shape=())))
    def elements(f):
        with _forEachTensorElement(f.tensor_shape):
            v = _readTensorElement(f)
            _writeTensorElement(_out0, v * 2)
            _writeTensor(_out1, v)

    def build():
        doubled, last = elements(gp.VectorField(BIG))
        return {"doubled": doubled, "last": last + 1}

    _, results = fused(build)
    same_bits(results["doubled"], BIG * 2)
    same_bits(results["last"], BIG[..., -1] + 1)


def test_elements_that_no_turn_writes_hold_the_default(device):
    longer = gp.FieldType(GRID, 8)

    @gp.operator(outputs=longer, default=0.5)
    def extended(f):
        with _forEachTensorElement(f.tensor_shape):
            _writeTensorElement(_out0, _readTensorElement(f))

    @gp.operator(outputs=lambda f: f.type, default=0)
    def skipping(f):
        with _for(TENSOR[0]) as i:
            with _if(i == 2):
                _continue()
            _writeTensorElement(_out0, _readTensorElement(f, i), i)

    _, results = fused(lambda: {"out": extended(gp.VectorField(BIG) * 1) * 2, "skipped": skipping(gp.VectorField(BIG))})
    same_bits(results["out"], np.concatenate([BIG * 2, np.ones((*GRID, 2), "f")], -1))
    skipped = BIG.copy()
    skipped[..., 2] = 0
    same_bits(results["skipped"], skipped)


def test_shorter_tensors_than_the_loop(device):
    @gp.operator(outputs=gp.FieldType(GRID, 7))
    def cut(f):
        with _forEachTensorElement((9,)):
            _writeTensorElement(_out0, _readTensorElement(f, _tensorElement))

    @gp.operator(outputs=gp.FieldType(GRID, 9))
    def stretched(f):
        with _forEachTensorElement((9,)):
            _writeTensorElement(_out0, _readTensorElement(f, _tensorElement))

    _, results = fused(lambda: {"out": stretched(cut(gp.VectorField(BIG) * 1))})  # beyond the last element: the last
    at = [0, 1, 2, 3, 4, 5, 5, 5, 5]
    same_bits(results["out"], BIG[..., at])
