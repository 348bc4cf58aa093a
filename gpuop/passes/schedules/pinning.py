"""Schedules that users choose: `gp.schedule`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import SupportsIndex

from gpuop.base.errors import SemanticError
from gpuop.base.reentrant import context
from gpuop.ir.kernel import Pin
from gpuop.ir.types import is_integer
from gpuop.passes.schedules.methods import METHODS, PLAIN

_pin: ContextVar[Pin | None] = ContextVar("pin", default=None)


def schedule(method: str, **parameters: SupportsIndex) -> AbstractContextManager[None]:
    """Pin a schedule inside a `with`, for experts and tests: kernels that it suits run so, whatever the cost model says.

    It holds for what is planned in the block by this thread: fields that are evaluated, pipelines that are called, graphs that
    are made, which keep it when they run outside; a field that is evaluated outside does not. Kernels that the method does not
    suit run as they would without it, and `explain` says why. Results are the same bits.

    Args:
        method: "plain" (each value is computed by the thread of its point), or the name of a method that `explain` prints.
        parameters: whole numbers that stand for the method's own choice of them; larger ones than will do are taken
            down, and those that a kernel has no use for left out, as `layers` where it has none. `explain` has what was taken in
            brackets after the method's name, as `rows` of "vector rows (rows 4)".

    Returns:
        A context manager, which decorates functions too.

    Raises:
        SemanticError: there is no such method, the method has no such parameter, or it is no whole number above 0.
    """
    methods = {PLAIN: (), **{each.name: each.parameters for each in METHODS}}
    if method not in methods:
        raise SemanticError(f"there is no schedule {method!r}; one of {', '.join(methods)}")
    if method == PLAIN and parameters:
        raise SemanticError(f"the schedule {PLAIN!r} has no parameters; leave out {', '.join(parameters)}")
    unknown = next((name for name in parameters if name not in methods[method]), None)
    if unknown is not None:
        raise SemanticError(f"the schedule {method!r} has no parameter {unknown}; it has {', '.join(methods[method])}")
    return _schedule(Pin(method, tuple(sorted((name, _counted(name, n)) for name, n in parameters.items()))))


def _counted(name: str, value: SupportsIndex) -> int:
    if is_integer(value) and value > 0:
        return int(value)
    raise SemanticError(f"the parameter {name} of a schedule is a whole number above 0, not {value!r}")


@context
def _schedule(pin: Pin) -> Iterator[None]:
    token = _pin.set(pin)
    try:
        yield
    finally:
        _pin.reset(token)


pinned = _pin.get  # returns the pin of the innermost `gp.schedule` of this thread; None where there is none
