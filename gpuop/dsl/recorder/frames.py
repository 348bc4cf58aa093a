"""User frames: their positions, and the statement around a call."""

from __future__ import annotations

import dis
import linecache
from bisect import bisect_left, bisect_right
from collections import ChainMap
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache, wraps
from itertools import pairwise
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar

from gpuop.base.errors import Loc, SemanticError, is_users, writes_kernels
from gpuop.base.lru import BoundedCache

T = TypeVar("T")
# Frame id (which a later frame may share), code, and bytecode offset
Position = tuple[int, CodeType, int]
MOST_DECORATOR_LINES = 20
MOST_CODE = 1024  # functions that are remembered
_checked: BoundedCache[int, CodeType] = BoundedCache(MOST_CODE)  # by identity, which is unique while the code lives
MUST_CALL = ("_break", "_continue", "_return", "_syncThreadsLocal", "_syncThreadsGlobal")


def once_per_code(make: Callable[[CodeType], T]) -> Callable[[CodeType], T]:
    """Memoise a function of code by identity: hashing code is slow, and equal code may be from another file."""
    cache: BoundedCache[int, tuple[CodeType, T]] = BoundedCache(MOST_CODE)

    @wraps(make)
    def remembered(code: CodeType) -> T:
        entry = cache.get(id(code))
        if entry is None:
            entry = cache[id(code)] = code, make(code)  # the entry keeps the code alive, so its identity is unique
        return entry[1]

    return remembered


@once_per_code
def _listed(code: CodeType) -> tuple[list[int], list[dis.Instruction]]:
    listing = [i for i in dis.get_instructions(code) if i.opname not in ("EXTENDED_ARG", "CACHE")]
    return [i.offset for i in listing], listing


def instructions(code: CodeType) -> list[dis.Instruction]:
    """Bytecode of a function, without extensions and caches."""
    return _listed(code)[1]


def position(code: CodeType, offset: int) -> int:
    """The number of the instruction at an offset, which may point into its inline cache."""
    return bisect_right(_listed(code)[0], offset) - 1


def instruction_at(code: CodeType, offset: int) -> dis.Instruction:
    """The instruction at an offset, which may point into its inline cache."""
    offsets, listing = _listed(code)
    return listing[bisect_right(offsets, offset) - 1]


def target(code: CodeType, offset: int) -> int:
    """Index of the instruction at the target offset of a jump."""
    return bisect_left(_listed(code)[0], offset)


def trail(frame: FrameType | None, root: FrameType | None) -> tuple[Position, ...]:
    """Positions of the user frames, up to that of the operator body; none may drop a builtin that must be called.

    No frame beyond `root` is looked at: the locals of a caller, once looked at, live until it returns.
    """
    positions = []
    while frame is not None:
        if writes_kernels(frame):
            check_frame(frame)
            positions.append((id(frame), frame.f_code, frame.f_lasti))
        if frame is root:
            break
        frame = frame.f_back
    return tuple(positions)


@lru_cache(maxsize=4096)
def _call_start(code: CodeType, offset: int, name: str) -> int:
    for instruction in reversed(instructions(code)[: position(code, offset) + 1]):
        if instruction.argval == name:
            return int(instruction.offset)
    return offset


def inside(frame: FrameType, name: str) -> Callable[[tuple[Position, ...]], bool]:
    """Predicate on frame positions: was this frame evaluating the expression `name(…)` that it evaluates now?"""
    owner, code, stop = id(frame), frame.f_code, frame.f_lasti
    start = _call_start(code, stop, name)
    return lambda stood: any(f == owner and c is code and start <= offset <= stop for f, c, offset in stood)


def def_line(code: CodeType) -> Loc:
    """The line of a function's `def`, below its decorators."""
    first = code.co_firstlineno
    lines = linecache.getlines(code.co_filename)[first - 1 : first + MOST_DECORATOR_LINES]
    below = next((n for n, text in enumerate(lines) if text.lstrip().startswith("def ")), 0)
    return Loc(code.co_filename, first + below if code.co_name != "<lambda>" else first)


@once_per_code
def return_line(code: CodeType) -> Loc | None:
    """Line of the only `return` of a value in a function; None if there are several."""
    line, lines, listing = code.co_firstlineno, set(), instructions(code)
    for before, instruction in zip((listing[0], *listing), listing, strict=False):
        line = _line(instruction) or line
        returns = instruction.opname.startswith("RETURN_") and "GENERATOR" not in instruction.opname
        constant = instruction if instruction.opname == "RETURN_CONST" else before
        if returns and not (constant.opname.endswith("_CONST") and constant.argval is None):
            lines.add(line)
    return Loc(code.co_filename, lines.pop()) if len(lines) == 1 else None


def stored_line(frame: FrameType, name: str, start: int) -> int | None:
    """First line between a bytecode offset and the current position that binds a name; updates come last."""
    code, bindings = frame.f_code, []
    line, listing = code.co_firstlineno, instructions(code)
    for before, instruction in zip((listing[0], *listing), listing, strict=False):
        line = _line(instruction) or line
        names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        if start <= instruction.offset <= frame.f_lasti and instruction.opname.startswith("STORE_") and name in names:
            bindings.append((updates(before), line))
    return min(bindings)[1] if bindings else None


def updates(instruction: dis.Instruction) -> bool:
    """True for the operation of `v += e`."""
    return instruction.opname.startswith("INPLACE") or instruction.argrepr.endswith("=")


def check_frame(frame: FrameType) -> None:
    """Apply `check_called` to the function of a frame, and to those that it names."""
    if frame.f_code is not _checked.get(id(frame.f_code)):
        check_called(frame.f_code, ChainMap(frame.f_locals, frame.f_globals))


def check_called(code: CodeType, names: Mapping[str, Any], visited: frozenset[CodeType] = frozenset()) -> None:
    """Refuse `_break` without parentheses, in a function or a user function that it names: such a statement does nothing.

    Raises:
        SemanticError: at the line of the bare name.
    """
    if code in visited or code is _checked.get(id(code)):
        return
    for name, line in _dropped(code):
        if name in MUST_CALL or _is_builtin(names.get(name)):
            message = f"`{name}` without parentheses does nothing; write `{name}({'' if name in MUST_CALL else '…'})`"
            raise SemanticError(message, Loc(code.co_filename, line))
    visited |= {code}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            check_called(inner, names, visited)
    for name in (*code.co_names, *code.co_freevars):
        called = names.get(name)
        if isinstance(called, FunctionType) and is_users(called.__code__.co_filename):
            check_called(called.__code__, ChainMap(closure_of(called), called.__globals__), visited)
    _checked[id(code)] = code


def closure_of(function: Any) -> dict[str, Any]:
    """Closure variables of a function that are bound already."""
    bindings = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # not assigned yet
            bindings[name] = cell.cell_contents
    return bindings


def _is_builtin(value: object) -> bool:
    return isinstance(value, FunctionType) and value.__module__.startswith("gpuop.dsl.builtins.")


def _dropped(code: CodeType) -> list[tuple[str, int]]:
    """Names that are statements by themselves, with their lines."""
    if not any(name.startswith("_") for name in (*code.co_names, *code.co_freevars)):
        return []
    names, line, listing = [], code.co_firstlineno, instructions(code)
    for instruction, following in pairwise(listing):
        line = _line(instruction) or line
        if (
            following.opname == "POP_TOP"
            and instruction.opname.startswith("LOAD")
            and isinstance(instruction.argval, str)
        ):
            names.append((instruction.argval, line))
    return names


def _line(instruction: dis.Instruction) -> int | None:
    starts = instruction.starts_line  # a bool from Python 3.13 on, a line number before
    if isinstance(starts, bool):
        return getattr(instruction, "line_number", None)
    return starts
