"""Tiers of traces: kernels of one size, or kernels that the sizes of a family share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from gpuop.base.records import dataclass
from gpuop.engine.open_programs import OpenPrograms
from gpuop.ir.target import Target
from gpuop.runtime.base.background import BackgroundJob


@dataclass(slots=True, eq=False)
class Family:
    """Calls of a pipeline that differ in the extents of arrays alone.

    Attributes:
        first: the shapes of the first call.
        began: returns the trace of the first call, if it is still there.
        changing: the arguments whose extents have changed.
        checked: the targets for which numbers were looked for that Python has computed from extents.
        programs: programs that have such numbers, if there are any, by target.
        texts: the kernels of the sizes so far, by content; of open ones without their extents.
        sizes: the number of sizes with open extents so far.
        others: the number of those that had other kernels than those before.
        reason: the reason for kernels of each size; empty while sizes share them.
    """

    first: tuple[tuple[int, ...], ...]
    began: Callable[[], Any] = lambda: None
    changing: frozenset[str] = frozenset()
    checked: set[Target] = field(default_factory=set)
    programs: dict[Target, OpenPrograms] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)
    sizes: int = 0
    others: int = 0
    reason: str = ""


@dataclass(slots=True, eq=False)
class Tier:
    """The tier of a trace.

    Attributes:
        names: the arguments whose extents are open.
        reason: the reason for kernels of this size; empty for open ones.
        apart: the reasons for those kernels of this size that are beside open ones.
        calls: how often the trace was called.
        job: the work behind the calls that compiles kernels for this size.
        own: the trace with kernels of this size, once they are compiled behind the calls.
        failed: the message of the error that compiling them raised.
    """

    family: Family
    names: frozenset[str]
    reason: str = ""
    apart: str = ""
    calls: int = 0
    job: BackgroundJob | None = None
    own: Any = None
    failed: str = ""

    @property
    def about(self) -> str:
        """The tier as a line of `explain`."""
        if self.own is not None:
            return "compiled for this size, which has come often"
        if self.reason:
            return f"compiled for this size: {self.reason}"
        names = ", ".join(f"`{name}`" for name in sorted(self.names))
        alone = f", {self.apart}" if self.apart else ""
        alone += f"; for this size alone: {self.failed}" if self.failed else ""
        return f"compiled for all sizes of {names}{alone}"
