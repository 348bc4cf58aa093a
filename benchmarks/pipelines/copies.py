"""The measure: a copy of as many bytes, by the device itself or by a thread for each core."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import gpuop as gp

from .contestant import Contestant


def copy_of(nbytes: int, backend: Any) -> Contestant:
    """A copy that moves so many bytes: half of them are read, half written."""
    words = max(nbytes // 8, 1)
    if backend.target.device == "cpu":
        return _by_threads(words)
    kind = gp.FieldType(words, dtype="float32")
    source, target = backend.empty(kind), backend.empty(kind)

    def run(times: int) -> None:
        for _ in range(times):
            backend.copy(kind, source, target)
        backend.synchronize()

    return Contestant(run, tuple)


def _by_threads(words: int) -> Contestant:
    cores = os.cpu_count() or 1
    pool = ThreadPoolExecutor(cores)
    parts = [np.array_split(np.ones(words, np.float32), cores) for _ in range(2)]

    def run(times: int) -> None:
        for _ in range(times):
            for _ in pool.map(np.copyto, *parts):
                pass

    return Contestant(run, tuple)
