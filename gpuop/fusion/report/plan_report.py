"""A plan as data: what was fused and how, what was left apart and why, and the bytes that move."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuop.fusion.buffers import allocation
from gpuop.fusion.intermediates import staged
from gpuop.fusion.iteration import Iteration, Repeating, Reversal, is_begun, launches, repetitions
from gpuop.fusion.kernel_statistics import operations, points_of_thread, registers
from gpuop.fusion.launch import PlannedLaunch, Rate
from gpuop.fusion.plan import Apart, Plan
from gpuop.fusion.program import Op, network_of
from gpuop.fusion.report.line_summary import by_line
from gpuop.fusion.report.prediction import Prediction, launch_predictions, totals
from gpuop.fusion.schedule_choice import pin_refusal, scheduled
from gpuop.ir.device_model import DeviceFacts
from gpuop.ir.kernel import DeviceFunction, HostFunction, Kernel, Launchable
from gpuop.ir.nodes import Const
from gpuop.ir.target import Target
from gpuop.ir.visit import expressions
from gpuop.passes.double_as_pairs import has_doubles
from gpuop.passes.dynamic_extents import opened
from gpuop.passes.lower_fields import lower_fields
from gpuop.passes.pipeline import not_inside, unscheduled
from gpuop.passes.resolve_target import resolve_target
from gpuop.passes.scaled_sums import scaled_sums

Facts = dict[str, Any]
Names = Mapping[int, str]  # the names of values
Made = Mapping[int, int]  # values, by the kernels that make them
LEAST_EXTENT = 8  # smaller numbers of a kernel are not reported as extents
EFFORT = (
    *("operations", "operations_exact", "registers", "local_bytes", "lanes", "schedule", "refused_pin", "not_taken"),
    "integer_sums",
    "float_pairs",
)

RUNS = {Rate.ONCE: "once", Rate.SET: "when set", Rate.EVERY_STEP: "at every step"}


def report(
    plan: Plan,
    labels: Mapping[int, str] | None = None,
    target: Target | None = None,
    device: DeviceFacts | None = None,
) -> Facts:
    """The data of `explain`: numbers, texts, lists and dictionaries; equal for equal programs.

    Args:
        labels: names of values, before those of the program.
        target: what code is generated for.
        device: what times are predicted by.

    Returns:
        kernels: a list of what `_kernel` says, in order of launches, with predictions (as `_predictions` says, or null).
        lines: what `by_line` says.
        apart: a list of {producer, consumer, producer_kernel, consumer_kernel, value, name, bytes, reason}: two
            operators in different kernels though one feeds the other or both read a value; `bytes` is what that costs.
        states: those of `states`.
        kernel_count: how many are launched, as `iteration.launches` counts; library_calls: likewise; operator_count: as in plans.
        moved_bytes: what the kernels read and write, an iteration's at each of its turns (at most);
            step_bytes: of that, what those that run at every step move;
            floor_bytes: values from outside read once, and values wanted written once; ratio: of the two (1.0 of none).
        buffers, buffer_bytes: the memory of results, which values share in turn; predicted: what `_predicted` says.
    """
    names = dict(plan.program.names) | dict(labels or {})
    makers = {value: n for n, launch in enumerate(plan.launches, 1) for value in launch.outputs}
    kernels = [_kernel(plan, n, launch, names, makers, target) for n, launch in enumerate(plan.launches, 1)]
    for each, launch in zip(kernels, plan.launches, strict=True):
        if isinstance(launch.kernel, Repeating):
            each["repeats"] = _repeats(launch, launch.kernel, plan, target, device)
        each["predictions"] = _predictions(launch.kernel, target, device)
    return {
        "kernels": kernels,
        "lines": by_line(plan.launches, kernels, [moved_bytes(plan, launch) for launch in plan.launches]),
        "apart": [_apart(plan, apart, names) for apart in plan.apart],
        "states": states(plan, names, makers),
        **_totals(plan, set(makers)),
        "predicted": _predicted(plan, target, device),
    }


def _predicted(plan: Plan, target: Target | None, device: DeviceFacts | None) -> Prediction | None:
    """The result of `prediction.totals`; null without a device, and where kernels are for all sizes, which no time is known of."""
    if target is None or device is None or any(_is_open(launch.kernel, target) for launch in plan.launches):
        return None
    return totals(plan, target, device)


def _predictions(kernel: Launchable, target: Target | None, device: DeviceFacts | None) -> list[Prediction] | None:
    if target is None or device is None or _is_open(kernel, target):
        return None
    return launch_predictions(kernel, target, device)


def _is_open(kernel: Launchable, target: Target) -> bool:
    return isinstance(kernel, Kernel) and bool(kernel.dynamic) and opened(kernel, target).kernel is not None


def _totals(plan: Plan, values: set[int]) -> Facts:
    moved, memory = sum(moved_bytes(plan, launch) for launch in plan.launches), allocation(plan)
    outside = {v for launch in plan.launches for v in launch.inputs if v not in values}
    floor = sum(plan.program.types[v].nbytes for v in outside | (set(plan.program.results) & values))
    return {
        "kernel_count": launches(plan),
        "library_calls": launches(plan, DeviceFunction.where),
        "operator_count": len(plan.program.ops),
        "moved_bytes": moved,
        "step_bytes": sum(moved_bytes(plan, launch) for launch in plan.launches if launch.rate is Rate.EVERY_STEP),
        "floor_bytes": floor,
        "ratio": round(moved / floor, 3) if floor else 1.0,
        "buffers": len(memory.kinds),
        "buffer_bytes": memory.nbytes,
    }


def _kernel(plan: Plan, number: int, launch: PlannedLaunch, names: Names, makers: Made, target: Target | None) -> Facts:
    """A launch.

    Returns:
        number (from 1), name, threads ("480×640"), thread_count, work_group, host, where (a Python function works),
        operators: a list of {number, name, precision, variant, remark, file, line, method, part}: the method is "alone" (the
            only one), "registers" (it passes values on to others, or takes them, in registers), "stage" (its values are
            intermediates, which other threads read), "side by side" (it only shares reads with others) or "recomputed" (its
            value is computed again where others read it); operators of one part depend on one another, recomputed ones have none;
        inputs, outputs: lists of {value, name, type, bytes, kernel}, the kernel being the one that makes the value,
            null for a value from outside; read_bytes and written_bytes are their sums;
        alternating: the kernel's names of those that are arrays of the caller's where the elements of points alternate;
        what `_effort` says; dynamic: what `_dynamic` says;
        runs: when it is launched: "at every step", "once" (nothing that it depends on changes) or "when set" (only
            parameters that it depends on do);
        in_place: a list of the outputs (their values) that are written over states, when the next step begins;
        repeats: null, or of an iteration {times, every (null without a condition), together (the turns that are one launch),
            turn: such a report, of so many turns, back: null, or what `_way_back` says}.
    """
    kernel = resolve_target(launch.kernel) if isinstance(launch.kernel, Kernel) else launch.kernel
    inputs = [_value(plan, v, names, makers) for v in launch.inputs]
    outputs = [_value(plan, v, names, makers) for v in launch.outputs]
    return {
        "number": number,
        "name": kernel.name,
        "threads": str(kernel.grid),
        "thread_count": kernel.grid.threads,
        "work_group": list(kernel.work_group if isinstance(kernel, Kernel) else kernel.grid.group),
        "host": isinstance(kernel, HostFunction),
        "where": kernel.where,
        "operators": _operators(launch),
        **_moved(inputs, outputs),
        "alternating": _alternating(launch.kernel),
        **_effort(kernel, target),
        "dynamic": _dynamic(kernel, launch, target),
        "runs": RUNS[launch.rate],
        "in_place": [value for value, _ in launch.over],
        "repeats": None,
    }


def _moved(inputs: list[Facts], outputs: list[Facts]) -> Facts:
    read, written = (sum(value["bytes"] for value in values) for values in (inputs, outputs))
    return {"inputs": inputs, "outputs": outputs, "read_bytes": read, "written_bytes": written}


def _alternating(kernel: Launchable) -> list[str]:
    if not isinstance(kernel, Kernel):
        return []
    return [param.hint for param, layout in kernel.layouts if layout.alternates(param.type)]


def _effort(kernel: Launchable, target: Target | None) -> Facts:
    """The work of a thread; all null for host functions and iterations.

    Returns:
        operations (of a thread) and operations_exact (false if a loop with computed bounds counted once),
        registers (an estimate, of 32 bits), local_bytes (of a work-group);
        lanes: null without a target, else {count (points of a thread), form ("scalar", "wide", "spaced" or "vector"),
            reason (why there are not more, or not wide ones)};
        schedule: null where each thread computes its own points, else {method, and its parameters by their names};
        refused_pin: null, or of a schedule that is pinned and does not suit {method, reason};
        not_taken: null, or of a schedule that suits, whose accesses are not shown to be inside their arrays {method, reason};
        integer_sums: whether sums of integers with fractional weights are integers, as the target has no doubles or slow ones;
        float_pairs: whether pairs of floats compute double; null for a target with double.
    """
    if not isinstance(kernel, Kernel):
        return dict.fromkeys(EFFORT)
    size = opened(kernel, target) if target and kernel.dynamic else None
    refused = pin_refusal(kernel, target) if target else ""
    of_size = target if size is None or size.kernel is None else None
    chosen = scheduled(kernel, of_size) if of_size else None
    outside = not_inside(kernel, of_size) if of_size and chosen else ""
    not_taken = {"method": chosen[0].name, "reason": outside} if chosen and outside else None
    chosen = chosen if not outside else None
    work, points = operations(kernel), points_of_thread(kernel, of_size) if of_size and chosen is None else None
    integers, pairs = _without_doubles(kernel, target) if target else (False, None)
    return {
        "operations": work.count,
        "operations_exact": work.exact,
        "registers": registers(kernel),
        "local_bytes": sum(stmt.array.nbytes for stmt in kernel.shared("local")),
        "lanes": points and {"count": points.count, "form": points.form, "reason": points.reason},
        "schedule": chosen and {"method": chosen[0].name, **chosen[1]},
        "refused_pin": {"method": kernel.pin.method, "reason": refused} if kernel.pin and refused else None,
        "not_taken": not_taken,
        "integer_sums": integers,
        "float_pairs": pairs,
    }


def _without_doubles(kernel: Kernel, target: Target) -> tuple[bool, bool | None]:
    """Return whether integers stand for doubles, and pairs of floats; None for a target with double."""
    if not has_doubles(kernel):
        return False, None if target.has_fp64 else False
    lowered = lower_fields(unscheduled(kernel, target))
    scaled = scaled_sums(lowered)
    return scaled is not lowered, None if target.has_fp64 else has_doubles(scaled)


def _dynamic(kernel: Launchable, launch: PlannedLaunch, target: Target | None) -> Facts | None:
    """The compilation of a kernel of dynamic fields.

    Returns:
        null without a target or such fields, else {extents (those that it gets as arguments), reason (why it is compiled for each
        size; empty where it is not), looked (where Python has asked for extents, "" if nowhere), constants (its whole numbers that
        may be extents: if they are, a size for which they are others has another text)}.
    """
    if target is None or not isinstance(kernel, Kernel) or not kernel.dynamic:
        return None
    general = opened(kernel, target)
    looks = [op.line(op.kernel.looked) for op in launch.ops if isinstance(op.kernel, Kernel) and op.kernel.looked]
    return {
        "extents": list(general.values),
        "reason": general.reason,
        "looked": str(looks[0]) if looks else "",
        "constants": _extents_within(kernel),
    }


def _extents_within(kernel: Kernel) -> list[int]:
    """The constants of a kernel that equal extents of its dynamic fields, or positions next to their ends."""
    extents = {n for param in kernel.dynamic for n in param.type.field_shape if n >= LEAST_EXTENT}
    numbers = {e.value for e in expressions(kernel.body) if isinstance(e, Const) and e.type.kind in "iu"}
    return sorted(int(n) for n in numbers if not extents.isdisjoint((n, n + 1)))


def moved_bytes(plan: Plan, launch: PlannedLaunch) -> int:
    """The bytes that a kernel reads and writes; in an iteration for all `times`, or once without `times`."""
    if isinstance(launch.kernel, Repeating):
        kernel = launch.kernel
        forward = kernel.forward if isinstance(kernel, Reversal) else kernel
        runs = repetitions(plan, launch)
        return sum(n * _moved_by(part.plan(plan.limits)) for part, n in runs if n and part is not forward.until)
    return sum(plan.program.types[v].nbytes for v in (*launch.inputs, *launch.outputs))


def _moved_by(turn: Plan) -> int:
    return sum(moved_bytes(turn, inner) for inner in turn.launches)


def _repeats(
    launch: PlannedLaunch,
    kernel: Iteration | Reversal,
    plan: Plan,
    target: Target | None,
    device: DeviceFacts | None,
) -> Facts:
    forward, back = (kernel.forward, kernel) if isinstance(kernel, Reversal) else (kernel, None)
    every = forward.every if forward.until is not None else None
    part, count = forward.together(plan.limits)
    turn = report(part.plan(plan.limits), None, target, device)
    way = None if back is None else _way_back(back, is_begun(plan, launch), plan, target, device)
    return {"times": forward.times, "every": every, "together": count, "turn": turn, "back": way}


def _way_back(kernel: Reversal, begun: bool, plan: Plan, target: Target | None, device: DeviceFacts | None) -> Facts:
    """A gradient through an iteration.

    Returns:
        checkpoints: the most states in memory; null: by the device's memory; state_bytes: of one;
        again: the turns that are computed again; turn: a report of the way back through a turn.
    """
    return {
        "checkpoints": kernel.checkpoints,
        "state_bytes": sum(param.type.nbytes for param in kernel.forward.written),
        "again": kernel.again(begun),
        "turn": report(kernel.back.plan(plan.limits), None, target, device),
    }


def _value(plan: Plan, value: int, names: Names, makers: Made) -> Facts:
    kind = plan.program.types[value]
    name = names.get(value, "")
    return {"value": value, "name": name, "type": str(kind), "bytes": kind.nbytes, "kernel": makers.get(value)}


# --- operators ----------------------------------------------------------------------------------------------------------


def _operators(launch: PlannedLaunch) -> list[Facts]:
    part, staged_values = parts(launch), set(staged(launch.ops))
    rows = [_operator(op, "recomputed", None) for op in recomputed(launch)]
    for op in launch.ops:
        companions = sum(p == part[op.number] for p in part.values())
        method = (
            "stage"
            if staged_values.intersection(op.outputs)
            else "registers"
            if companions > 1
            else "side by side"
            if len(launch.ops) > 1
            else "alone"
        )
        rows.append(_operator(op, method, part[op.number]))
    return rows


def _operator(op: Op, method: str, part: int | None) -> Facts:
    file, line = (op.loc.path, op.loc.line) if op.loc is not None else ("", 0)
    return {
        "number": op.number,
        "name": op.kernel.name,
        "precision": op.precision,
        "variant": op.variant,
        "remark": op.kernel.remark if isinstance(op.kernel, Kernel) else "",
        "file": file,
        "line": line,
        "method": method,
        "part": part,
    }


def recomputed(launch: PlannedLaunch) -> list[Op]:
    """The operators that this kernel recomputes, each once."""
    return list({op.number: op for each in launch.ops for op in each.recomputed}.values())


def parts(launch: PlannedLaunch) -> dict[int, int]:
    """The part of a kernel that each operator is in: parts are connected by values in registers."""
    import networkx as nx

    connected = nx.weakly_connected_components(network_of(launch.ops))
    return {number: k for k, part in enumerate(connected) for number in part}


def _apart(plan: Plan, apart: Apart, names: Names) -> Facts:
    home = {op.number: n for n, launch in enumerate(plan.launches, 1) for op in launch.ops}
    feeds = apart.value in apart.producer.outputs and apart.value not in plan.program.results
    passes = 2 if feeds else 1  # written and read, or only read once more
    return {
        "producer": apart.producer.kernel.name,
        "consumer": apart.consumer.kernel.name,
        "producer_kernel": home.get(apart.producer.number),
        "consumer_kernel": home.get(apart.consumer.number),
        "value": apart.value,
        "name": names.get(apart.value, ""),
        "bytes": plan.program.types[apart.value].nbytes * passes,
        "reason": apart.reason,
    }


def states(plan: Plan, names: Mapping[int, str], makers: Mapping[int, int]) -> list[dict[str, Any]]:
    """The states of a graph.

    Args:
        names: of values.
        makers: values, by the kernels that make them.

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
            "kernel": makers.get(value),
            "takes": takes.get(state, "copy" if value in lasting else "buffer"),
        }
        for state, value in (cycle.nexts if cycle is not None else ())
    ]
