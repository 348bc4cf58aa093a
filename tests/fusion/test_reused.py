"""Results of pipelines have memory of earlier ones that nobody has any more, and never that of others."""

import numpy as np
import pytest

import gpuop as gp
from gpuop.fusion.windows import buffer_pool as memory
from gpuop.fusion.windows.buffer_pool import KEPT, LEAST, MOST, let_go, reused

SHAPE = (257, 1021)  # more bytes than are reused at least


@pytest.fixture(autouse=True)
def nothing_waits():
    let_go()
    yield
    let_go()


def test_views_keep_what_they_look_at():
    result = gp.pipeline(lambda a, x: gp.ScalarField(a) * x)
    ones = np.ones(SHAPE, "f")
    first = result(ones, gp.Parameter(2.0))
    place, row = first.ctypes.data, first[1]
    del first
    second = result(ones, gp.Parameter(3.0))
    assert not np.shares_memory(second, row)
    assert row.min() == row.max() == 2
    del row
    third = result(ones, gp.Parameter(4.0))
    assert third.ctypes.data == place or gp.devices()[0].name == "reference"
    assert third.min() == third.max() == 4
    assert second.min() == second.max() == 3


def test_no_more_waits_than_said():
    for size in (LEAST, MOST // 2, MOST):
        values = [reused((size,), np.dtype("u1")) for _ in range(KEPT + 1)]
        del values
        assert len(memory._waiting(size)) == min(KEPT, MOST // size)
