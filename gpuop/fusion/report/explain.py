"""A plan as text for people: what was fused, what was left apart and why, and the bytes that move."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from gpuop.base.errors import SemanticError
from gpuop.fusion.cost import amount
from gpuop.fusion.plan import Plan
from gpuop.fusion.report.line_summary import FEW, summary
from gpuop.fusion.report.plan_report import Facts, report
from gpuop.ir.device_model import DeviceFacts
from gpuop.ir.kernel import EXACT
from gpuop.ir.target import Target
from gpuop.passes.coarsening_factor import ONE_BY_ONE

FORMS = {
    "scalar": "",
    "wide": ", which are neighbours in memory",
    "spaced": ", a work-group apart",
    "vector": ", as vectors",
}
METHODS = {
    "alone": "one operator",
    "registers": "fused through registers",
    "stage": "kept as intermediates for neighbours",
    "side by side": "side by side, reading the same",
    "recomputed": "recomputed where it is read",
}

CLEARLY = 1.05  # the least ratio of predicted times that counts as a difference
FORMATS = ("text", "full", "json")
MOST_PAIRS = 8  # pairs left apart that are listed of many kernels
MOST_IN_ORDER = 12  # operators of a line; in longer lists each place occurs once

Repacked = tuple[Sequence[int], Sequence[int]]
WHEN = {
    "once": "computed once: nothing that it depends on changes",
    "when set": "computed when a parameter that it depends on is set",
}


def explain(
    plan: Plan,
    format: str = "text",
    labels: Mapping[int, str] | None = None,
    target: Target | None = None,
    device: DeviceFacts | None = None,
    again: str = "",
    repacked: Repacked = ((), ()),
    tier: str = "",
) -> str:
    """The report of a plan as text, or as JSON; with lanes where a target is given, with predicted times where a device is.

    Args:
        format: "text", which has a line for each of many kernels; "full", text with all that is known of each; "json".
        again: why a pipeline was traced once more.
        repacked: arguments that the host copies from interleaved arrays to planes, and results that it copies back.
        tier: the tier of the kernels of a pipeline that has several sizes.

    Raises:
        SemanticError: another format.
    """
    if format not in FORMATS:
        raise SemanticError(f'there is no format {format!r}; one of "text", "full" and "json"')
    facts = {**report(plan, labels, target, device), "traced_again": again, **_repacked(plan, labels or {}, repacked)}
    facts["tier"] = tier
    if format == "json":
        return json.dumps(facts, indent=2, ensure_ascii=False)
    brief = format == "text" and sum(1 for _ in _all_kernels(facts)) > FEW
    return _text(facts, plan.program.cycle is not None, brief)


def _text(facts: Facts, steps: bool, brief: bool) -> str:
    calls = f" and {_count(facts['library_calls'], 'library call')}" if facts["library_calls"] else ""
    kernels = sum(1 for each in _all_kernels(facts) if _kind(each) == "kernel")
    count = _count(facts["kernel_count"], "kernel")
    if kernels != facts["kernel_count"]:
        count = f"{_count(kernels, 'kernel')} in {_count(facts['kernel_count'], 'launch')}"
    lines = [f"{count}{calls} for {_count(facts['operator_count'], 'operator')}"]
    lines += summary(facts["lines"]) + _launches(facts, brief)
    states = [state for state in facts["states"] if state["kernel"] is None and state["takes"] == "buffer"]
    if states:
        lines.append(f"states that take a buffer, and copy nothing: {_taking(states)}")
    if facts["kernels"]:
        moved, floor = amount(facts["moved_bytes"]), amount(facts["floor_bytes"])
        who = "a step moves" if steps and facts["step_bytes"] == facts["moved_bytes"] else "the kernels move"
        lines.append(f"{who} {moved}; inputs and outputs alone are {floor} (ratio {facts['ratio']:.3g})")
        if 0 < facts["step_bytes"] < facts["moved_bytes"]:
            lines.append(f"a step moves {amount(facts['step_bytes'])} of that: not all of them run at every step")
        lines.append(
            f"what kernels write takes {amount(facts['buffer_bytes'])} in {_count(facts['buffers'], 'buffer')}"
        )
    lines += _copies(facts)
    if facts["predicted"]:
        lines.append(_totals(facts["predicted"]))
    if facts["traced_again"]:
        lines.append(f"traced again: {facts['traced_again']}")
    if facts["tier"]:
        lines.append(facts["tier"])
    if brief:
        lines.append('`explain(format="full")` has the operators, schedules and work of each kernel')
    return "\n".join(lines)


def _launches(facts: Facts, brief: bool) -> list[str]:
    """The lines of all kernels, and of the pairs of operators between them."""
    lines = [line for kernel in facts["kernels"] for line in (_brief(kernel) if brief else _kernel(kernel))]
    if facts["apart"]:
        lines += ["left apart:", *_apart(facts["apart"], MOST_PAIRS if brief else None)]
    return lines


def _repacked(plan: Plan, labels: Mapping[int, str], values: Repacked) -> Facts:
    names, types = dict(plan.program.names) | dict(labels), plan.program.types
    rows = ([{"value": v, "name": names.get(v, ""), "bytes": types[v].nbytes} for v in part] for part in values)
    return dict(zip(("to_planes", "from_planes"), rows, strict=True))


def _copies(facts: Facts) -> list[str]:
    """The line on copies between interleaved arrays and planes, if the host makes any."""
    listed = {
        way: ", ".join(f"{value['name'] or '…'} ({amount(value['bytes'])})" for value in facts[key])
        for key, way in (("to_planes", "to planes"), ("from_planes", "back"))
    }
    parts = [f"{way} {values}" for way, values in listed.items() if values]
    return [f"interleaved arrays that the host copies at each call: {'; '.join(parts)}"] if parts else []


def _totals(predicted: Facts) -> str:
    """The predicted times of all kernels, and of a kernel for each operator."""
    apart = f"{predicted['unfused_ms']:.3g} ms in {_count(predicted['unfused_kernel_count'], 'kernel')}"
    slower = predicted["ms"] > CLEARLY * predicted["unfused_ms"]  # by more than the error of predictions
    less = ", which is less: `optimize=False` is that, and `profile` measures both" if slower else ""
    return f"predicted: {predicted['ms']:.3g} ms in all; with a kernel for each operator {apart}{less}"


def _all_kernels(facts: Facts) -> Iterator[Facts]:
    """The launches and calls of a plan, with those within iterations."""
    for each in facts["kernels"]:
        yield each
        for _, turn in _turns(each, ""):
            yield from _all_kernels(turn)


def _turns(kernel: Facts, number: str) -> list[tuple[str, Facts]]:
    """The plans that a launch repeats, each with the number that those of its kernels begin with."""
    repeats = kernel["repeats"]
    back = [(f"{number}.back.", repeats["back"]["turn"])] if repeats and repeats["back"] else []
    return [(f"{number}.", repeats["turn"]), *back] if repeats else []


def _kind(kernel: Facts) -> str:
    """The kind of a launch; only kernels count as kernels."""
    if kernel["repeats"]:
        return "iteration"
    return "kernel" if not kernel["where"] else "host function" if kernel["host"] else "library call"


def _taking(states: list[Facts]) -> str:
    return ", ".join(f"{state['name'] or '…'} that of {state['next_name'] or '…'}" for state in states)


def _apart(pairs: list[Facts], most: int | None) -> list[str]:
    """A line for each pair of operators, or for those that cost most; equal pairs are counted."""
    alike: dict[tuple[str, str, str], list[int]] = {}
    for pair in pairs:
        alike.setdefault((pair["producer"], pair["consumer"], pair["reason"]), []).append(pair["bytes"])
    rows = list(alike.items())
    if most is not None and len(rows) > most:
        rows.sort(key=lambda row: -sum(row[1]))
    lines = [
        f"  {producer} → {consumer}{f' ({len(costs)} times)' if len(costs) > 1 else ''}: {reason}; costs {amount(sum(costs))}"
        for (producer, consumer, reason), costs in rows[:most]
    ]
    return lines + [f"  and {_count(len(rows) - len(lines), 'more pair')}"] * (len(rows) > len(lines))


def _iterations(repeats: Facts) -> str:
    """The number of times that an iteration repeats the kernels below it, as text."""
    times, every, back = repeats["times"], repeats["every"], repeats["back"]
    pairs = ", two at a time" if repeats["together"] == 2 else ""
    repeated = "repeats" if back is None else "goes back through"
    memory = "" if back is None else _memory_of_states(back, every is None)
    if every is None:
        return f"{repeated} {_count(times, 'iteration')}{pairs}{memory}"
    return (
        f"{repeated} {'' if back is None else 'iterations '}until its condition holds, looking after every "
        + _count(every, "iteration")
        + (f", {_count(times, 'iteration')} at most" if times is not None else "")
        + pairs
        + memory
    )


def _memory_of_states(back: Facts, counted: bool) -> str:
    """The states that the way back through iterations keeps, as text."""
    if back["checkpoints"] is None:
        return f", with states of {amount(back['state_bytes'])} in memory as the device has room"
    most = f", with at most {_count(back['checkpoints'], 'state')} of {amount(back['state_bytes'])} in memory"
    return most + (f" ({_count(back['again'], 'iteration')} run again)" if counted else "")


def _brief(kernel: Facts, outer: str = "") -> list[str]:
    """The line of a kernel among many, and those of the kernels within an iteration."""
    how = [_head(kernel, outer)]
    if kernel["schedule"]:
        how.append(f"as {kernel['schedule']['method']}")
    if kernel["predictions"]:
        how.append(f"{kernel['predictions'][0]['ms']:.3g} ms predicted")
    turns = _turns(kernel, f"{outer}{kernel['number']}")
    return [
        ", ".join(how),
        *(f"    {line}" for number, turn in turns for each in turn["kernels"] for line in _brief(each, number)),
    ]


def _one(kernel: Facts) -> str:
    """The name of that which a kernel has many of."""
    return "point" if kernel["schedule"] or (kernel["lanes"] and kernel["lanes"]["count"] > 1) else "thread"


def _head(kernel: Facts, outer: str) -> str:
    """The first line of a kernel."""
    where = kernel["where"] or f"on {kernel['threads']} {_one(kernel)}s"
    if kernel["repeats"]:
        where = _iterations(kernel["repeats"])
    moves = f"reads {amount(kernel['read_bytes'])}, writes {amount(kernel['written_bytes'])}"
    return f"{_kind(kernel)} {outer}{kernel['number']}: {kernel['name']} {where}; {moves}"


def _kernel(kernel: Facts, outer: str = "") -> list[str]:
    """The lines of a kernel; of one within an iteration its number begins with that of `outer`."""
    one, number = _one(kernel), f"{outer}{kernel['number']}"
    lines = [_head(kernel, outer), *_operators(kernel["operators"])]
    inputs, outputs = (_names(kernel[side]) for side in ("inputs", "outputs"))
    if inputs + outputs != "……":
        lines.append(f"  {inputs} → {outputs}")
    if kernel["alternating"]:
        lines.append(
            f"  used as they lie, the elements of their points side by side: {', '.join(kernel['alternating'])}"
        )
    if kernel["repeats"]:
        turns = _turns(kernel, number)
        lines += [f"    {line}" for outer, turn in turns for inner in turn["kernels"] for line in _kernel(inner, outer)]
    elif kernel["operations"] is not None:
        least = "" if kernel["operations_exact"] else "at least "
        local = f", {amount(kernel['local_bytes'])} of local memory" if kernel["local_bytes"] else ""
        work, registers = _count(kernel["operations"], "operation"), _count(kernel["registers"], "register")
        lines.append(f"  {least}{work} per {one}, about {registers}{local}")
    if kernel["in_place"]:
        over = _names([value for value in kernel["outputs"] if value["value"] in kernel["in_place"]])
        lines.append(f"  in place, when the next step begins: {over}")
    if kernel["runs"] in WHEN:
        lines.append(f"  {WHEN[kernel['runs']]}")
    lines += _schedules(kernel) + _dynamic(kernel["dynamic"])
    slow = kernel["float_pairs"] is None
    lines += [INTEGERS_AND_DOUBLES if slow else INTEGERS] * bool(kernel["integer_sums"])
    lines += [PAIRS] * bool(kernel["float_pairs"])
    return lines + _lanes(kernel["lanes"]) + _predictions(kernel["predictions"])


def _schedules(kernel: Facts) -> list[str]:
    """The schedule of a kernel, and those that were pinned or would suit and are not taken."""
    lines = []
    if schedule := kernel["schedule"]:
        parameters = ", ".join(f"{name} {value}" for name, value in schedule.items() if name != "method")
        lines.append(f"  schedule: {schedule['method']}" + (f" ({parameters})" if parameters else ""))
    if pin := kernel["refused_pin"]:
        lines.append(f"  pinned: {pin['method']}, which does not suit: {pin['reason']}")
    if other := kernel["not_taken"]:
        lines.append(f"  not taken: {other['method']}, as {other['reason']}")
    return lines


def _dynamic(extents: Facts | None) -> list[str]:
    if extents is None:
        return []
    if extents["reason"]:
        return [f"  compiled for each size: {extents['reason']}"]
    within = [f"what {extents['looked']} asks of extents is a constant in it"] if extents["looked"] else []
    within += [f"{', '.join(map(str, extents['constants']))} in it is an extent"] if extents["constants"] else []
    unless = f", unless {' or '.join(within)}" if within else ""
    return [f"  compiled for any size: its extents are arguments{unless}"]


INTEGERS = "  weighted sums are integers, weights multiples of 2⁻ⁿ, as the device has no double: within 1"
INTEGERS_AND_DOUBLES = (
    "  weighted sums are integers, and doubles only where these may round otherwise, as double is slow"
)
PAIRS = "  double is computed in pairs of floats (2⁻⁴⁴), as the device has none"


def _predictions(predictions: list[Facts] | None) -> list[str]:
    """The predicted times of a kernel's schedules, that of the chosen one first."""
    times = [f"{each['ms']:.3g} ms as {each['method']}" for each in predictions or ()]
    return [f"  predicted: {', '.join(times)}"] if times else []


def _lanes(lanes: Facts | None) -> list[str]:
    if lanes is None or lanes["reason"] == ONE_BY_ONE:
        return []
    why = f": {lanes['reason']}" if lanes["reason"] else ""
    return [f"  {_count(lanes['count'], 'point')} per thread{FORMS[lanes['form']]}{why}"]


def _names(values: list[Facts]) -> str:
    """The names of values, and dots for those that have none."""
    named = [value["name"] for value in values if value["name"]]
    return ", ".join(named + ["…"] * (len(named) < len(values) or not values))


def _operators(operators: list[Facts]) -> list[str]:
    """A line for each method of fusion, and for each part beside others."""
    lines: dict[tuple[str, int | None], list[str]] = {}
    for op in operators:
        chosen = ", ".join(filter(None, (op["variant"], op["precision"] if op["precision"] != EXACT else "")))
        name = f"{op['name']} [{chosen}]" if chosen else op["name"]
        where = f"{name} ({op['file']}:{op['line']})" if op["file"] else str(name)
        part = op["part"] if op["method"] in ("registers", "stage") else None
        lines.setdefault((op["method"], part), []).append(where)
    remarks = dict.fromkeys(f"  {op['name']}: {op['remark']}" for op in operators if op["remark"])
    return [f"  {METHODS[method]}: {', '.join(_times(lines_of))}" for (method, _), lines_of in lines.items()] + [
        *remarks
    ]


def _times(names: list[str]) -> list[str]:
    if len(names) <= MOST_IN_ORDER:
        return names
    return [f"{each} {n} times" if n > 1 else each for each, n in Counter(names).items()]


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 'es' if what.endswith('ch') else 's'}"
