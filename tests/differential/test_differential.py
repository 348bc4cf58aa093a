"""Random programs compute what NumPy, Python's integers and mpmath compute. `python -m tests.differential` runs many more."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import gpuop as gp

from .kinds import KINDS, program
from .program import failure, script

DEVICES = [d.name for d in gp.devices()]
SEEDS = {"reference": 24, DEVICES[0]: 6}  # compiling takes longer than interpreting
FEWEST = 3


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("kind", KINDS)
def test_programs(kind: str, on: str) -> None:
    first = 1000 * DEVICES.index(on)
    for seed in range(first, first + SEEDS.get(on, FEWEST)):
        made = program(kind, seed)
        found = failure(made, on)
        assert found is None, script(made, on, found)


@pytest.mark.parametrize(
    "mistake", ["reflect is off by one", "% of fields truncates", "a state is read late", "conversions wrap"]
)
def test_a_planted_mistake_is_found(mistake: str) -> None:
    """In a process of its own; `python -m tests.differential.plants` plants them all."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.differential.plants", mistake], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_seed_is_a_program() -> None:
    for kind in KINDS:
        assert program(kind, 3).text() == program(kind, 3).text() != program(kind, 4).text()


@pytest.mark.parametrize("kind", KINDS)
def test_programs_compare_something(kind: str) -> None:
    seen = [value for seed in range(20) for value in program(kind, seed).expected()]
    assert len(seen) > 30
    assert sum(value.array.size for value in seen) > 300
    assert len({value.dtype for value in seen}) > 3
    assert sum(len(np.unique(value.array)) > 1 for value in seen) > len(seen) / 4
