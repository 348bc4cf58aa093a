"""`gp.profile`: kernels and copies inside a `with`, in all threads, by the device's clock, and the host's work; table and trace."""

from __future__ import annotations

import json
import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any

from gpuop.base.errors import StaysHere
from gpuop.base.misspelt import hinted
from gpuop.base.records import dataclass
from gpuop.base.reentrant import context
from gpuop.base.trace import observers
from gpuop.fusion.launch import PlannedLaunch
from gpuop.fusion.plan import Plan
from gpuop.fusion.report.plan_report import recomputed
from gpuop.ir.kernel import Kernel, Launchable
from gpuop.ir.text import content
from gpuop.runtime.base.backend import Backend, Launch, Part
from gpuop.runtime.execute import Prepared, Repeated, followers
from gpuop.runtime.profile.profiler import InstrumentedPlan, Ran, lines_of, predicted_ms, table

HEADS = ("kernel", "count", "ms", "predicted", "share")
HOST = "host"
CLOCK = 5  # comparisons of the device clock with the host clock
UNREAD = 4096  # launches that may be noted before finished ones are read: their events take memory


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


@dataclass(frozen=True, slots=True, eq=False)
class _Note:
    """An enqueued launch or copy; `began` and `ended` are the host clock before and after."""

    what: tuple[Plan, PlannedLaunch] | str  # a launch, or the name of a copy
    queue: Backend
    ran: Ran
    began: float
    ended: float


class Timeline(StaysHere):
    """The launches, copies and host work inside a `with gp.profile()`; prints as a table of its rows."""

    stays = "a profile has marks of devices of this process; send its `rows` and `launches`, or `str(profile)`"

    def __init__(self) -> None:
        self._opened = perf_counter()
        self._closed: float | None = None
        self._notes: deque[_Note] = deque()
        self._origins: dict[
            Backend, tuple[Any, float]
        ] = {}  # of devices: a mark, and the host's clock when it was reached
        self._read: list[tuple[_Note, LaunchTime]] = []
        self._host: list[tuple[LaunchTime, float]] = []  # with their own seconds
        self._again: Counter[tuple[str, str]] = Counter()  # retraced pipelines, by name and reason
        self._comparing = 0  # the thread that compares clocks
        self._lock = threading.RLock()

    # --- notes --------------------------------------------------------------------------------------------------

    def begin(self, queue: Backend) -> None:
        """Read the device clocks."""
        if queue.main not in self._origins:
            self._comparing = threading.get_ident()
            self._origins.setdefault(queue.main, _clock(queue))
            self._comparing = 0

    def host(self, name: str, began: float, ended: float, own: float) -> None:
        thread = threading.current_thread()
        if thread.ident != self._comparing:
            start, passed = 1e3 * (began - self._opened), 1e3 * (ended - began)
            self._host.append((LaunchTime(name, (), HOST, thread.name, start, passed, HOST), own))

    def traced_again(self, name: str, reason: str) -> None:
        self._again[name, reason] += 1

    def copied(self, name: str, queue: Backend, ran: Ran, began: float, ended: float) -> None:
        if threading.get_ident() != self._comparing:
            self.add(_Note(name, queue, ran, began, ended))

    def add(self, note: _Note) -> None:
        self._notes.append(note)
        if len(self._notes) % UNREAD == 0:
            with self._lock:
                while self._notes and all(map(self._notes[0].queue.reached, self._notes[0].ran)):
                    self._read_next()

    def _read_next(self) -> None:
        note = self._notes.popleft()
        began, seconds = note.began, note.ended - note.began
        if note.ran:
            mark, origin = self._origins[note.queue.main]
            after, seconds = note.queue.span(note.ran, mark)
            began = origin + after
        times = note.queue.name, note.queue.queue_name, 1e3 * (began - self._opened), 1e3 * seconds
        if isinstance(note.what, str):
            self._read.append((note, LaunchTime(note.what, (), *times, "copy")))
            return
        _, step = note.what
        operators = tuple(op.kernel.name for op in (*recomputed(step), *step.ops))
        self._read.append((note, LaunchTime(step.kernel.name, operators, *times, lines=lines_of(step))))

    def _wait(self) -> None:
        """Wait for all that was noted."""
        for queue in {note.queue for note in list(self._notes)}:
            queue.synchronize()

    def _all(self) -> list[tuple[_Note, LaunchTime]]:
        """Return everything that was noted of devices; waits."""
        with self._lock:
            noted = list(self._notes)  # other threads may add to them
            self._wait()
            for _ in noted:
                self._read_next()
            return list(self._read)

    # --- what users see -----------------------------------------------------------------------------------------

    @property
    def launches(self) -> tuple[LaunchTime, ...]:
        """The LaunchTimes of kernels and Python functions, in the order of their starts; waits for unfinished ones."""
        return tuple(span for span in self.spans if span.kind == "kernel")

    @property
    def spans(self) -> tuple[LaunchTime, ...]:
        """All LaunchTimes, with copies and the host, in the order of their starts; waits for unfinished ones."""
        times = [time for _, time in self._all()] + [time for time, _ in list(self._host)]
        return tuple(sorted(times, key=lambda time: time.start_ms))

    @property
    def rows(self) -> tuple[KernelSum, ...]:
        """The KernelSums: kernels in the order of their first launches, copies, the host; waits for unfinished launches."""
        groups: dict[Any, list[tuple[_Note, LaunchTime]]] = {}
        for note, time in self._all():
            groups.setdefault((time.device, time.operators, _identity(note)), []).append((note, time))
        host: dict[str, list[float]] = {}
        for time, own in list(self._host):
            host.setdefault(time.name, []).append(1e3 * own)
        device_rows = [_sum_of([time for _, time in group], group[0][0]) for group in groups.values()]
        return *sorted(device_rows, key=lambda row: row.kind == "copy"), *(
            KernelSum(name, (), HOST, len(ms), sum(ms), 0.0, HOST) for name, ms in host.items()
        )

    @property
    def total_ms(self) -> float:
        """The sum of all launches; concurrent ones count twice."""
        return sum(time.ms for time in self.launches)

    @property
    def wall_ms(self) -> float:
        """The time inside the `with`, until now if that is open."""
        return 1e3 * ((self._closed or perf_counter()) - self._opened)

    def __str__(self) -> str:
        rows, wall = self.rows, self.wall_ms
        devices = list(dict.fromkeys(row.device for row in rows))
        tables = [table_of(name, [row for row in rows if row.device == name], wall) for name in devices]
        return "\n\n".join(tables + self._retraced()) or "nothing"

    def _retraced(self) -> list[str]:
        """Return a paragraph of the pipelines that were traced again for the same arguments, if any were."""
        lines = [
            f"pipeline `{name}` traced again{f' {n} times' * (n > 1)}: {why}" for (name, why), n in self._again.items()
        ]
        return ["\n".join(lines)] if lines else []

    __repr__ = __str__

    @hinted
    def save(self, path: str | PathLike[str]) -> None:
        """Write the spans as a trace, which chrome://tracing and https://ui.perfetto.dev show: a track for each queue and thread.

        Args:
            path: of the file, as "trace.json".
        """
        Path(path).write_text(json.dumps(trace_of(self.spans)), encoding="utf-8")


def _clock(queue: Backend) -> tuple[Any, float]:
    """Return a mark, and the host clock when it was reached: the most exact of several attempts."""
    queue.wait(queue.record())
    tries = []
    for _ in range(CLOCK):
        before, mark = perf_counter(), queue.record()
        queue.wait(mark)
        tries.append((perf_counter() - before, before, mark))
    passed, before, mark = min(tries, key=lambda each: each[0])
    return mark, before + passed / 2


def _identity(note: _Note) -> Any:
    if isinstance(note.what, str):
        return note.what
    kernel = note.what[1].kernel
    return (kernel.name, content(kernel)) if isinstance(kernel, Kernel) else kernel


def _sum_of(times: list[LaunchTime], note: _Note) -> KernelSum:
    first, count, predicted = times[0], len(times), 0.0
    if not isinstance(note.what, str):
        plan, step = note.what
        predicted = count * predicted_ms(step.kernel, plan.limits, note.queue)
    ms = sum(time.ms for time in times)
    lines = dict.fromkeys(line for time in times for line in time.lines)
    return KernelSum(first.name, first.operators, first.device, count, ms, predicted, first.kind, tuple(lines))


# --- open ones ------------------------------------------------------------------------------------------------------

_open: list[Timeline] = []


class _Timed(InstrumentedPlan):
    """A plan whose launches are noted in the open timelines; for an iteration, each of its launches."""

    def __init__(self, prepared: Prepared) -> None:
        super().__init__(prepared, _Timed)

    def waits(self, kernel: Launchable) -> bool:
        return bool(kernel.where)

    def bind(self, number: int, values: Any) -> Launch:
        repeated = isinstance(self.programs[number], Repeated)
        return Prepared.bind(self, number, values) if repeated else super().bind(number, values)

    def label(self, number: int) -> Part:
        for timeline in _open:
            timeline.begin(self.backend)
        return self.backend.label(self.plan.launches[number].kernel.name)

    def note(self, number: int, ran: Ran, began: float, ended: float) -> None:
        step = self.plan.launches[number]
        for timeline in _open:
            timeline.add(_Note((self.plan, step), self.backend, ran, began, ended))
            if ran and not self.waits(step.kernel):
                timeline.host("enqueue", began, ended, ended - began)


@context
def profile() -> Iterator[Timeline]:
    """Measure what takes time inside a `with`: kernels of fields, pipelines, graphs, iterations and bundles, copies, and the host.

        with gp.profile() as times:
            result = sharpen(image)
            graph.step(100)
        print(times)
        times.save("trace.json")

    Launches and copies of all threads are measured by the device's own clock, and by the host's how long this records operators,
    converts arrays, prepares, plans, compiles, gives the device work and waits for it; what is left of the wall time is
    "elsewhere": mostly the program's own Python. Evaluations and calls of pipelines are counted as "prepare", those of them that
    were not planned before as "plan". Nothing waits for the
    device but at the beginning and the end, and for Python functions among the kernels. Graphs launch their kernels one by one
    meanwhile, on CUDA too, where NVTX ranges have the kernels' names if the package `nvtx` or the library of CUDA's toolkit is
    there.

    Returns:
        A context manager, which gives a Timeline.

    Raises:
        DeviceError: from the end, where the device failed at a kernel.
    """
    timeline = Timeline()
    _open.append(timeline)
    observers.append(timeline)
    followers.append(_Timed)
    try:
        yield timeline
        timeline._wait()  # so that the wall time includes all work of the device
    finally:
        followers.remove(_Timed)
        observers.remove(timeline)
        _open.remove(timeline)
        timeline._closed = perf_counter()
    timeline._all()
