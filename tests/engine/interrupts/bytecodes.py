"""An exception at the n-th place at which CPython lets the handler of a signal run: after calls and jumps back."""

from __future__ import annotations

import _weakrefset
import dis
import os
import sys
import weakref
import zipfile
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np
from hypothesis.internal.conjecture import junkdrawer

from .cases import Interrupted

CHECKED = ("CALL", "JUMP_BACKWARD", "RESUME")  # instructions, after which the interpreter looks for signals
HERE = os.path.dirname(__file__)
OTHERS = (  # they leave files open, or are called as things go, which Python complains of
    zipfile.__file__,
    str(np.load.__code__.co_filename),
    weakref.__file__,
    _weakrefset.__file__,
    junkdrawer.__file__,  # hypothesis counts what garbage collection takes
)
_known: dict[CodeType, tuple[bytes, list[Any]]] = {}


class Places:
    """Runs an action, and counts the places; at the n-th one it raises."""

    def __init__(self, raise_at: int = -1) -> None:
        self.raise_at, self.count, self.where = raise_at, 0, ""

    def run(self, action: Callable[[], Any]) -> bool:
        """Return whether it was interrupted."""
        before = sys.gettrace()
        sys._getframe().f_trace_opcodes = True  # from 3.12 on a frame must have that before
        sys.settrace(self._enter)
        try:
            action()
        except BaseException:
            if self.where:  # others may have made another error of it
                return True
            raise
        finally:
            sys.settrace(before)
        return False

    def _enter(self, frame: FrameType, event: str, arg: object) -> Any:
        code = frame.f_code
        if code.co_filename.startswith(HERE) or code.co_name == "__del__" or _is_of_others(frame):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        last = -1

        def follow(frame: FrameType, event: str, arg: object) -> Any:
            nonlocal last
            if event == "opcode":
                if last < 0 or _is_place(code, last, frame.f_lasti):
                    self._place(frame)
                last = frame.f_lasti
            return follow

        return follow

    def _place(self, frame: FrameType) -> None:
        self.count += 1
        if self.count == self.raise_at:
            self.where = f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno} {frame.f_code.co_name}"
            sys.settrace(None)
            raise Interrupted(self.where)


def _is_of_others(frame: FrameType | None) -> bool:
    while frame is not None and not frame.f_code.co_filename.startswith(HERE):
        if frame.f_code.co_filename in OTHERS:
            return True
        frame = frame.f_back
    return False


def _is_place(code: CodeType, last: int, now: int) -> bool:
    """Return whether a signal may come after an instruction, with a handler's exception before the next one."""
    if code not in _known:
        _known[code] = code.co_code, dis._parse_exception_table(code)  # type: ignore[attr-defined]
    instructions, table = _known[code]
    return dis.opname[instructions[last]].startswith(CHECKED) and _handler(table, last) == _handler(table, now)


def _handler(table: list[Any], offset: int) -> object:
    return next((entry.target for entry in table if entry.start <= offset < entry.end), None)
