"""The same numbers in every run, whatever the order of the tests."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _numbers(request: pytest.FixtureRequest) -> None:
    if hasattr(request.module, "rng"):
        request.module.rng = np.random.default_rng(23)
