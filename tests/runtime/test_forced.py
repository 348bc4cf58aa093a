"""Schedules of GPUs on grids from one point to less than a window, a tile or a warp, under every border, behind every view."""

from __future__ import annotations

import pytest

from tests.runtime.forced import FORCED, compared
from tests.runtime.mutations import MUTATIONS


@pytest.mark.parametrize("name", FORCED)
def test_small_grids(name: str) -> None:
    count = compared(name)
    assert count or FORCED[name].method is None, "no kernel has the schedule"


@pytest.mark.parametrize("name", MUTATIONS)
def test_mistakes_by_one_are_found(name: str) -> None:
    assert not MUTATIONS[name].missed()
