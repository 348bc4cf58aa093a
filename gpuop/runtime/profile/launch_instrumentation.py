"""Plans whose launches are noted when they run: what all that measures launches has in common."""

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

Ran = list[Any]  # what the parts of a launch returned, as `Backend.seconds` and `span` take it


class Noting(Prepared):
    """A compiled plan on the same queue, each launch of which is noted.

    Args:
        each: what is made of the compiled plans in its iterations.
    """

    def __init__(self, prepared: Prepared, each: Callable[[Prepared], Prepared]) -> None:
        vars(self).update(vars(prepared.through(prepared.backend.measuring(), each)))

    def launching(self) -> Prepared:
        return self

    @abstractmethod
    def waits(self, kernel: Launchable) -> bool:
        """Whether a launch begins and ends with a wait, as the host takes part in it."""

    @abstractmethod
    def note(self, number: int, ran: Ran, began: float, ended: float) -> None:
        """Note a launch of the plan's that was enqueued, with the host's clock before and after."""

    def label(self, number: int) -> Part:
        """What is called when a launch is enqueued, after this was called before."""
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
    """A part whose results are noted; what is `indivisible` stays so."""
    noting: Part = map(ran.append, map(CALL, repeat(part))).__next__
    return noting if indivisible(part) else lambda: noting()
