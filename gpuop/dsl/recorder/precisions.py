"""Precision modes, and the one in force for operators that do not set their own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType

from gpuop.base.errors import SemanticError
from gpuop.base.misspelt import hinted
from gpuop.dsl.recorder.recorder import recording
from gpuop.ir.kernel import EXACT, PRECISIONS

_local = threading.local()


class precision:
    """Choose how exactly the operators compute that are called in a `with`, host algebra too, in this thread.

    The innermost choice counts: that of an operator itself (`@gp.operator(precision=…)`), else of the `with` around its
    call, which the `with` of a `gp.ComputeGraph(precision=…)` and the body of a `@gp.pipeline(precision=…)` are too. It is
    made when an operator is called, and belongs to what is recorded then: fused or alone, an operator has the same bits.

    Args:
        mode: "exact": every operation is rounded as IEEE 754 says, in the order that is written, so all devices agree bit for
            bit but in functions within an error bound. "contract": products that only feed one sum or difference of the same
            operator are not rounded before it (`fma`), on all devices alike. "fast": that, and functions of float32 that the
            device has in hardware, products with reciprocals in the place of quotients, and no regard to signs of zeros, NaN
            and infinity; results differ from device to device.

    Raises:
        SemanticError: an unknown mode.
    """

    @hinted
    def __init__(self, mode: str) -> None:
        self._mode = checked(mode)

    def __enter__(self) -> None:
        if recording() is not None:
            raise SemanticError(
                "an operator has one precision in all of its body: put `with gp.precision(…):` around its call, or give it a "
                "`precision=`"
            )
        _chosen().append(self._mode)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _chosen().pop()


def checked(mode: str) -> str:
    """The mode.

    Raises:
        SemanticError: there is no such mode.
    """
    if mode not in PRECISIONS:
        raise SemanticError(f'there is no precision {mode!r}; one of "exact", "contract" and "fast"')
    return mode


def choosing(mode: str | None) -> AbstractContextManager[None]:
    """`precision(mode)`, or a context without effect for None.

    Raises:
        SemanticError: an unknown mode.
    """
    return nullcontext() if mode is None else precision(mode)


@contextmanager
def exactly() -> Iterator[None]:
    """`precision("exact")` for operators of the library, which bodies call too: that of the body stays."""
    _chosen().append(EXACT)
    try:
        yield
    finally:
        _chosen().pop()


def chosen() -> str:
    """The mode of the innermost `with`."""
    try:
        return _local.stack[-1] if _local.stack else EXACT
    except AttributeError:  # no `with` in this thread yet
        return EXACT


def _chosen() -> list[str]:
    if not hasattr(_local, "stack"):
        _local.stack = []
    stack: list[str] = _local.stack
    return stack
