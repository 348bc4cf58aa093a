"""Instrumented plans, which report each launch: the common part of all profilers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from itertools import repeat
from time import perf_counter
from typing import Any

from gpuop.base.finalizers import CALL
from gpuop.ir.kernel import Launchable
from gpuop.runtime.base.backend import Argument, Launch, Part, indivisible
from gpuop.runtime.execute import Prepared

Ran = list[Any]  # results of a launch's parts, for `Backend.seconds` and `span`


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

    def _once(self, number: int, values: Mapping[int, Argument]) -> None:
        self.backend.launch(self.bind(number, values).parts)

    def bind(self, number: int, values: Mapping[int, Argument]) -> Launch:
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
