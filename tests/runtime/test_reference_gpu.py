"""GPUs that need none: what they plan, what they report, and where they are listed."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import target_named
from gpuop.dsl import *
from gpuop.runtime.devices import examined, open_device
from gpuop.runtime.reference.reference_gpu import TARGETS


@gp.operator
def ahead(f, far):
    return _readTensor(f, _column + far, border="unchecked")


@pytest.mark.parametrize("name", TARGETS)
def test_they_are_opened_by_name_alone(name: str) -> None:
    assert name in {device.name for device in examined()}
    assert name not in {device.name for device in gp.devices()}
    with gp.use_device(name) as backend:
        assert (gp.arange(70).reshape(7, 10) * 2).numpy().sum() == 70 * 69
        assert backend.name == name and backend.target.device == "gpu"


def test_they_plan_for_that_gpu() -> None:
    assert open_device("reference:sm_75").target == target_named("cuda:sm_75")
    with gp.use_device("reference:sm_90"):
        text = gp.operator(lambda f: _readTensor(f) + 1).source(gp.FieldType(70))
    assert "__global__" in text


@pytest.mark.parametrize(("far", "place"), [(1, 70), (-1, -1)])
def test_reads_outside_of_a_field_are_reported(far: int, place: int) -> None:
    x = gp.ScalarField(np.arange(70, dtype="f4"))
    with gp.use_device("reference:sm_90"), pytest.raises(gp.DeviceError) as told:
        ahead(x, far).numpy()
    thread = 69 if far == 1 else 0
    assert str(told.value).startswith(
        f"reference:sm_90: kernel `ahead`: thread (layer 0, row 0, column {thread % 64}) of work-group (layer 0, row 0, "
        f"column {thread // 64}) reads `f[{place}]`, outside of the field `f` (70 float32), which has 70 elements; "
        'an index is inside unless the program reads with border="unchecked"\n  at '
    )
    assert 'return _readTensor(f, _column + far, border="unchecked")' in str(told.value)
