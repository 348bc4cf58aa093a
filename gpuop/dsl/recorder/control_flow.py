"""Blocks of control flow: entering one opens a block, leaving it records the statement."""

from __future__ import annotations

import dis
import re
from functools import lru_cache
from types import CodeType, FrameType, TracebackType
from typing import Any, NoReturn

from gpuop.base.errors import Loc, SemanticError, article, here
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.dsl.recorder.frames import check_frame, instructions, once_per_code, position, stored_line, target
from gpuop.dsl.recorder.outputs import OutputRef
from gpuop.dsl.recorder.recorder import Recorder, Scope, caller, current
from gpuop.dsl.recorder.source_checks import check_returns
from gpuop.dsl.recorder.value import NUMBERS, Operand, Value, atom
from gpuop.dsl.recorder.variable import Variable
from gpuop.ir.build import constant, number
from gpuop.ir.nodes import Expr, Stmt
from gpuop.ir.types import BOOL, Type


class Uncalled(type):
    """Metaclass of block classes: `with _else:` without parentheses is an error."""

    def __enter__(cls) -> NoReturn:
        raise SemanticError(f"`{cls.__name__}` opens a block when it is called; write `with {cls.__name__}(…):`")

    def __exit__(cls, *exc: object) -> None:
        """Python looks it up before it enters."""


class BlockContext(metaclass=Uncalled):
    """Result of `_if(…)` and its like; entering it opens the block, leaving it records the statement."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.loc = here()
        self.recorder = current(f"`{name}`")
        self.recorder.check_pending()
        self.recorder.pending = (name, self.loc)
        self.frame: FrameType | None = None

    def __bool__(self) -> NoReturn:
        raise SemanticError(f"`{self.name}(…)` opens a block; write `with {self.name}(…):`", self.loc)

    def __iter__(self) -> NoReturn:
        raise SemanticError(f"`{self.name}(…)` opens a block; write `with {self.name}(…) as i:`", self.loc)

    def opens(self) -> Any:
        """Hook in the open block; returns the value of `as`."""

    def closes(self, body: list[Stmt]) -> None:
        """Hook after the block, which records the statement."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        self.recorder.pending = None
        self.frame = caller()
        check_frame(self.frame)
        check_returns(self.frame.f_code)
        self.bindings = NameBindings(self.frame, self.recorder)
        self.recorder.push(Scope(self.name, self.loc))
        self.target = self.opens()
        return self.target

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        bindings, target, self.frame = self.bindings, self.target, None
        del self.bindings, self.target  # they refer to the frame and the recorder
        if kind is not None:
            self.recorder.pop()
            return
        self.recorder.check_pending()
        body = self.recorder.pop()
        bindings.check(self.name, self.loc, target)
        self.closes(body)


def condition(value: Operand, name: str) -> Expr:
    """A scalar truth value; integers and floating values count as `!= 0`."""
    source = atom(value)
    if not isinstance(source, (bool, int, float)):
        if source.type.lanes > 1:
            raise SemanticError(
                f"`{name}` wants a scalar condition, not {article(str(source.type))}; combine the components, as in `c.x & c.y`"
            )
        return current().build.cast(source, Type(BOOL))
    return constant(bool(source), BOOL)


# --- names that a block rebinds ---------------------------------------------------------------------------------------
# Python rebinds a name once, while recording, whatever the device does with the block.


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
            manner = "for the first time, and read after it," if value is NOTHING else "to another value"
            raise SemanticError(
                f"`{name}` is bound {manner} inside this `{block}` block, which the device cannot see; "
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


def _counter(name: str) -> str:
    return f"the loop makes its counter itself: leave out the declaration of `{name}`, or give the counter another name"


def _advice(name: str, before: Any) -> str:
    if isinstance(before, Variable):
        return f"`{name}` is a variable: assign with `{name} @= …`"
    initial = repr(number(before)) if isinstance(before, NUMBERS) else "…"
    advice = f"declare `{name} = _var({initial})` before the block and assign `{name} @= …` inside"
    return advice if isinstance(before, Value) else f"{advice}, or bind it outside the block if it is meant for Python"


# --- liveness of names in bytecode: reads after a place and before the next binding -----------------------------------


ACCESS = re.compile(r"(LOAD|STORE|DELETE)_(?:FAST|DEREF|NAME|CLASSDEREF|CLOSURE|FROM_DICT)")
EXITS = ("RETURN_", "RAISE_", "RERAISE")
COMPREHENSION = "LOAD_FAST_AND_CLEAR"  # saves a variable around a comprehension, which has its own


@once_per_code
def stored_names(code: CodeType) -> frozenset[str]:
    """The variables that a function binds."""
    return frozenset(name for i in instructions(code) for kind, name in _accesses(i) if kind == "STORE")


@lru_cache(maxsize=4096)
def read_after(code: CodeType, offset: int, name: str) -> bool:
    """Return whether the value of a name after the instruction at an offset may be read; always for a name of an outer
    function.
    """
    listing = instructions(code)
    waiting, visited = [position(code, offset) + 1], set[int]()
    while waiting:
        at = waiting.pop()
        if at in visited or at >= len(listing):
            continue
        visited.add(at)
        instruction = listing[at]
        kind = next((kind for kind, accessed in _accesses(instruction) if accessed == name), "")
        if kind == "LOAD" or (instruction.opname.startswith("RETURN_") and name in code.co_freevars):
            return True
        if not kind:
            waiting += _following(code, at)
    return False


def _following(code: CodeType, at: int) -> list[int]:
    """The numbers of the instructions that may come next, unless something raises."""
    instruction = instructions(code)[at]
    if instruction.opname.startswith(EXITS):
        return []
    jumps = (
        instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs
    ) and "SETUP" not in instruction.opname
    targets = [target(code, instruction.argval)] if jumps else []
    always = instruction.opname.startswith("JUMP") and "_IF_" not in instruction.opname
    return targets if always else [*targets, at + 1]


def _accesses(instruction: dis.Instruction) -> list[tuple[str, str]]:
    """Variable accesses of an instruction, in order; some have two."""
    if instruction.opname == COMPREHENSION:
        return []
    kinds = ACCESS.findall(instruction.opname)
    names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
    return list(zip(kinds, map(str, names), strict=False))
