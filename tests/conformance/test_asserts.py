"""`_assert` on every device, and what a device cannot run: work-groups and local memory beyond its limits."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from gpuop.runtime.devices import current

from .compare import same


@gp.operator
def doubled(f, most):
    v = _readTensor(f)
    _assert(v < most, "the value is small")
    return v * 2


def test_assertions_are_free_unless_checked(device: str) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    same(doubled(gp.ScalarField(x), 5.0), x * 2)


@pytest.mark.parametrize("name", [d.name for d in gp.devices()])
def test_the_first_that_fails_is_reported(name: str) -> None:
    x = np.zeros((3, 4), np.float32)
    with gp.use_device(name, checked=True):
        same(doubled(gp.ScalarField(x), 5.0), x)
        x[2, 1] = 7
        with pytest.raises(gp.SemanticError) as caught:
            doubled(gp.ScalarField(x), 5.0).numpy()
        same(doubled(gp.ScalarField(x), 8.0), x * 2)
    message = str(caught.value)
    assert "an assertion does not hold: the value is small; the first thread seen is row 2, column 1" in message
    assert message.endswith('_assert(v < most, "the value is small")')


@pytest.mark.parametrize("name", [d.name for d in gp.devices()])
def test_no_thread_fails(name: str) -> None:
    with gp.use_device(name, checked=True):
        assert doubled(gp.ScalarField(np.zeros((0, 4), np.float32)), 5.0).numpy().shape == (0, 4)


def limits() -> tuple[int, int] | None:
    """Bytes of local memory and threads of a group that the device in use has; the reference has no limits."""
    device = getattr(current(), "device", None)
    return None if device is None else (device.local_mem_size, device.max_work_group_size)


def test_more_local_memory_than_there_is(device: str) -> None:
    found = limits()
    if found is None:
        return

    @gp.operator
    def wasteful(f):
        much = _local(_floatArray(found[0] // 4 + 1))
        much[_localColumn] = _readTensor(f)
        return much[_localColumn]

    message = f"has {found[0]} bytes of local memory, and with `much` {found[0] // 4 * 4 + 4} are used"
    with pytest.raises(gp.DeviceError, match=message):
        wasteful(gp.ScalarField(np.zeros(8, "f"))).numpy()


def test_larger_groups_than_there_are(device: str) -> None:
    found = limits()
    if found is None:
        return

    @gp.operator
    def crowded(f):
        _localThreads(2 * found[1])
        return _readTensor(f) + _localColumn

    message = f"runs work-groups of up to {found[1]} threads, and `crowded` asks for 1×1×{2 * found[1]}"
    with pytest.raises(gp.DeviceError, match=message):
        crowded(gp.ScalarField(np.zeros(8, "f"))).numpy()
