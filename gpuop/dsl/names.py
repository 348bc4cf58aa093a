"""The names of fields: the variables that the user assigns them to."""

from __future__ import annotations

import dis
from types import CodeType

from gpuop.dsl.frames import instructions_after
from gpuop.errors import user_frame

MOST_KEPT = 4096
Names = tuple[str, ...]
_known: dict[
    tuple[int, int], tuple[CodeType, Names | None]
] = {}  # by identity: hashing code is slow, and the code stays


def names_given(count: int) -> Names:
    """The variables that `count` results of the running call are assigned to: `x`, `self.x`, or `x, y`; empty when none.

    A function that returns the result passes the question on to its caller: in `edges = gradient(photo)` all that
    `gradient` returns is `edges`.
    """
    frame = user_frame()
    while frame is not None:
        key = id(frame.f_code), frame.f_lasti
        found = _known.get(key)
        if found is None:
            if len(_known) >= MOST_KEPT:
                _known.clear()
            found = _known[key] = frame.f_code, _stored(frame.f_code, frame.f_lasti)
        if found[1] is not None:
            return found[1] if len(found[1]) == count else ()
        frame = user_frame(frame.f_back) if frame.f_back is not None else None
    return ()


def _stored(code: CodeType, offset: int) -> Names | None:
    """The names that the bytecode at an offset assigns the result to; None where it returns it."""
    following = [i for i in instructions_after(code, offset) if not i.opname.startswith(("COPY", "DUP_TOP"))]
    if not following:
        return ()
    first = following[0]
    if first.opname == "RETURN_VALUE":
        return None
    wanted = first.argval if first.opname == "UNPACK_SEQUENCE" else 1
    names: list[str] = []
    for instruction in following[1 if first.opname == "UNPACK_SEQUENCE" else 0 :]:
        if instruction.opname.startswith("STORE_"):
            names += _targets(instruction)
        elif not instruction.opname.startswith("LOAD_"):  # which `self.x = …` does
            break
        if len(names) >= wanted:
            return tuple(names[:wanted])
    return ()


def _targets(instruction: dis.Instruction) -> list[str]:
    """The names that an instruction stores to; some store to two, and some load one then."""
    name, argument = instruction.opname, instruction.argval
    if name.startswith("STORE_ATTR") and argument == "next":
        return [""]  # `state.next = …` says what a value is for, not what it is
    if not name.startswith(("STORE_ATTR", "STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")):
        return [""]
    names = argument if isinstance(argument, tuple) else (argument,)
    return [str(n) for n in (names[:1] if "LOAD" in name else names)]
