"""Tests of `make test-all` alone, and the seeds of random programs on a day."""

from __future__ import annotations

import os
import secrets

import pytest

from tests.rotation import day

QUARTERS = 4  # days that share the random programs of a night
ALL, SEED = "GPUOP_TEST_ALL", "GPUOP_TEST_SEED"  # in the environment, so that processes which tests start have them


def configure(config: pytest.Config) -> None:
    """Note what pytest was asked for. Processes of xdist inherit what the first one has drawn."""
    if config.getoption("--all"):
        os.environ[ALL] = "1"
    seeds = config.getoption("--seed")
    if seeds and "PYTEST_XDIST_WORKER" not in os.environ:
        os.environ[SEED] = str(secrets.randbelow(10**9) if seeds == "fresh" else int(seeds))


def is_nightly() -> bool:
    """Return whether every form and device takes every case."""
    return os.environ.get(ALL) == "1"


def first_seed() -> int:
    return int(os.environ.get(SEED) or 0)


def seeds(first: int, count: int) -> range:
    """The seeds of a test: by day a quarter of them, tomorrow the next; with --seed others."""
    begin = first_seed() + first
    if is_nightly():
        return range(begin, begin + count)
    few = -(-count // QUARTERS)
    begin += min(day() % QUARTERS * few, count - few)
    return range(begin, begin + few)


def left_to_nightly(reason: str) -> None:
    """Skip a case that takes long and others stand for, but not at night."""
    if not is_nightly():
        pytest.skip(reason)
