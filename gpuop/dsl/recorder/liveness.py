"""Liveness of Python names in bytecode: reads after a place and before the next binding."""

from __future__ import annotations

import dis
import re
from functools import lru_cache
from types import CodeType

from gpuop.dsl.recorder.frames import instructions, once_per_code, position, target

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
    waiting, seen = [position(code, offset) + 1], set[int]()
    while waiting:
        at = waiting.pop()
        if at in seen or at >= len(listing):
            continue
        seen.add(at)
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
    return targets if _always(instruction.opname) else [*targets, at + 1]


def _always(name: str) -> bool:
    """True if an instruction jumps unconditionally."""
    return name.startswith("JUMP") and "_IF_" not in name


def _accesses(instruction: dis.Instruction) -> list[tuple[str, str]]:
    """Variable accesses of an instruction, in order; some have two."""
    if instruction.opname == COMPREHENSION:
        return []
    kinds = ACCESS.findall(instruction.opname)
    names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
    return list(zip(kinds, map(str, names), strict=False))
