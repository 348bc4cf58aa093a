"""Whatever interrupts a graph, its states and its tick are of one step, and what follows is right.

`benchmarks/interrupts.py` does all of it at every place.
"""

from __future__ import annotations

import sys

import pytest

import gpuop as gp

from .cases import NAMES
from .trials import ACTIONS, trials

DEVICES = [device.name for device in gp.devices()]
bytecodes = pytest.mark.skipif(sys.version_info < (3, 11), reason="what handles an exception is in a table since 3.11")


@bytecodes
@pytest.mark.parametrize("on", dict.fromkeys((DEVICES[0], "reference")))
@pytest.mark.parametrize("name", NAMES)
def test_handlers_of_signals(name, on):
    """An exception between two bytecodes of the main thread, where CPython runs them."""
    with trials(name, on) as all_of_them:
        all_of_them.everywhere("step", 12 if on == "reference" and name == "iterations" else 22)
        for action in ACTIONS[1:]:
            all_of_them.everywhere(action, 4)
        all_of_them.everywhere("step", 4, first=True)
    assert not all_of_them.result.torn, all_of_them.result
    assert all_of_them.result.interrupts > 20


@pytest.mark.parametrize("on", [name for name in DEVICES if name != "reference"])
@pytest.mark.parametrize("name", NAMES)
def test_drivers_that_fail(name, on):
    """Every call of the driver in turn, for want of memory and otherwise."""
    with trials(name, on) as all_of_them:
        for action in ACTIONS:
            all_of_them.failures(action)
    assert not all_of_them.result.torn, all_of_them.result
    assert all_of_them.result.interrupts > 8


@pytest.mark.parametrize("on", DEVICES)
def test_random_moments(on):
    for name in ("buffered", "in_place", "streams"):
        with trials(name, on) as all_of_them:
            all_of_them.randomly(30)
        assert not all_of_them.result.torn, all_of_them.result
