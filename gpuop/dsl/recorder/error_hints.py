"""Causes of Python errors in a body: nested functions that assign outer names, endless recursion, wrong arguments of a
builtin.
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
from gpuop.dsl.recorder.outputs import OutputRef
from gpuop.dsl.recorder.value import Value

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
    except (UnboundLocalError, TypeError) as error:
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
    if not isinstance(error, (UnboundLocalError, TypeError)) or isinstance(error, GpuopError):
        return
    *_, (frame, line) = walk_tb(error.__traceback__)
    message = _misnamed(str(error), frame) if isinstance(error, UnboundLocalError) else _miscalled(error, frame)
    if message:
        raise SemanticError(message, Loc(frame.f_code.co_filename, line)) from error


def with_near_name(wrong: TypeError, signature: inspect.Signature) -> str:
    """What Python says of a call's arguments, and which name is near one that there is not."""
    unknown = re.match(r".*unexpected keyword argument '(\w+)'", str(wrong))
    names = (p.name for p in signature.parameters.values() if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD))
    return f"{unknown[0]}{meant(unknown[1], names)}" if unknown else str(wrong)


def _miscalled(error: TypeError, frame: FrameType) -> str:
    """What a word of the vocabulary takes; empty where the user has not called one, nor a Field."""
    if user_frame(frame) is not frame:
        return ""
    if re.match(r"'(\w*Field|Parameter)' object is not callable", str(error)):
        return "a Field is not called; `_readTensor(f, row, column)` is its value at a place"
    called = re.match(r"(_\w+)(?:\.__init__)?\(\) ", str(error))
    word = getattr(sys.modules["gpuop.dsl"], called[1], None) if called else None
    own = {**frame.f_globals, **frame.f_locals}
    if called is None or not callable(word) or own.get(called[1], word) is not word:
        return ""
    signature = inspect.signature(word)
    what = with_near_name(TypeError(str(error)[called.end() :]), signature)
    return f"`{called[1]}{unannotated(signature)}` {'has too many arguments' if what.startswith('takes ') else what}"


def unannotated(signature: inspect.Signature) -> str:
    """A signature as a call has it, without types."""
    names = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=names, return_annotation=signature.empty))


def _misnamed(error: str, frame: FrameType) -> str:
    """What a name is around the function that made it its own; empty where that is nothing of ours."""
    name = error.partition("'")[2].partition("'")[0]
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
