"""The states of a graph in reports of its plan: their next values, and how they take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuop.fusion.launch_frequency import Rate
from gpuop.fusion.plan import Plan


def states(plan: Plan, names: Mapping[int, str], made: Mapping[int, int]) -> list[dict[str, Any]]:
    """The states of a graph.

    Args:
        names: of values.
        made: values, by the kernels that make them.

    Returns:
        A list of {value, name, next (the value that it takes), next_name, kernel (that makes it; null for a state, a sensor or
        a constant), takes: "in place" (the kernel writes it over the state), "buffer" (the state's buffer is then that of the
        value, and nothing is copied) or "copy" (the value is there until a parameter is set)}.
    """
    cycle = plan.program.cycle
    takes = {state: "in place" for launch in plan.launches for _, state in launch.over}
    lasting = {value for launch in plan.launches if launch.rate is Rate.SET for value in launch.outputs}
    return [
        {
            "value": state,
            "name": names.get(state, ""),
            "next": value,
            "next_name": names.get(value, ""),
            "kernel": made.get(value),
            "takes": takes.get(state, "copy" if value in lasting else "buffer"),
        }
        for state, value in (cycle.nexts if cycle is not None else ())
    ]
