"""Assignment targets of the running call, read from the bytecode after it."""

from __future__ import annotations

import dis
from collections.abc import Sequence
from types import CodeType, FrameType

from gpuop.base.lru import BoundedCache
from gpuop.dsl.recorder.frames import instruction_at, instructions, position, updates

MOST_FOLLOWED = 400  # instructions of one assignment
MOST_CACHED = 4096
ROTATIONS = {"ROT_TWO": 2, "ROT_THREE": 3, "ROT_FOUR": 4}  # in Python 3.10
PLAIN = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")
PUSHES_ONLY = ("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_CONST", "LOAD_DEREF", "LOAD_CLOSURE", "PUSH_NULL")
STAYS = ("NOP", "RESUME", "KW_NAMES", "PRECALL", "COPY", "DUP_TOP")  # takes nothing from the stack
Names = tuple[str, ...]
Entry = tuple[CodeType, Names | None]
_cache: BoundedCache[tuple[int, int], Entry] = BoundedCache(MOST_CACHED)  # by the identity of the code, and the offset


def assigned(code: CodeType, offset: int) -> Names | None:
    """The variables that the result of the instruction at an offset is assigned to, of `x, y = f()` several.

    Attributes have a leading dot; targets without a name are empty. None if the code returns the result.
    """
    entry = _cache.get((id(code), offset))
    if entry is None:
        entry = _cache[id(code), offset] = code, _assigned(code, offset)
    return entry[1]


def unpacked(frame: FrameType) -> int | None:
    """Number of names in a running `x, y = …` without a star; None if another instruction runs."""
    instruction = instruction_at(frame.f_code, frame.f_lasti)
    return int(instruction.argval) if instruction.opname == "UNPACK_SEQUENCE" else None


def is_chained(frame: FrameType) -> bool:
    """True if the first part of a chained comparison, as of `a < x < b`, is asked for its truth."""
    at = position(frame.f_code, frame.f_lasti)
    at += instructions(frame.f_code)[at].opname == "COMPARE_OP"  # from Python 3.13 on it may ask for the truth itself
    before = [i.opname for i in reversed(instructions(frame.f_code)[:at]) if i.opname not in ("CACHE", "EXTENDED_ARG")]
    while before and before[0] in ("COPY", "TO_BOOL"):  # these act on the result
        del before[0]
    return len(before) > 1 and before[0] == "COMPARE_OP" and before[1] in ("COPY", "ROT_THREE")  # middle value


def _assigned(code: CodeType, offset: int) -> Names | None:
    first = position(code, offset) + 1
    following = instructions(code)[first : first + MOST_FOLLOWED]
    above = 0  # number of values on the stack above the result
    at = 0
    while at < len(following):
        instruction, at = following[at], at + 1
        name = instruction.opname
        if name.startswith("STORE_"):
            targets = _targets(instruction)
            if above < len(targets):
                return (targets[above],)
        if above == 0 and name == "RETURN_VALUE":
            return None
        if above == 0 and name == "UNPACK_SEQUENCE":
            return _unpacked(following[at:], instruction.argval)
        if name in ("BUILD_TUPLE", "BUILD_LIST") and above < instruction.argval:
            at = _after_unpacking(following, at, instruction.argval)
            if not at:
                return ()
            above = instruction.argval - 1 - above
            continue
        moved = _moved(instruction, above)
        if moved is None:
            return ()
        above = moved
    return ()


def _moved(instruction: dis.Instruction, above: int) -> int | None:
    """Number of values above the result after an instruction; None if that consumes it, or jumps."""
    name, opcode = instruction.opname, instruction.opcode
    if name == "SWAP":
        swapped = int(instruction.argval) - 1
        return swapped if above == 0 else 0 if above == swapped else above
    if name in ROTATIONS:
        return ROTATIONS[name] - 1 if above == 0 else above - (above < ROTATIONS[name])
    if above == 0 and name in ("COPY", "DUP_TOP"):  # `a = b = f()` stores a copy first
        return 0
    if opcode in dis.hasjrel or opcode in dis.hasjabs:
        return None
    effect = dis.stack_effect(opcode, instruction.arg)
    return above + effect if _pops(name, effect) <= above else None


def _pops(name: str, effect: int) -> int:
    """Number of values that an instruction pops from the stack."""
    if name.startswith(PUSHES_ONLY):
        return 0
    if name.startswith(STAYS):
        return max(-effect, 0)  # a PRECALL counts as taking the arguments of its CALL
    if name == "STORE_FAST_LOAD_FAST" or name.startswith(("LOAD_ATTR", "LOAD_METHOD", "UNPACK_")):
        return 1
    return -effect if name.startswith(("STORE_", "POP_")) else 1 - effect  # others make one value of several


def _after_unpacking(following: Sequence[dis.Instruction], at: int, count: int) -> int:
    """Position after the UNPACK_SEQUENCE that undoes a tuple built before `at`, as in `a, b, c, d = …`; else 0."""
    while at < len(following) and following[at].opname in ("COPY", "DUP_TOP"):
        at += 1
    undone = at < len(following) and following[at].opname == "UNPACK_SEQUENCE" and following[at].argval == count
    return at + 1 if undone else 0


def _unpacked(following: Sequence[dis.Instruction], count: int) -> Names:
    """The targets of the components of a tuple."""
    names: list[str] = []
    for instruction in following:
        if instruction.opname.startswith("STORE_"):
            targets = _targets(instruction)
            names += targets[1:] if instruction.opname == "STORE_ATTR" else targets
        elif not instruction.opname.startswith("LOAD_"):  # `self.x = …` loads `self` first
            break
        if len(names) >= count:
            return tuple(names[:count])
    return ()


def _targets(instruction: dis.Instruction) -> list[str]:
    """The names that an instruction stores the values at the top of the stack to; empty ones where there is no name."""
    name, argument = instruction.opname, instruction.argval
    if name == "STORE_ATTR":  # the object on top is no target, and `state.next` names no value
        return ["", "" if argument == "next" else f".{argument}"]
    if not name.startswith(PLAIN):
        return [""]
    names = argument if isinstance(argument, tuple) else (argument,)
    return [str(n) for n in (names[:1] if "LOAD" in name else names)]


def assigned_name(frame: FrameType | None) -> str:
    """The variable that the call running in `frame` is assigned to, as in `g = x * 2`; empty when there is none."""
    if frame is None or updates(instruction_at(frame.f_code, frame.f_lasti)):
        return ""  # `v += e` names v, not what is added
    names = assigned(frame.f_code, frame.f_lasti) or ()
    return names[0] if len(names) == 1 and not names[0].startswith(".") else ""


def argument_name(code: CodeType, offset: int) -> str:
    """The variable or attribute that is the last argument of the call at an offset; empty where that is an expression."""
    for instruction in reversed(instructions(code)[: position(code, offset)]):
        name, argument = instruction.opname, instruction.argval
        if name in ("PRECALL", "KW_NAMES", "CACHE") or (name == "LOAD_CONST" and isinstance(argument, tuple)):
            continue  # instructions that some versions of Python put before the call
        variable = name.startswith(("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_ATTR"))
        return str(argument[-1] if isinstance(argument, tuple) else argument) if variable else ""
    return ""
