"""How a kernel runs on its target: which thread computes which points, in which order, and where it keeps what others need.

A method is a file of this folder and a line of `METHODS`. It decides where and when a value is computed, never how.
"""

from __future__ import annotations

from gpuop.config import config
from gpuop.errors import SemanticError
from gpuop.ir.kernel import Kernel
from gpuop.ir.pin import Pin
from gpuop.passes.schedules.method import Method, Parameters
from gpuop.passes.schedules.plain import without_intermediates
from gpuop.passes.schedules.privatize import PRIVATIZE
from gpuop.passes.schedules.roll import ROLL
from gpuop.passes.schedules.vector_rows import VECTOR_ROWS

PLAIN = "plain"  # each thread computes its own point
METHODS: tuple[Method, ...] = (ROLL, VECTOR_ROWS, PRIVATIZE)  # the first that suits a kernel is taken


def schedule(kernel: Kernel) -> Kernel:
    """The recorded kernel as its threads run it."""
    chosen = choice(kernel)
    if chosen is not None:
        return chosen[0].apply(kernel, chosen[1])
    return without_intermediates(kernel) if kernel.intermediates else kernel


def choice(kernel: Kernel) -> tuple[Method, Parameters] | None:
    """The method and the parameters that suit a kernel on its target; None where each thread computes its own point.

    Raises:
        SemanticError: the method that is pinned has no such parameter.
    """
    pin = kernel.pin
    if kernel.target is None or config.schedule == PLAIN or (pin is not None and pin.method == PLAIN):
        return None
    wanted = [method for method in METHODS if pin is not None and method.name == pin.method]
    for method in (*wanted, *METHODS):
        if not method.refuse(kernel):
            best = method.candidates(kernel)[0]
            return method, _adjusted(method, best, pin) if pin is not None and method in wanted else best
    return None


def _adjusted(method: Method, best: Parameters, pin: Pin) -> Parameters:
    unknown = next((name for name, _ in pin.parameters if name not in best), None)
    if unknown is not None:
        raise SemanticError(f"the schedule {method.name!r} has no parameter {unknown}; it has {', '.join(best)}")
    return {**best, **dict(pin.parameters)}
