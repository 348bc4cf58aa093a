"""Python names that a block rebinds: Python does so once, while recording, whatever the device does with the block."""

from __future__ import annotations

from types import FrameType
from typing import Any

from gpuop.base.errors import Loc, SemanticError
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.dsl.recorder.frames import stored_line
from gpuop.dsl.recorder.liveness import read_after, stored_names
from gpuop.dsl.recorder.outputs import OutputRef
from gpuop.dsl.recorder.recorder import Recorder
from gpuop.dsl.recorder.value import NUMBERS, Value
from gpuop.dsl.recorder.variable import Variable
from gpuop.ir.build import number

NOTHING = object()  # value of an unbound name
PLAIN = (*NUMBERS, complex, str, tuple, type(None), OutputRef)
CONDITIONAL = ("_if", "_elseif", "_else", "_while", "_codegenIf", "_codegenElseif", "_codegenElse")


class NameBindings:
    """Values of the names of a frame at the start of a block.

    A name of a recorded value must still have it at the end. A name of a Python value, such as a number, may be rebound, unless
    it is read after the block: Python would read the new value whether or not, and however often, the device runs the block.
    """

    def __init__(self, frame: FrameType, recorder: Recorder) -> None:
        self.frame, self.recorder, self.entered = frame, recorder, frame.f_lasti
        names = frame.f_locals
        self.before = {name: names.get(name, NOTHING) for name in stored_names(frame.f_code)}
        self.alive = {n for n, value in self.before.items() if isinstance(value, Value) and recorder.alive(value)}

    def check(self, block: str, loc: Loc | None, target: object) -> None:
        """Compare the names at the end of the block.

        Args:
            target: the value of `as`.

        Raises:
            SemanticError: at the line that rebinds a name.
        """
        frame, now = self.frame, self.frame.f_locals
        counters = target if isinstance(target, tuple) else (target,)
        for name, value in self.before.items():
            after = now.get(name, NOTHING)
            if after is value or not self._matters(name, value, after, block):
                continue
            line = stored_line(frame, name, self.entered)
            raise SemanticError(
                f"`{name}` is bound {_manner(value)} inside this `{block}` block, which the device cannot see; "
                + (_counter(name) if any(after is counter for counter in counters) else _advice(name, value)),
                Loc(frame.f_code.co_filename, line) if line is not None else loc,
            )

    def _matters(self, name: str, before: Any, after: Any, block: str) -> bool:
        if name in self.alive and isinstance(after, (Value, *NUMBERS)):
            return True
        if before is NOTHING and block not in CONDITIONAL:
            return False
        if not (before is NOTHING or _is_tracked(before)) or not _is_tracked(after) or _same(before, after):
            return False
        if isinstance(after, Value) and not self.recorder.alive(after):
            return False  # it is unusable anyway
        return read_after(self.frame.f_code, self.frame.f_lasti, name)


def _is_tracked(value: Any) -> bool:
    return isinstance(value, (Value, FieldLike, *PLAIN))


def _same(before: Any, after: Any) -> bool:
    """True if two Python values are equal; objects of other kinds equal only themselves."""
    if type(before) is not type(after):
        return False
    if isinstance(before, tuple):
        return len(before) == len(after) and all(a is b or _same(a, b) for a, b in zip(before, after, strict=True))
    return isinstance(before, PLAIN) and bool(before == after)


def _manner(before: Any) -> str:
    return "for the first time, and read after it," if before is NOTHING else "to another value"


def _counter(name: str) -> str:
    return f"the loop makes its counter itself: leave out the declaration of `{name}`, or give the counter another name"


def _advice(name: str, before: Any) -> str:
    if isinstance(before, Variable):
        return f"`{name}` is a variable: assign with `{name} @= …`"
    initial = repr(number(before)) if isinstance(before, NUMBERS) else "…"
    advice = f"declare `{name} = _var({initial})` before the block and assign `{name} @= …` inside"
    return advice if isinstance(before, Value) else f"{advice}, or bind it outside the block if it is meant for Python"
