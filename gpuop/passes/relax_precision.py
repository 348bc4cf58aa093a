"""What a precision allows, done to an operator as it is recorded: its bits are then the same wherever it is fused."""

from __future__ import annotations

from gpuop.ir.kernel import Kernel
from gpuop.passes.contract import contract
from gpuop.passes.fast_math import approximate

STEPS = {"exact": (), "contract": (contract,), "fast": (approximate, contract)}


def relaxed(kernel: Kernel) -> Kernel:
    """An operator's kernel with what its precision allows."""
    for step in STEPS[kernel.precision]:
        kernel = step(kernel)
    return kernel
