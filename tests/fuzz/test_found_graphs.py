"""Faults that random graphs revealed, each as small as possible."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .graph_distant import blur


@gp.operator
def half(f):
    return _readTensor(f) * 0.5 + 1


@pytest.mark.parametrize("optimize", [False, True])
def test_a_state_whose_next_value_takes_over_a_buffer(optimize):
    chain = half if not optimize else blur
    zeros, other = np.zeros((6, 8), "f"), gp.ScalarField(np.full((6, 8), 8, "f"))
    with gp.use_device("reference"):
        want = half(chain(chain(chain(other)))).numpy()
        with gp.ComputeGraph(optimize=optimize) as graph:
            first, second = gp.ScalarField(zeros), gp.ScalarField(zeros)
            first.next = chain(chain(chain(other)))
            second.next = half(first)
            graph.probe(second, "second")
        graph.step(2)
        np.testing.assert_array_equal(graph.read("second"), want)


@pytest.mark.parametrize("axis", [None, 0, (0, 1), 2])
def test_a_reduction_of_vectors_that_were_just_computed(device, axis):
    x = np.random.default_rng(5).integers(0, 9, (40, 70, 3)).astype("f")
    result = (gp.VectorField(x) * 2 + 1).sum(axis=axis).numpy()
    np.testing.assert_array_equal(result, (x * 2 + 1).sum(axis=axis))


def test_one_element_of_vectors_that_were_just_computed(device):
    @gp.operator(outputs=lambda f: f.type.replace(tensor_shape=()))
    def some(f):
        _writeTensor(_out0, _readTensorElement(f, _row, _column + 1, _min(_row, 2)))

    x = np.random.default_rng(5).random((5, 7, 3), np.float32)
    moved = np.concatenate([x[:, 1:], x[:, -1:]], 1) * np.float32(2)
    want = moved[np.arange(5), :, np.minimum(np.arange(5), 2)]
    np.testing.assert_array_equal(some(gp.VectorField(x) * 2).numpy(), want)
