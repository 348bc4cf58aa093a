"""A device that computes wrongly is not trusted, and what it gets wrong is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.cache import blob_store
from gpuop.base.config import config
from gpuop.ir.ops import OPS
from gpuop.runtime import devices
from gpuop.runtime.devices import Device
from gpuop.runtime.reference.device import Reference
from gpuop.runtime.self_test import mistake

WRONG: dict[str, tuple[Any, str]] = {  # an operator, what a driver takes it for, and what is said
    "div": (np.multiply, "it computes [2.0, 2.0, 4.0, 12.0, 16.0]"),
    "invert": (
        np.positive,
        "it computes max(x, ~y) wrongly, [9, 7, 0, 7, 9] instead of [-10, -5, 0, 7, 2147483647]",
    ),
    "neg": (
        np.positive,
        "it computes max(max(-x, -y), -z) wrongly, [9, 7, 7, 7, 9] instead of [-7, 5, 0, 5, -7]",
    ),
    "shr": (lambda x, n: x * 0, "it computes -x >> 31 wrongly, [0, 0, 0, 0, 0] instead of [-1, 0, 0, -1, -1]"),
    "min": (np.maximum, "it computes min(abs(x), 0) wrongly, [0, 5, 0, 7, 9] instead of [-2147483648, 0, 0, 0, 0]"),
    "eq": (
        np.not_equal,
        "it computes clip((short)x, 0, 7) == 7 wrongly, [1, 1, 1, 0, 0] instead of [0, 0, 0, 1, 1]",
    ),
    "mul": (np.add, "it computes -x * x behind it wrongly, 0.0 instead of -900.0 in thread 0"),
}


@pytest.fixture(autouse=True)
def untried(tmp_path, monkeypatch) -> None:
    """No driver is trusted yet."""
    monkeypatch.setattr(config, "cache", tmp_path)


@pytest.mark.parametrize("op", WRONG)
def test_what_is_wrong_is_said(op, monkeypatch):
    meaning, message = WRONG[op]
    monkeypatch.setitem(OPS, op, replace(OPS[op], numpy=meaning))
    assert mistake(Reference()) == message
    assert mistake(Reference()) == message  # and it is not trusted by the next process


def test_such_a_device_is_refused(monkeypatch):
    monkeypatch.setitem(OPS, "invert", replace(OPS["invert"], numpy=np.positive))
    monkeypatch.setattr(devices, "_open", {})
    monkeypatch.setattr(devices, "_failed", {})
    with pytest.raises(gp.DeviceError, match=r"reference fails the self-test: it computes max\(x, ~y\) wrongly"):
        gp.device("reference")


def test_expressions_are_tried_once(monkeypatch):
    references: list[bytes] = []
    store = blob_store.store
    monkeypatch.setattr(blob_store, "store", lambda *args: (references.append(args[1]), store(*args)))
    assert mistake(Reference()) == mistake(Reference()) == ""
    assert references == [b""]


def test_a_warning_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a driver that refuses a kernel, whose text is in the error."""

    reference = gp.device("reference")

    def opening(name: str, checked: bool = False) -> Any:
        if name == "opencl:7":
            raise gp.DeviceError(
                f"{name} fails the self-test: error: undeclared identifier\n  1 | __kernel void f(\n  2 | {{"
            )
        return reference

    results = [(Device("opencl:7", "a driver"), None), (Device("reference", "NumPy"), None)]
    monkeypatch.setattr(devices, "_discovered", results)
    monkeypatch.setattr(devices, "opened", opening)
    monkeypatch.setattr(config, "device", "")
    with pytest.warns(UserWarning, match="skips a device") as caught_warning:
        assert devices.current() is reference
    (warning,) = caught_warning
    assert str(warning.message) == (
        "gpuop skips a device: opencl:7 fails the self-test: error: undeclared identifier (`gpuop devices` prints the rest)"
    )
