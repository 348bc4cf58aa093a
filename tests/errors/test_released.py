"""Errors of calls hold no fields: their memory is free at once, not when Python looks for cycles."""

import gc
import weakref

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

FEW = np.zeros((6, 7), np.float32)


def doubled_of(field):
    """By an operator that is new, whose body is recorded."""

    @gp.operator
    def doubled(f):
        return _readTensor(f) * 2

    return doubled(field)


def body_that_raises(field):
    @gp.operator
    def broken(f):
        v = _var(_readTensor(f))
        with _if(v > 0):
            v += 1
            raise ValueError("stopped")

    broken(field)


def body_that_is_refused(field):
    @gp.operator(outputs="same")
    def broken(f):
        with _if(_readTensor(f) > 0):
            _writeTensor(_out0, 1)

    broken(field)


def block_that_raises(field):
    with gp.GPUOperator(field.type):
        _writeTensor(_out0, _readTensor(field))
        raise ValueError("stopped")


def update_that_is_refused(field):
    @gp.operator(inout="f")
    def broken(f):
        _writeTensor(f, 1)
        return f

    broken(field)


def function_of_the_host(field):
    def fails(array):
        raise ValueError("stopped")

    gp.evaluate(doubled_of(field) + 1, gp.HostOperator(fails, doubled_of(field), outputs=field.type))


def memory_that_is_not_there(field):
    (doubled_of(field)[None] + gp.zeros(1 << 50, dtype="uint8")[:, None, None]).numpy()


def grids_that_differ(field):
    (doubled_of(field) + gp.zeros((3, 3))).numpy()


def graph_that_fails(field):
    with gp.ComputeGraph():
        state = gp.ScalarField(FEW)
        state.next = state + doubled_of(field)
        raise ValueError("stopped")


def pipeline_that_fails(field):
    gp.pipeline(lambda x: gp.ScalarField(x) + doubled_of(field) + gp.zeros((3, 3)))(FEW)


def nothing_fails(field):
    doubled_of(field).numpy()


def nothing_is_computed(field):
    doubled_of(field)


@pytest.mark.parametrize(
    "work",
    [
        body_that_raises, body_that_is_refused, block_that_raises, update_that_is_refused, function_of_the_host,
        memory_that_is_not_there, grids_that_differ, graph_that_fails, pipeline_that_fails, nothing_fails, nothing_is_computed,
    ],
)  # fmt: skip
@pytest.mark.parametrize("computed", [False, True])
def test_fields_are_released_at_once(work, computed):
    def lives():
        field = gp.ScalarField(np.ones((6, 7), np.float32))
        if computed:
            field = gp.evaluate(field + 1)
        node = weakref.ref(field.node)
        if "nothing" in work.__name__:
            work(field)
        else:
            with pytest.raises((gp.GpuopError, ValueError)):
                work(field)
        return node

    gc.collect()
    gc.disable()
    try:
        assert lives()() is None
    finally:
        gc.enable()
