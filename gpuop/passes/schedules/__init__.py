"""How a kernel runs on its target: which thread computes which points, in which order, and where it keeps what others need.

A method is a file of this folder and a line of `METHODS`. It decides where and when a value is computed, never how.
"""

from __future__ import annotations

from gpuop.config import config
from gpuop.ir.kernel import Kernel
from gpuop.passes.schedules.method import Method, Parameters
from gpuop.passes.schedules.plain import without_intermediates

METHODS: tuple[Method, ...] = ()  # the first that suits a kernel is taken


def schedule(kernel: Kernel) -> Kernel:
    """The recorded kernel as its threads run it."""
    chosen = choice(kernel)
    if chosen is not None:
        return chosen[0].apply(kernel, chosen[1])
    return without_intermediates(kernel) if kernel.intermediates else kernel


def choice(kernel: Kernel) -> tuple[Method, Parameters] | None:
    """The method and the parameters that suit a kernel on its target; None where each thread computes its own point."""
    if kernel.target is None or config.schedule == "plain":
        return None
    return next(((method, method.candidates(kernel)[0]) for method in METHODS if not method.refuse(kernel)), None)
