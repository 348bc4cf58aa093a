"""Captured names: the globals, closure variables and imports that code loads, and the attributes that it accesses."""

from __future__ import annotations

import dis
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from types import CodeType
from typing import NamedTuple

# By instruction (3.10 … 3.14) where the name is found. In a class's body it may be one of that body's own.
SCOPES = {
    "LOAD_GLOBAL": "global", "LOAD_NAME": "maybe", "LOAD_FROM_DICT_OR_GLOBALS": "maybe", "LOAD_DEREF": "cell",
    "LOAD_CLASSDEREF": "cell", "LOAD_FROM_DICT_OR_DEREF": "cell",
}  # fmt: skip
ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
ASKING = (*ATTRIBUTES, "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD", "IMPORT_FROM")
BY_TEXT = ("getattr", "hasattr")
SKIPPED = ("EXTENDED_ARG", "CACHE", "PRECALL", "PUSH_NULL")
WHOLE = ("__dict__", "__getattr__", "__getattribute__")  # of which any attribute comes
ANY = "*"  # stands for names that are computed


class Use(NamedTuple):
    """A name that is loaded, as `np` in `np.random.random()`, and the attributes, as random and random; or what is imported."""

    scope: str
    name: str
    attributes: tuple[str, ...]


class Uses(NamedTuple):
    """What the code and the functions within take.

    Attributes:
        loads: each once.
        asked: names of attributes that are asked of anything else, as of a local name; ANY among them where they are computed.
    """

    loads: tuple[Use, ...]
    asked: tuple[str, ...]


@lru_cache(maxsize=4096)
def uses(code: CodeType) -> Uses:
    """What the code takes from outside."""
    inner = [uses(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    listing = [i for i in dis.get_instructions(code) if i.opname not in SKIPPED]
    loads = list(_loads(listing))
    chained = {position for _, positions in loads for position in positions}
    asked = (i.argval for n, i in enumerate(listing) if i.opname in ASKING and n not in chained)
    names = (ANY if name in WHOLE else str(name) for name in asked)
    return Uses(
        tuple(dict.fromkeys(chain((use for use, _ in loads), *(each.loads for each in inner)))),
        tuple(dict.fromkeys(chain(names, _by_text(listing), *(each.asked for each in inner)))),
    )


def _loads(listing: Sequence[dis.Instruction]) -> Iterator[tuple[Use, range]]:
    """What is loaded or imported, and where its attributes are asked for."""
    for position, instruction in enumerate(listing):
        if instruction.opname in SCOPES:
            asking = range(position + 1, _after(listing, position + 1))
            attributes = tuple(str(listing[n].argval) for n in asking)
            yield Use(SCOPES[instruction.opname], str(instruction.argval), attributes), asking
        elif instruction.opname == "IMPORT_NAME":
            level = listing[position - 2].argval
            yield Use("import", "." * level + str(instruction.argval), ()), range(0)


def _after(listing: Sequence[dis.Instruction], position: int) -> int:
    """Where a chain of attributes ends."""
    while position < len(listing) and listing[position].opname in ATTRIBUTES and not listing[position].is_jump_target:
        position += 1
    return position


def _by_text(listing: Sequence[dis.Instruction]) -> Iterator[str]:
    """The names that are given to `getattr` and `hasattr`: those of `getattr(x.y, "name", other)`, and ANY for others."""
    for position, instruction in enumerate(listing):
        if instruction.opname == "LOAD_GLOBAL" and instruction.argval in BY_TEXT:
            at = _after(listing, position + 2)
            behind = at + 1
            while behind < len(listing) and listing[behind].opname.startswith("LOAD_"):
                behind += 1
            called = behind < len(listing) and listing[behind].opname.startswith("CALL")
            name = listing[at].argval if called and listing[at].opname == "LOAD_CONST" else None
            yield name if isinstance(name, str) else ANY
