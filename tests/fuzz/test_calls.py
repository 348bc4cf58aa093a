"""Random functions of arrays, called with other sizes, layouts, numbers and results in turns: the values of NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.config import config
from tests.nightly import seeds

from . import calls
from .calls import Call, Program, check, drawn

ROWS = ("rows", "rows")
# The last stage only copies: its body computes no values
STEPS = (("scaled", (1,)), ("copied rows", (2,)), ("difference", (3, 3)), ("cross, clamp", (4,)), ("least", (5, 3)))
COPIES = Program(STEPS, "uint8", 0, (), (Call((64, 64), ROWS, 3, writes=False), Call((64, 64), ROWS, 0, writes=False)))


# A stencil of a stencil, of which nothing is left where the number is 0
ZEROED = Program(
    (("cross, clamp", (1,)), ("cross, zero", (2,)), ("double", (3,)), ("scaled", (4,)), ("sum", (5, 0))), "int32", 0, (),
    (Call((64, 64), ROWS, 3, writes=False), Call((64, 64), ROWS, 0, writes=False)),
)  # fmt: skip


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch):
    """Sizes and numbers share kernels, as they do outside of tests."""
    monkeypatch.setattr(config, "specialize", "auto")


def test_calls_on_the_reference():
    with gp.use_device("reference"):
        for seed in seeds(0, 16):
            check(drawn(seed))


def test_calls_on_devices(device):
    for seed in seeds(1000, 4):
        check(drawn(seed))


def test_stages_without_values(device):
    check(COPIES)


def test_stages_that_nobody_reads(device):
    check(ZEROED)


def test_stages_that_nobody_reads_in_gpu_schedules():
    with gp.use_device("reference:sm_90"):
        check(ZEROED)


@pytest.mark.parametrize("layout", calls.LAYOUTS)
def test_layouts_hold_the_same_values(layout):
    a = np.arange(2 * 5 * 3, dtype=np.int16).reshape(2, 5, 3)
    np.testing.assert_array_equal(calls.LAYOUTS[layout](a), a)


def test_everything_is_drawn():
    programs = [drawn(seed) for seed in range(300)]
    assert {name for program in programs for name, _ in program.steps} == set(calls.STEPS)
    assert {layout for program in programs for call in program.calls for layout in call.layouts} == set(calls.LAYOUTS)
    assert {program.dtype for program in programs} == set(calls.DTYPES)
    assert {program.batch for program in programs} == set(calls.BATCHES)
    assert {program.inside for program in programs} == {False, True}
