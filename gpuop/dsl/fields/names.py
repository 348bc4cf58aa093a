"""Names of fields: the variables that the user assigns them to."""

from __future__ import annotations

from gpuop.base.errors import user_frame
from gpuop.dsl.recorder.assignment_targets import Names, argument_name, assigned


def names_given(count: int) -> Names:
    """The variables that `count` results of the running call are assigned to: `x`, `self.x`, or `x, y`; empty when none.

    A function that returns the result passes the question on to its caller: in `edges = gradient(photo)` all that
    `gradient` returns is `edges`.
    """
    frame = user_frame()
    while frame is not None:
        names = assigned(frame.f_code, frame.f_lasti)
        if names is not None:
            return tuple(name.removeprefix(".") for name in names) if len(names) == count else ()
        frame = user_frame(frame.f_back) if frame.f_back is not None else None
    return ()


def name_of_argument() -> str:
    """The variable that is the last argument of the running call; empty where that is an expression."""
    frame = user_frame()
    return argument_name(frame.f_code, frame.f_lasti) if frame is not None else ""
