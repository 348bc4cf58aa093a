"""`gp.tuning`: the use of measured choices, and new measurements."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import field

from gpuop.base.config import config
from gpuop.base.errors import SemanticError
from gpuop.base.misspelt import hinted
from gpuop.base.records import dataclass
from gpuop.base.reentrant import context
from gpuop.runtime.tuning.store import TunedChoice

NEVER, STORED, AUTO, FORCE = MODES = ("never", "stored", "auto", "force")


@dataclass(eq=False)
class Mode:
    """The current mode, in a `with`.

    Attributes:
        seconds: limit for one operator or kernel; None: that of the settings.
        progress: gets a line for each choice; None: lines go to stderr.
        done: new measurements, by device and digest.
        stored: the number of them in the store.
    """

    name: str
    seconds: float | None = None
    progress: Callable[[str], None] | None = None
    done: set[object] = field(default_factory=set)
    stored: list[TunedChoice] = field(default_factory=list)

    def begin(self, line: str) -> None:
        """Print what is measured now."""
        if self.progress is None:
            sys.stderr.write(f"gpuop: measuring {line}\n")
        else:
            self.progress(line)

    def tell(self, line: str) -> None:
        if self.progress is not None:
            self.progress(line)


_of_settings = Mode(config.tune)
mode_of_context: ContextVar[Mode | None] = ContextVar("mode", default=None)


@hinted
def tuning(mode: str) -> AbstractContextManager[None]:
    """Say inside a `with`, for this thread, which variants of operators with `tune=` run, in the place of GPUOP_TUNE.

    It holds for what is planned in the block: fields that are evaluated, pipelines that are called, graphs that are first run.
    What was measured lies in a file of SQLite's that processes share (GPUOP_TUNE_STORE), by what was recorded, the device and
    its driver.

    Args:
        mode: "never": the first variant that the device can run, and the compiler's own choice of schedules. "stored", the
            default: what was measured to be fastest, on this device or else on the most similar one of its kind. "auto":
            that, and what was not yet measured on this device with this driver is, when it is first planned: each operator for
            at most GPUOP_TUNE_SECONDS (10), which a line on stderr says. "force": everything is measured anew, once in the block.

    Returns:
        A context manager, which decorates functions too.

    Raises:
        SemanticError: there is no such mode; from what is evaluated, a variant that computes something else than the others.
    """
    if mode not in MODES:
        raise SemanticError(f"there is no mode {mode!r}; one of {', '.join(MODES)}")
    return using(Mode(mode))


@context
def using(mode: Mode) -> Iterator[None]:
    token = mode_of_context.set(mode)
    try:
        yield
    finally:
        mode_of_context.reset(token)


def mode_in_use() -> Mode:
    """Return the mode of this thread's innermost `with`, or of the settings."""
    mode = mode_of_context.get()
    if mode is None:
        _of_settings.name, mode = config.tune, _of_settings
    return mode
