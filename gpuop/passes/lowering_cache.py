"""The cache on disk of results of lowering, shared by processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from gpuop.base.cache.disk_memo import DiskMemo
from gpuop.base.config import config
from gpuop.ir.kernel import Kernel
from gpuop.ir.target import Target
from gpuop.ir.text import content
from gpuop.passes.pipeline import PIPELINE, lowering, unscheduled
from gpuop.passes.schedules.methods import METHODS, choice

V = TypeVar("V")
SUITED = DiskMemo[bool]("suited", bool, bool)


def cached_on_disk(memo: DiskMemo[V], kernel: Kernel, target: Target, make: Callable[[], V]) -> V:
    """A value of a recorded kernel: from disk, unless the settings trace passes, or the pipeline has been changed."""
    steps, methods, settings = lowering()
    if config.debug or config.verify or (steps, methods) != (PIPELINE, METHODS):
        return make()
    return memo.find((content(kernel), repr(target), repr(settings)), make)


def suited(kernel: Kernel, target: Target) -> bool:
    """Return whether a schedule of the target suits a kernel."""
    return cached_on_disk(SUITED, kernel, target, lambda: choice(unscheduled(kernel, target)) is not None)
