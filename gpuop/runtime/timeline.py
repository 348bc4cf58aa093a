"""`gp.profile`: every kernel that is launched inside a `with`, whoever launches it, by the device's clock."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any

from gpuop.fusion.plan import Plan
from gpuop.fusion.planned_launch import PlannedLaunch
from gpuop.fusion.report.plan_report import recomputed
from gpuop.ir.kernel import Kernel, Launchable
from gpuop.ir.text import content
from gpuop.runtime.base.backend import Backend, Launch, Part
from gpuop.runtime.compiled_iteration import CompiledIteration
from gpuop.runtime.execute import Prepared, followers
from gpuop.runtime.noting import Noting, Ran
from gpuop.runtime.profiling import predicted_ms, table

HEADS = ("kernel", "count", "ms", "predicted", "share")
CLOCK = 5  # comparisons of the device's clock with the host's
UNREAD = 4096  # launches that are noted before those are looked at that are done: their events take memory


@dataclass(frozen=True)
class LaunchTime:
    """One launch of a kernel.

    Attributes:
        name: the kernel's, or that of a Python function on the host.
        operators: the names of what was fused into it.
        device, queue: their names; "" is the device's main queue.
        start_ms: since the profile began, by the host's clock.
        ms: what the device took, or the host where no device's clock was asked.
    """

    name: str
    operators: tuple[str, ...]
    device: str
    queue: str
    start_ms: float
    ms: float


@dataclass(frozen=True)
class KernelSum:
    """All launches of a kernel on a device.

    Attributes:
        name, operators, device: as of LaunchTime.
        count: how many launches.
        ms: their sum.
        predicted_ms: what `explain` predicts for so many; 0 where it does not.
    """

    name: str
    operators: tuple[str, ...]
    device: str
    count: int
    ms: float
    predicted_ms: float


@dataclass(frozen=True, slots=True, eq=False)
class _Note:
    """A launch that was enqueued; `began` and `ended` are the host's clock before and after."""

    plan: Plan
    step: PlannedLaunch
    queue: Backend
    ran: Ran
    began: float
    ended: float


class Timeline:
    """What was launched inside a `with gp.profile()`; prints as a table of its rows."""

    def __init__(self) -> None:
        self._opened = perf_counter()
        self._notes: deque[_Note] = deque()
        self._origins: dict[
            Backend, tuple[Any, float]
        ] = {}  # of devices: a mark, and the host's clock when it was reached
        self._read: list[tuple[_Note, LaunchTime]] = []
        self._lock = threading.RLock()

    # --- notes --------------------------------------------------------------------------------------------------

    def begin(self, queue: Backend) -> None:
        """Know what the device's clock shows."""
        if queue.main not in self._origins:
            self._origins.setdefault(queue.main, _clock(queue))

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
        start = 1e3 * (began - self._opened)
        operators = tuple(op.kernel.name for op in (*recomputed(note.step), *note.step.ops))
        place = note.queue.name, note.queue.queue_name
        self._read.append((note, LaunchTime(note.step.kernel.name, operators, *place, start, 1e3 * seconds)))

    def _all(self) -> list[tuple[_Note, LaunchTime]]:
        """Everything that was noted; waits."""
        with self._lock:
            noted = list(self._notes)  # others may add to them
            for queue in {note.queue for note in noted}:
                queue.synchronize()
            for _ in noted:
                self._read_next()
            return list(self._read)

    # --- what users see -----------------------------------------------------------------------------------------

    @property
    def launches(self) -> tuple[LaunchTime, ...]:
        """The LaunchTimes, in the order of their starts; waits for those that are not done."""
        return tuple(sorted((time for _, time in self._all()), key=lambda time: time.start_ms))

    @property
    def rows(self) -> tuple[KernelSum, ...]:
        """The KernelSums, in the order in which the kernels were first launched; waits for launches that are not done."""
        groups: dict[Any, list[tuple[_Note, LaunchTime]]] = {}
        for note, time in self._all():
            groups.setdefault((time.device, time.operators, _identity(note.step.kernel)), []).append((note, time))
        return tuple(_sum_of([time for _, time in group], group[0][0]) for group in groups.values())

    @property
    def total_ms(self) -> float:
        """The sum of all launches; what ran side by side counts twice."""
        return sum(time.ms for time in self.launches)

    def __str__(self) -> str:
        rows = self.rows
        devices = list(dict.fromkeys(row.device for row in rows))
        return "\n\n".join(_table(name, [row for row in rows if row.device == name]) for name in devices) or "no kernel"

    __repr__ = __str__

    def save(self, path: str | PathLike[str]) -> None:
        """Write the launches as a trace, which chrome://tracing and https://ui.perfetto.dev show: a track for each queue.

        Args:
            path: of the file, as "trace.json".
        """
        launches = self.launches
        devices = list(dict.fromkeys(time.device for time in launches))
        queues = list(dict.fromkeys((time.device, time.queue) for time in launches))
        events: list[dict[str, Any]] = [_named("process", devices.index(d) + 1, 0, d) for d in devices]
        events += [_named("thread", devices.index(d) + 1, n, q or "main queue") for n, (d, q) in enumerate(queues)]
        for time in launches:
            place = {"pid": devices.index(time.device) + 1, "tid": queues.index((time.device, time.queue))}
            spans = {"ts": 1e3 * time.start_ms, "dur": 1e3 * time.ms}
            told = {"operators": ", ".join(time.operators)}
            events.append({"name": time.name, "cat": "kernel", "ph": "X", **place, **spans, "args": told})
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}), encoding="utf-8")


def _clock(queue: Backend) -> tuple[Any, float]:
    """A mark, and the host's clock when it was reached: of some, that of which this is known best."""
    queue.wait(queue.record())
    tries = []
    for _ in range(CLOCK):
        before, mark = perf_counter(), queue.record()
        queue.wait(mark)
        tries.append((perf_counter() - before, before, mark))
    passed, before, mark = min(tries, key=lambda each: each[0])
    return mark, before + passed / 2


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": f"{what}_name", "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _identity(kernel: Launchable) -> Any:
    return (kernel.name, content(kernel)) if isinstance(kernel, Kernel) else kernel


def _sum_of(times: list[LaunchTime], note: _Note) -> KernelSum:
    first, count = times[0], len(times)
    predicted = count * predicted_ms(note.step.kernel, note.plan.limits, note.queue)
    return KernelSum(first.name, first.operators, first.device, count, sum(time.ms for time in times), predicted)


def _table(device: str, rows: list[KernelSum]) -> str:
    count, total = sum(row.count for row in rows), sum(row.ms for row in rows)
    cells = [HEADS]
    for r in rows:
        predicted = f"{r.predicted_ms:.3g}" if r.predicted_ms else ""
        cells.append((r.name, str(r.count), f"{r.ms:.4f}", predicted, f"{r.ms / (total or 1.0):.0%}"))
    cells.append(("all", str(count), f"{total:.4f}", "", ""))
    operators = ["operators", *(", ".join(row.operators) for row in rows), ""]
    lines = [f"{line}  {names}".rstrip() for line, names in zip(table(cells), operators, strict=True)]
    return "\n".join([device, *lines])


# --- open ones ------------------------------------------------------------------------------------------------------

_open: list[Timeline] = []


class _Timed(Noting):
    """A plan whose launches are noted in the timelines that are open; of an iteration, the launches of its turns."""

    def __init__(self, prepared: Prepared) -> None:
        super().__init__(prepared, _Timed)

    def waits(self, kernel: Launchable) -> bool:
        return bool(kernel.where)

    def bind(self, number: int, values: Any) -> Launch:
        iteration = isinstance(self.programs[number], CompiledIteration)
        return Prepared.bind(self, number, values) if iteration else super().bind(number, values)

    def label(self, number: int) -> Part:
        for timeline in _open:
            timeline.begin(self.backend)
        return self.backend.label(self.plan.launches[number].kernel.name)

    def note(self, number: int, ran: Ran, began: float, ended: float) -> None:
        for timeline in _open:
            timeline.add(_Note(self.plan, self.plan.launches[number], self.backend, ran, began, ended))


@contextmanager
def profile() -> Iterator[Timeline]:
    """Measure how long each kernel takes that runs inside a `with`: of fields, pipelines, graphs, iterations and bundles.

        with gp.profile() as times:
            result = sharpen(image)
            graph.step(100)
        print(times)
        times.save("trace.json")

    Launches of all threads are measured, by the device's own clock; nothing waits for the device but at the beginning and the
    end, and for Python functions among the kernels. Graphs launch their kernels one by one meanwhile, on CUDA too, where NVTX
    ranges have the kernels' names if the package `nvtx` or the library of CUDA's toolkit is there.

    Returns:
        A context manager, which gives a Timeline.

    Raises:
        DeviceError: from the end, where the device failed at a kernel.
    """
    timeline = Timeline()
    _open.append(timeline)
    followers.append(_Timed)
    try:
        yield timeline
    finally:
        followers.remove(_Timed)
        _open.remove(timeline)
    timeline._all()
