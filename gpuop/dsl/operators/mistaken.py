"""What errors of Python's in a body come from: nested functions that assign names around them, and calls without end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb
from types import FrameType

from gpuop.dsl.recorder.outputs import OutputRef
from gpuop.dsl.recorder.value import Value
from gpuop.errors import Loc, SemanticError, is_users

ENDLESS = (
    "what this calls ends in itself without end; a kernel repeats by `with _for(n) as i:` or `with _while(condition):`"
)


@contextmanager
def explained() -> Iterator[None]:
    """Meanwhile such errors say what to write."""
    try:
        yield
    except RecursionError as error:
        raise SemanticError(ENDLESS, _written(error)) from None
    except UnboundLocalError as error:
        explain(error)
        raise


def _written(error: BaseException) -> Loc | None:
    """The line of the body that an error comes from."""
    lines = (Loc(f.f_code.co_filename, n) for f, n in walk_tb(error.__traceback__))
    return next((loc for loc in lines if is_users(loc.file)), None)


def explain(error: BaseException | None) -> None:
    """Say what to write, if the name is one of a kernel's.

    Raises:
        SemanticError: at the line of the error.
    """
    name = re.search(r"'(\w+)'", str(error))
    trace = error.__traceback__ if isinstance(error, UnboundLocalError) else None
    if name is None or trace is None:
        return
    while trace.tb_next is not None:
        trace = trace.tb_next
    message = _meant(name[1], trace.tb_frame)
    if message:
        raise SemanticError(message, Loc(trace.tb_frame.f_code.co_filename, trace.tb_lineno)) from error


def _meant(name: str, frame: FrameType) -> str:
    """What the name is around the function that made it its own; empty where that is nothing of ours."""
    function, known, outer = frame.f_code.co_name, frame.f_globals.get(name), frame.f_back
    if isinstance(known, OutputRef):
        return f"an output is not assigned; write `_writeTensor({name}, v)`"
    while outer is not None and name not in (*outer.f_code.co_varnames, *outer.f_code.co_cellvars):
        outer = outer.f_back
    if outer is not None and isinstance(outer.f_locals.get(name), Value):
        return (
            f"`{name}` belongs to `{outer.f_code.co_name}`, and `{function}` assigns it, which makes it local there, as Python has "
            f"it; write `nonlocal {name}` at the beginning of `{function}`, or assign a variable by `{name}.assign(…)`"
        )
    if isinstance(known, Value):
        return f"`{function}` assigns `{name}`, which is no variable; copy it under a name of its own, as in `v = _var({name})`"
    return ""
