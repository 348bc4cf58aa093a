"""Settings of the random tests, and the recorded program's own meaning to compare with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from hypothesis import HealthCheck, settings

import gpuop as gp
from gpuop.runtime import devices
from gpuop.runtime.reference.device import Reference
from tests.nightly import first_seed

REFERENCE = Reference()
INTERPRETED = ("reference", "lowered", "sm_90", "vectorized")


def profile(device: str, interpreted: int, compiled: int) -> settings:
    """The same examples each time; compiling one takes longer than interpreting twenty, and on other drivers than the best
    twice as long; what the passes make of one takes three times as long as what was recorded."""
    if device in INTERPRETED:
        most = interpreted if device == "reference" else interpreted // 3
    else:
        most = compiled if device == gp.devices()[0].name else compiled // 2
    return settings(
        max_examples=most,
        derandomize=not first_seed(), database=None, deadline=None, suppress_health_check=list(HealthCheck),
    )  # fmt: skip


@contextmanager
def reference() -> Iterator[None]:
    """Use the interpreter of recorded programs, whatever the `device` fixture has put in its place."""
    with mock.patch.dict(devices._open, reference=REFERENCE), gp.use_device("reference"):
        yield
