"""Relaxed precision of an operator, applied as it is recorded, so that its bits are the same wherever it is fused."""

from __future__ import annotations

from gpuop.ir.kernel import Kernel
from gpuop.passes.contract import contract
from gpuop.passes.fast_math import approximate

STEPS = {"exact": (), "contract": (contract,), "fast": (approximate, contract)}


def relaxed(kernel: Kernel) -> Kernel:
    """The kernel of an operator, rewritten as its precision allows."""
    for step in STEPS[kernel.precision]:
        kernel = step(kernel)
    return kernel
