"""The values of a call that kernels read and write where the caller's arrays lie, and those that are copied to planes.

Kernels that read or write own points alone take an array as it lies. Others gain by their schedules, which some layouts rule out;
a copy costs little beside that.
"""

from __future__ import annotations

from functools import lru_cache

from gpuop.fusion.cross_thread import access_pattern
from gpuop.fusion.launch import PlannedLaunch
from gpuop.fusion.plan import Plan
from gpuop.fusion.schedule_choice import way_of
from gpuop.ir.kernel import Kernel
from gpuop.ir.target import Target

TABLE = 32  # a result has at least so many times the points of a field that counts as a table


@lru_cache(maxsize=256)
def read_around(plan: Plan) -> frozenset[int]:
    """The values of kernels that read or write at other points than their own."""
    return frozenset(
        value
        for launch in plan.launches
        if isinstance(launch.kernel, Kernel) and (_gathers(launch.kernel) or launch.kernel.intermediates)
        for value in (*launch.inputs, *launch.outputs)
    )


def _gathers(kernel: Kernel) -> bool:
    """Return whether a kernel reads at other points more than tables, such as factors of rows and columns."""
    points = max((output.param.type.field_shape.points for output in kernel.outputs), default=0)
    return any(TABLE * field.type.field_shape.points > points for field in access_pattern(kernel).gathers)


@lru_cache(maxsize=256)
def better_in_planes(planes: Plan, as_they_lie: Plan, target: Target) -> frozenset[int]:
    """The values of kernels whose schedules are lost in a plan for arrays as they lie, beside that for planes."""
    around = read_around(planes)
    if len(planes.launches) < len(as_they_lie.launches):
        return around
    pairs = zip(planes.launches, as_they_lie.launches, strict=False)
    lost = {value for a, b in pairs if _way(a, target) != _way(b, target) for value in (*a.inputs, *a.outputs)}
    return around & lost


def _way(launch: PlannedLaunch, target: Target) -> str:
    return way_of(launch.kernel, target) if isinstance(launch.kernel, Kernel) else ""
