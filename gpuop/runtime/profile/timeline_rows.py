"""The rows of a `gp.profile`, their table, and the trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from gpuop.runtime.profile.profiler import table

HEADS = ("kernel", "count", "ms", "predicted", "share")
HOST = "host"


@dataclass(frozen=True)
class LaunchTime:
    """One launch of a kernel, one copy, or one span of the host's.

    Attributes:
        name: the kernel's, or that of a Python function on the host; "upload", "download" or "copy" (on the device); of the
            host, "record" (calls of operators and functions of fields), "convert" (arrays to fields and back), "prepare"
            (finding what was planned and compiled before), "plan" and "compile" (what was not), "enqueue" (giving the device
            work) or "wait" (for the device).
        operators: the names of what was fused into a kernel.
        device, queue: their names; "" is the device's main queue. Of the host, "host" and the thread's name.
        start_ms: since the profile began, by the host's clock.
        ms: what the device took, or the host where no device's clock was asked.
        kind: "kernel", which Python functions are too, "copy", or "host".
        lines: of a kernel the user's lines that its operators are from, as "file.py:12", each once; of kernels that equal others
            those of the first ones.
    """

    name: str
    operators: tuple[str, ...]
    device: str
    queue: str
    start_ms: float
    ms: float
    kind: str = "kernel"
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class KernelSum:
    """All launches of a kernel on a device, all copies of a name, or all of what the host did under a name.

    Attributes:
        name, operators, device, kind, lines: as of LaunchTime.
        count: how many launches.
        ms: their sum; of the host, without spans that lie in others.
        predicted_ms: what `explain` predicts for so many; 0 where it does not.
    """

    name: str
    operators: tuple[str, ...]
    device: str
    count: int
    ms: float
    predicted_ms: float
    kind: str = "kernel"
    lines: tuple[str, ...] = ()


def table_of(device: str, rows: Sequence[KernelSum], wall_ms: float) -> str:
    """Return the rows of a device, or of the host; shares are of the wall time."""
    count, total = sum(row.count for row in rows), sum(row.ms for row in rows)
    whole = wall_ms if device == HOST else total
    cells = [("", *HEADS[1:]) if device == HOST else HEADS]
    for r in rows:
        predicted = f"{r.predicted_ms:.3g}" if r.predicted_ms else ""
        cells.append((r.name, str(r.count), f"{r.ms:.4f}", predicted, f"{r.ms / (whole or 1.0):.0%}"))
    if device == HOST:
        rest = max(wall_ms - total, 0.0)
        cells.append(("elsewhere", "", f"{rest:.4f}", "", f"{rest / (wall_ms or 1.0):.0%}"))
    cells.append(
        ("wall time", "", f"{wall_ms:.4f}", "", "") if device == HOST else ("all", str(count), f"{total:.4f}", "", "")
    )
    operators = ["" if device == HOST else "operators", *map(_made_of, rows)]
    lines = [f"{line}  {names}".rstrip() for line, names in zip_longest(table(cells), operators, fillvalue="")]
    return "\n".join([device, *lines])


def _made_of(row: KernelSum) -> str:
    """Return a kernel's operators, and their lines."""
    return ", ".join(row.operators) + (f" ({', '.join(row.lines)})" if row.lines else "")


def trace_of(spans: Sequence[LaunchTime]) -> dict[str, Any]:
    """Return the trace for chrome://tracing: a process for each device and the host, a track for each queue and thread."""
    devices = list(dict.fromkeys(span.device for span in spans))
    queues = list(dict.fromkeys((span.device, span.queue) for span in spans))
    events: list[dict[str, Any]] = [_named("process", devices.index(d) + 1, 0, d) for d in devices]
    events += [_named("thread", devices.index(d) + 1, n, q or "main queue") for n, (d, q) in enumerate(queues)]
    for span in spans:
        place = {"pid": devices.index(span.device) + 1, "tid": queues.index((span.device, span.queue))}
        times = {"ts": 1e3 * span.start_ms, "dur": 1e3 * span.ms}
        arguments = {"operators": ", ".join(span.operators), "lines": ", ".join(span.lines)}
        events.append({"name": span.name, "cat": span.kind, "ph": "X", **place, **times, "args": arguments})
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": f"{what}_name", "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
