"""What random graphs have found, as small as it gets."""

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
