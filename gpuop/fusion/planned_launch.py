"""One launch of a plan."""

from __future__ import annotations

from dataclasses import dataclass

from gpuop.fusion.program import Op
from gpuop.fusion.rates import Rate
from gpuop.ir.kernel import Launchable


@dataclass(frozen=True, eq=False)
class PlannedLaunch:
    """A kernel launch: the values its parameters stand for, and the operators it was made of.

    Attributes:
        rate: when it has to run.
        over: next values that it writes over states, with these. If there are any, it runs when the next step begins.
    """

    kernel: Launchable
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    ops: tuple[Op, ...]
    rate: Rate = Rate.EVERY_STEP
    over: tuple[tuple[int, int], ...] = ()
