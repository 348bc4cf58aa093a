"""`gp.tune`: measure now which variants of operators, and which schedules of kernels, are the fastest on the device in use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpuop.base.config import config
from gpuop.base.errors import SemanticError, described
from gpuop.base.misspelt import hinted
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.engine.graphs.compute_graph import ComputeGraph
from gpuop.engine.jit.pipeline import Pipeline
from gpuop.fusion.plan import Plan, plan
from gpuop.fusion.program import program
from gpuop.passes.schedules.pinning import pinned
from gpuop.runtime.base.backend import Backend
from gpuop.runtime.devices import current
from gpuop.runtime.tuning.chooser import limits_on
from gpuop.runtime.tuning.modes import FORCE, Mode, using
from gpuop.runtime.tuning.schedule_choices import measured_schedules
from gpuop.runtime.tuning.store import TunedChoice, TuneStore


@dataclass(frozen=True)
class Tuning:
    """The fastest choices as measured; prints as lines.

    Attributes:
        device: name of the device.
        rows: the stored entries, one for each operator with `tune=` and for each kernel that has several schedules, with
            `name`, `types` (of the inputs), `choice` (empty: what is predicted to be best), `seconds` and `tried`, a line for
            each choice.
    """

    device: str
    rows: tuple[TunedChoice, ...]

    def __str__(self) -> str:
        return "\n".join(map(told, self.rows)) or f"nothing has several variants or schedules on {self.device}"

    __repr__ = __str__


def told(entry: TunedChoice) -> str:
    """Return an entry as a line."""
    choice = entry.choice or "as predicted"
    return f"{entry.name} ({entry.types}) on {entry.place}: {choice}, {1e3 * entry.seconds:.4g} ms"


@hinted
def tune(
    what: Any, *arguments: Any, seconds: float | None = None, progress: Callable[[str], None] | None = None
) -> Tuning:
    """Measure variants of operators and schedules of kernels on the device in use, and store the fastest.

    Later plans use them, in this process and in others, unless `gp.tuning("never")` or `gp.schedule` says otherwise. Variants
    are measured with the operator's own inputs if these have values, kernels with numbers from 0 to 1, or to 99. A graph does
    not step, and its states stay as they are; one that has run keeps its plan.

    Args:
        what: a Field or a ComputeGraph; an operator, a pipeline or another function that gives a Field or a tuple of them.
        arguments: of the function; after a Field, other Fields that are evaluated with it.
        seconds: the longest time to measure each operator and each kernel; by default GPUOP_TUNE_SECONDS.
        progress: gets a line for each choice, as `print`.

    Returns:
        A Tuning, which prints as a line for each operator and kernel.

    Raises:
        SemanticError: it is none of these, or a variant computes something else than the others.
        CompileError, DeviceError: the device runs no variant.
        GpuopError: the store cannot be written.
    """
    mode = Mode(FORCE, progress=progress or (lambda line: None))
    if seconds is not None:
        if isinstance(seconds, bool) or not 0 < float(seconds) < float("inf"):
            raise SemanticError(f"`seconds` is a time above 0, not {seconds!r}")
        mode.seconds = seconds
    backend, store = current(), TuneStore(config.tune_store)
    with using(mode):
        planned = _planned(what, arguments, backend)
        for entry in measured_schedules(planned, backend, mode):
            store.put([entry])
            mode.stored.append(entry)
    return Tuning(backend.name, tuple(mode.stored))


def _planned(what: Any, arguments: tuple[Any, ...], backend: Backend) -> Plan:
    if isinstance(what, ComputeGraph):
        if arguments:
            raise SemanticError("a ComputeGraph is tuned alone, without arguments")
        return what.plan
    if isinstance(what, Pipeline) and not any(isinstance(a, Field) for a in arguments):
        return what.planned(*arguments)
    calls = callable(what)  # a Field is not
    results = what(*arguments) if calls else (what, *arguments)
    fields = results if isinstance(results, (tuple, list)) else (results,)
    for field in fields:
        if not isinstance(field, Field):
            raise SemanticError(
                "tune takes a Field, a ComputeGraph, or a function that gives a Field or a tuple of them; "
                f"{'the function gives' if calls else 'this is'} {described(field)}"
            )
    return plan(program([f.node for f in fields]), limits=limits_on(backend, pinned()))
