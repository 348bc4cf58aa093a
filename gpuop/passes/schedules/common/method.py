"""The interface of scheduling methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpuop.base.records import dataclass
from gpuop.ir.kernel import Kernel

Parameters = Mapping[str, int]


@dataclass(frozen=True)
class Method:
    """A schedule: a way to run recorded kernels. Its functions take kernels with a target.

    Attributes:
        name: the name in `explain` and in `gp.schedule`.
        parameters: the names of its parameters; not all kernels have each of them.
        refuse: returns the reason why it does not suit a kernel, as the end of a sentence; empty where it does.
        candidates: returns parameters worth trying for a kernel that it suits, the best guess first.
        legalize: returns valid parameters for a kernel near any whole numbers above 0; valid ones stay as they are.
        apply: returns the recorded kernel with the schedule, for valid parameters; results have the same bits for all of them.
        open: whether extents may be arguments of the kernel (`Kernel.named`).
    """

    name: str
    parameters: tuple[str, ...]
    refuse: Callable[[Kernel], str]
    candidates: Callable[[Kernel], tuple[Parameters, ...]]
    legalize: Callable[[Kernel, Parameters], Parameters]
    apply: Callable[[Kernel, Parameters], Kernel]
    open: bool = False
