"""The predicted time of kernels on a typical CPU or GPU, in operations of the same time.

Decisions by these times are the same on all devices of a kind, without a device, and on each run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from gpuop.base.cache.disk_memo import DiskMemo
from gpuop.base.config import config
from gpuop.fusion.report.kernel_time import duration, least_apart, least_recorded, moved
from gpuop.fusion.report.workload import ATOMIC, NEIGHBOUR, OPERATION, VECTOR
from gpuop.ir.device_model import LAUNCH, MODELS, WEIGHTS, DeviceFacts, DeviceModel
from gpuop.ir.kernel import Kernel
from gpuop.ir.target import Target
from gpuop.passes.lowering_cache import cached_on_disk, suited
from gpuop.passes.resolve_target import resolve_target

PREDICTED = DiskMemo[float]("predicted", float, float)
RECORDED = DiskMemo[float]("recorded", float, float)
APART = DiskMemo[float]("apart", float, float)


def _facts(model: DeviceModel) -> DeviceFacts:
    """The rates of a typical device, in operations."""
    kinds = {OPERATION: 1.0, VECTOR: 1.0, NEIGHBOUR: model.neighbour, ATOMIC: model.atomic}

    def seconds(kind: str) -> float:
        op, _, dtype = kind.partition(" ")
        return kinds.get(kind) or WEIGHTS.get(op, 1.0 if op == "add" else model.function) * (
            2 if dtype == "float64" else 1
        )

    return DeviceFacts(LAUNCH * model.byte, ((LAUNCH, LAUNCH * model.byte),), seconds)


FACTS = {device: _facts(model) for device, model in MODELS.items()}


def predicted(kernel: Kernel, target: Target) -> float:
    """The time of a kernel on a typical device, in operations; infinite if no schedule keeps its intermediates."""
    return _predicted(kernel, target, config.generating)


def least(kernel: Kernel, target: Target) -> float:
    """The least time of a kernel: a launch, and the time to move its bytes."""
    facts = FACTS[target.device]
    return facts.launch + facts.moving(moved(kernel))


def apart(kernel: Kernel, clusters: Sequence[Sequence[Kernel]], enough: float, target: Target) -> float:
    """A lower bound of the time of several kernels in the place of one, as of `least_apart`."""
    facts = FACTS[target.device]
    make: Callable[[], float] = lambda: least_apart(clusters, moved(kernel), enough, target, facts)  # noqa: E731
    return cached_on_disk(APART, kernel, target, make)


def recorded(kernel: Kernel, target: Target) -> float:
    """A lower bound of the time of one kernel or several that compute the same, without lowering them."""
    return cached_on_disk(RECORDED, kernel, target, lambda: least_recorded(kernel, target, FACTS[target.device]))


@lru_cache(maxsize=256)
def _predicted(kernel: Kernel, target: Target, settings: tuple[object, ...]) -> float:
    if kernel.intermediates and not suited(kernel, target):
        return math.inf
    make: Callable[[], float] = lambda: duration(resolve_target(kernel), target, FACTS[target.device])  # noqa: E731
    return cached_on_disk(PREDICTED, kernel, target, make)
