"""The conformance suite as tests: `pytest --pyargs gpuop.testing.test_conformance --gpuop-devices=all`."""

from __future__ import annotations

import pytest

from gpuop.testing.conformance import conformance
from gpuop.testing.programs import PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(gpuop_device: str, program: str) -> None:
    conformance(gpuop_device, only=[program])
