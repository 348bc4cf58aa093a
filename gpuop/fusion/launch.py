"""A launch of a plan."""

from __future__ import annotations

from dataclasses import dataclass

from gpuop.fusion.launch_frequency import Rate
from gpuop.fusion.program import Op
from gpuop.ir.kernel import Kernel, Launchable


@dataclass(frozen=True, eq=False)
class PlannedLaunch:
    """A kernel launch: the kernel, the values of its parameters, and its operators.

    Attributes:
        rate: when it must run.
        over: next values that it writes over states, with the states. If there are any, it runs when the next step begins.
    """

    kernel: Launchable
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    ops: tuple[Op, ...]
    rate: Rate = Rate.EVERY_STEP
    over: tuple[tuple[int, int], ...] = ()

    @property
    def begun(self) -> dict[int, int]:
        """The outputs that start from inputs, with these."""
        begun = zip(self.outputs, self.kernel.outputs, strict=True)
        return {v: self.inputs[self.kernel.inputs.index(o.initial)] for v, o in begun if o.initial is not None}

    @property
    def replaced(self) -> dict[int, int]:
        """The outputs of `begun` that may share the memory of the inputs."""
        if not isinstance(self.kernel, Kernel):
            return {}
        params = dict(zip(self.kernel.written, self.outputs, strict=True))
        begun = self.begun
        return {params[out]: begun[params[out]] for out in self.kernel.replaced}
