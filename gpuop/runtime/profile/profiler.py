"""The times of the kernels of a plan, by a plan that reports each launch; `timeline.py` uses such a plan too."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import repeat, zip_longest
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from gpuop.base.errors import NearNames, SemanticError
from gpuop.base.finalizers import CALL
from gpuop.base.records import dataclass
from gpuop.fusion.kernel_limits import Limits
from gpuop.fusion.launch import PlannedLaunch, Rate
from gpuop.fusion.plan import Plan
from gpuop.fusion.report.plan_report import RUNS, moved_bytes, recomputed
from gpuop.fusion.report.prediction import expected
from gpuop.ir.kernel import Launchable
from gpuop.ir.types import is_integer
from gpuop.runtime.base.backend import Argument, Array, Backend, Buffer, Launch, Part, indivisible
from gpuop.runtime.execute import Prepared
from gpuop.runtime.profile.device_facts import facts_of

Ran = list[Any]  # results of a launch's parts, for `Backend.seconds` and `span`
HEADS = ("kernel", "ms", "± ms", "predicted", "GB/s", "share")


@dataclass(frozen=True)
class KernelTimes:
    """A kernel's times.

    Attributes:
        number, name: of the kernel, from 1, as in `explain`.
        median_ms, spread_ms: of its launches: the median, and the range of the middle half.
        predicted_ms: what `explain` predicts, of an iteration for all its turns; 0 where it does not.
        nbytes: what it must read and write.
        gb_per_s: these bytes by the median.
        share: of the sum of the medians of the kernels that run at every step, 0 to 1; 0 for others, unless all are.
        runs: when the kernel runs, as in `explain`; here all do at every step.
        lines: of the user's that its operators are from, as "file.py:12", each once; of plans that equal others those of the first.
    """

    number: int
    name: str
    median_ms: float
    spread_ms: float
    predicted_ms: float
    nbytes: int
    gb_per_s: float
    share: float
    runs: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class UploadTimes:
    """The times in which a sensor's frames came to the device, by the host's clock.

    Attributes:
        name: the sensor's.
        median_ms, spread_ms, nbytes, gb_per_s: as of kernels.
    """

    name: str
    median_ms: float
    spread_ms: float
    nbytes: int
    gb_per_s: float


@dataclass(frozen=True)
class Profile(NearNames):
    """The times of the kernels of a graph, or of a pipeline, in the order of their launches; prints as a table.

    Attributes:
        device: its name.
        steps: how many were measured, of a pipeline how many calls.
        rows: the KernelTimes.
        uploads: the UploadTimes of the sensors that had frames.
        again: why a pipeline was traced once more for the same arguments; empty where it was not.
    """

    device: str
    steps: int
    rows: tuple[KernelTimes, ...]
    uploads: tuple[UploadTimes, ...]
    again: str = ""

    def __str__(self) -> str:
        shared = [row for row in self.rows if row.share]
        total = sum(row.median_ms for row in shared)
        cells = [HEADS]
        cells += [
            (
                f"{r.number} {r.name}{_when(r)}",
                f"{r.median_ms:.4f}",
                f"{r.spread_ms:.4f}",
                f"{r.predicted_ms:.3g}" if r.predicted_ms else "",
                f"{r.gb_per_s:.3g}",
                f"{r.share:.0%}",
            )
            for r in self.rows
        ]
        cells += [
            (f"upload of {u.name}", f"{u.median_ms:.4f}", f"{u.spread_ms:.4f}", "", f"{u.gb_per_s:.3g}", "")
            for u in self.uploads
        ]
        rate = _rate(sum(r.nbytes for r in shared), total)
        cells.append(("all kernels" if self.uploads else "all", f"{total:.4f}", "", "", f"{rate:.3g}", ""))
        lines = [", ".join(row.lines) for row in self.rows]
        text = [f"{row}  {line}".rstrip() for row, line in zip_longest(table(cells), ["", *lines], fillvalue="")]
        again = [f"traced again: {self.again}"] if self.again else []
        return "\n".join([f"{self.device}, {self.steps} steps", *text, *again])

    __repr__ = __str__


def table(cells: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of rows in columns, all but the first right-aligned."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in cells]


class InstrumentedPlan(Prepared):
    """A compiled plan on the same queue that reports each launch.

    Args:
        each: maps the compiled plans in its iterations.
    """

    def __init__(self, prepared: Prepared, each: Callable[[Prepared], Prepared]) -> None:
        vars(self).update(vars(prepared.through(prepared.backend.measuring(), each)))

    def launching(self) -> Prepared:
        return self

    @abstractmethod
    def waits(self, kernel: Launchable) -> bool:
        """Return whether a launch begins and ends with a wait, because the host takes part in it."""

    @abstractmethod
    def note(self, number: int, ran: Ran, began: float, ended: float) -> None:
        """Note an enqueued launch of the plan, with the host's clock before and after."""

    def label(self, number: int) -> Part:
        """Begin a range for a launch in the vendor's tools, and return the function that ends it."""
        return bool

    def _once(self, number: int, values: dict[int, Argument]) -> None:
        self.backend.launch(self.bind(number, values).parts)

    def bind(self, number: int, values: dict[int, Argument]) -> Launch:
        launch = super().bind(number, values)
        wait = self.backend.synchronize if self.waits(self.plan.launches[number].kernel) else bool
        starts: list[tuple[float, Part]] = []
        ran: Ran = []

        def begin() -> None:
            wait()
            ran.clear()
            unlabel = self.label(number)
            starts[:] = [(perf_counter(), unlabel)]

        def end() -> None:
            wait()
            began, unlabel = starts[0]
            unlabel()
            self.note(number, [r for r in ran if r is not None], began, perf_counter())

        return Launch((begin, *(_noted(part, ran) for part in launch.parts), end), launch.adjust)


def _noted(part: Part, ran: Ran) -> Part:
    """Return a part that also notes its results; an `indivisible` part stays so."""
    noting: Part = map(ran.append, map(CALL, repeat(part))).__next__
    return noting if indivisible(part) else lambda: noting()


class _Measured(InstrumentedPlan):
    """A plan on a device that measures its launches, iterations as a whole.

    Attributes:
        runs: launches since the last step: (kernel, results of its parts, seconds).
        uploads: milliseconds of the uploads of sensor frames, by the sensors' values.
    """

    def __init__(self, prepared: Prepared) -> None:
        super().__init__(prepared, Prepared.launching)
        self.runs: list[tuple[int, Ran, float]] = []
        self.uploads: dict[int, list[float]] = {}

    def upload(self, value: int, buffer: Buffer, planes: Array) -> Part:
        write = super().upload(value, buffer, planes)

        def run() -> None:
            self.backend.synchronize()
            began = perf_counter()
            write()
            self.backend.synchronize()
            self.uploads.setdefault(value, []).append(1e3 * (perf_counter() - began))

        return run

    def waits(self, kernel: Launchable) -> bool:
        return bool(kernel.unfusible)

    def note(self, number: int, ran: Ran, began: float, ended: float) -> None:
        self.runs.append((number, ran, ended - began))

    def seconds(self) -> list[tuple[int, float]]:
        """Return the seconds of the launches, by kernel: by the device's clock, or by the host's if it has none or ran nothing."""
        self.backend.synchronize()
        done, self.runs = self.runs, []
        device = (self.backend.seconds(ran) if ran else None for _, ran, _ in done)
        return [
            (n, host if device_time is None else device_time)
            for (n, _, host), device_time in zip(done, device, strict=True)
        ]


def profile(
    prepared: Prepared, steps: int, through: Callable[[Prepared], AbstractContextManager[Callable[[], bool]]]
) -> Profile:
    """Run a plan several times, and return the times of its kernels.

    Args:
        through: takes a compiled plan of the same program and gives, in a `with`, the function that runs it once; this
            returns whether it ran.

    Raises:
        SemanticError: `steps` is no whole number, 1 or more.
    """
    if not is_integer(steps) or steps < 1:
        raise SemanticError(f"profile takes a number of steps, 1 or more, not {steps!r}")
    measured = _Measured(prepared)
    times: list[list[float]] = [[] for _ in prepared.plan.launches]
    done = 0
    with through(measured) as run:
        measured.seconds()
        measured.uploads.clear()
        while done < steps and run():
            done += 1
            for number, seconds in measured.seconds():
                times[number].append(1e3 * seconds)
    predicted = [
        predicted_ms(launch.kernel, prepared.plan.limits, prepared.backend) for launch in prepared.plan.launches
    ]
    rows = _rows(prepared.plan, times, predicted)
    return Profile(prepared.backend.name, done, rows, _uploads(prepared.plan, measured.uploads))


def lines_of(step: PlannedLaunch) -> tuple[str, ...]:
    """Return the user's lines of the operators in a launch."""
    places = (op.loc for op in (*recomputed(step), *step.ops) if op.loc is not None)
    return tuple(dict.fromkeys(f"{Path(loc.path).name}:{loc.line}" for loc in places))


def predicted_ms(kernel: Launchable, limits: Limits, backend: Backend) -> float:
    """Return the predicted milliseconds of a launch; 0 if there is no prediction."""
    facts = facts_of(backend)
    return 1e3 * expected(kernel, limits, backend.target, facts) if facts else 0.0


def _rows(plan: Plan, times: list[list[float]], predicted: list[float]) -> tuple[KernelTimes, ...]:
    medians = [median(each) if each else 0.0 for each in times]
    usual = [m for m, step in zip(medians, plan.launches, strict=True) if step.rate is Rate.EVERY_STEP]
    rows = []
    each_launch = zip(plan.launches, times, medians, predicted, strict=True)
    for number, (step, each, middle, milliseconds) in enumerate(each_launch, 1):
        nbytes = moved_bytes(plan, step)
        share = middle / (sum(usual or medians) or 1.0) if step.rate is Rate.EVERY_STEP or not usual else 0.0
        moving = (nbytes, _rate(nbytes, middle), share, RUNS[step.rate], lines_of(step))
        rows.append(KernelTimes(number, step.kernel.name, middle, _spread(each), milliseconds, *moving))
    return tuple(rows)


def _uploads(plan: Plan, times: Mapping[int, list[float]]) -> tuple[UploadTimes, ...]:
    rows = []
    for value, each in sorted(times.items()):
        middle, nbytes = median(each), plan.program.types[value].nbytes
        name = plan.program.names.get(value, "…")
        rows.append(UploadTimes(name, middle, _spread(each), nbytes, _rate(nbytes, middle)))
    return tuple(rows)


def _spread(times: list[float]) -> float:
    """Return the range of the middle half."""
    low, _, high = quantiles(times) if len(times) > 1 else (0.0, 0.0, 0.0)
    return high - low


def _when(row: KernelTimes) -> str:
    return "" if row.runs == RUNS[Rate.EVERY_STEP] else f" ({row.runs})"


def _rate(nbytes: int, ms: float) -> float:
    return nbytes / ms / 1e6 if ms else 0.0
