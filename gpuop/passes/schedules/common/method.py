"""What a scheduling method is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpuop.ir.kernel import Kernel

Parameters = Mapping[str, int]


@dataclass(frozen=True)
class Method:
    """A way to run recorded kernels; its functions are given kernels whose target is known.

    Attributes:
        name: what `explain` calls it.
        parameters: the names of what may be chosen; not all kernels have each of them.
        refuse: why it does not suit a kernel, as the end of a sentence; empty where it does.
        candidates: parameters worth trying for a kernel that it suits, the best guess first.
        taken: any whole numbers above 0 as the kernel can have them: the next that will do, which stay as they are.
        apply: the kernel as its threads run it, recorded too, with parameters that were taken; equal bits whatever they are.
        open: whether it does without knowing extents (`Kernel.named`).
    """

    name: str
    parameters: tuple[str, ...]
    refuse: Callable[[Kernel], str]
    candidates: Callable[[Kernel], tuple[Parameters, ...]]
    taken: Callable[[Kernel, Parameters], Parameters]
    apply: Callable[[Kernel, Parameters], Kernel]
    open: bool = False
