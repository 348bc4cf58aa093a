"""What a device does in a second: measured once, kept on disk, and what `explain` and `profile` predict by it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpuop as gp
from gpuop.config import config
from gpuop.dsl import *
from gpuop.fusion.report.prediction import predictions
from gpuop.ir.throughput import DeviceFacts
from gpuop.runtime import device_facts
from gpuop.runtime.device_facts import facts_of

SLOW = DeviceFacts(bandwidth=1e6, operations=1e9, single_operations=1e8, launch=1e-3)


@gp.operator
def doubled(f):
    return _readTensor(f) * 2


@gp.operator
def across(f):
    return _readTensor(f, _row, _column - 1) + _readTensor(f, _row, _column + 1)


@pytest.mark.parametrize("which", [found.name for found in gp.devices()])
def test_facts_are_measured_once_and_kept(which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = gp.device(which)
    monkeypatch.setattr(config, "cache", tmp_path)
    monkeypatch.setattr(device_facts, "_known", {})
    monkeypatch.setattr(device_facts, "COPIED", {"cpu": 1024, "gpu": 1024})
    monkeypatch.setattr(device_facts, "COMPUTED", {"cpu": 1024, "gpu": 1024})
    found = facts_of(backend)
    if which == "reference":
        assert found is None
        return
    assert found is not None
    assert min(vars(found).values()) > 0
    monkeypatch.setattr(device_facts, "_known", {})
    monkeypatch.setattr(device_facts, "_measured", lambda backend: pytest.fail("measured again"))
    assert facts_of(backend) == found
    assert facts_of(backend) == found


def test_a_kernel_that_only_moves_is_predicted_by_its_bytes() -> None:
    kernel = doubled(gp.ScalarField(np.ones((100, 125), np.float32))).node.call.kernel
    (found,) = predictions(kernel, gp.device("reference").target, SLOW)
    assert found["method"] == "plain"
    assert found["ms"] == pytest.approx(1 + 100)  # the launch, and 100,000 bytes


def test_a_kernel_that_computes_is_predicted_by_its_operations() -> None:
    kernel = across(gp.ScalarField(np.ones((100, 125), np.float32))).node.call.kernel
    fast = DeviceFacts(bandwidth=1e15, operations=1e9, single_operations=1e6, launch=0.0)
    (found,) = predictions(kernel, gp.device("reference").target, fast)
    assert found["ms"] == pytest.approx(13 * 12500 / 1e6 * 1e3)  # two reads of six operations each, and an addition
