"""Collections of garbage, which planning does without."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.engine import evaluate


@gp.operator
def doubled(f):
    return 2 * _readTensor(f)


@pytest.mark.parametrize("collects", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_planning_collects_no_garbage(collects: bool, fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """And leaves it to the user afterwards whether it is collected, also where planning fails."""
    enabled: list[bool] = []
    usual = evaluate.plan_on

    def planned(*args: object) -> object:
        enabled.append(gc.isenabled())
        if fails:
            raise ZeroDivisionError
        return usual(*args)

    monkeypatch.setattr(evaluate, "plan_on", planned)
    field = gp.ScalarField(np.ones((3, 5 + 2 * collects + fails), np.float32))  # of a shape with no plan yet
    try:
        if not collects:
            gc.disable()
        with gp.use_device("reference"), pytest.raises(ZeroDivisionError) if fails else pytest.MonkeyPatch.context():
            assert doubled(field).numpy().sum() == 2 * field.type.field_shape.points
        assert gc.isenabled() == collects
    finally:
        gc.enable()
    assert enabled == [False]
