"""Causes of Python errors in a body: misspelt builtins and wrong arguments of theirs, nested functions that assign outer names,
endless recursion.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb
from types import FrameType

from gpuop.base.errors import GpuopError, Loc, SemanticError, is_users, meant, user_frame
from gpuop.base.misspelt import with_near_name
from gpuop.dsl.recorder.outputs import OutputRef
from gpuop.dsl.recorder.value import Value

ENDLESS = (
    "a function that this calls calls itself without end; a kernel repeats by `with _for(n) as i:` or `with "
    "_while(condition):`"
)


@contextmanager
def explained() -> Iterator[None]:
    """Context in which such errors state the remedy."""
    try:
        yield
    except RecursionError as error:
        raise SemanticError(ENDLESS, _written(error)) from None
    except (NameError, TypeError) as error:
        explain(error)
        raise


def _written(error: BaseException) -> Loc | None:
    """The line of the body that an error comes from."""
    lines = (Loc(f.f_code.co_filename, n) for f, n in walk_tb(error.__traceback__))
    return next((loc for loc in lines if is_users(loc.file)), None)


def explain(error: BaseException | None) -> None:
    """Raise an error with the remedy, if the cause is a name or builtin of a kernel.

    Raises:
        SemanticError: at the line of the error.
    """
    if not isinstance(error, (NameError, TypeError)) or isinstance(error, GpuopError):
        return
    *_, (frame, line) = walk_tb(error.__traceback__)
    if isinstance(error, UnboundLocalError):
        message = _misnamed(str(error), frame)
    else:
        message = _undefined(error.name or "", frame) if isinstance(error, NameError) else _miscalled(error, frame)
    if message:
        raise SemanticError(message, Loc(frame.f_code.co_filename, line)) from error


def _miscalled(error: TypeError, frame: FrameType) -> str:
    """Signature of a miscalled builtin, and the fault; empty if the user called neither a builtin nor a Field."""
    if user_frame(frame) is not frame:
        return ""
    if re.match(r"'(\w*Field|Parameter)' object is not callable", str(error)):
        return "a Field is not called; `_readTensor(f, row, column)` is its value at a place"
    called = re.match(r"(_\w+)(?:\.__init__)?\(\) ", str(error))
    builtin = getattr(sys.modules["gpuop.dsl"], called[1], None) if called else None
    own = {**frame.f_globals, **frame.f_locals}
    if called is None or not callable(builtin) or own.get(called[1], builtin) is not builtin:
        return ""
    signature = inspect.signature(builtin)
    fault = with_near_name(TypeError(str(error)[called.end() :]), signature)
    return f"`{called[1]}{unannotated(signature)}` {'has too many arguments' if fault.startswith('takes ') else fault}"


def _undefined(name: str, frame: FrameType) -> str:
    """Remedy for a name that is not defined; empty if no builtin has one like it."""
    builtins = sys.modules["gpuop.dsl"].__all__
    if name in builtins:
        return f"`{name}` is not imported; write `from gpuop.dsl import *` at the beginning of this file"
    near = meant(name, {*builtins, *frame.f_globals, *frame.f_locals}) if name.startswith("_") else ""
    return f"`{name}` is not defined{near}" if near else ""


def unannotated(signature: inspect.Signature) -> str:
    """Signature without types, as in a call."""
    names = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=names, return_annotation=signature.empty))


def _misnamed(error: str, frame: FrameType) -> str:
    """Remedy for a name that a function made local; empty if it is no kernel value outside."""
    name = error.partition("'")[2].partition("'")[0]
    function, value, outer = frame.f_code.co_name, frame.f_globals.get(name), frame.f_back
    if isinstance(value, OutputRef):
        return f"an output is not assigned; write `_writeTensor({name}, v)`"
    while outer is not None and name not in (*outer.f_code.co_varnames, *outer.f_code.co_cellvars):
        outer = outer.f_back
    if outer is not None and isinstance(outer.f_locals.get(name), Value):
        return (
            f"`{name}` belongs to `{outer.f_code.co_name}`, and `{function}` assigns it, which makes it local there, as Python has "
            f"it; write `nonlocal {name}` at the beginning of `{function}`, or assign a variable by `{name}.assign(…)`"
        )
    if isinstance(value, Value):
        return (
            f"`{function}` assigns `{name}`, which is not a variable; copy it under a name of its own, as in `v = "
            f"_var({name})`"
        )
    return ""
