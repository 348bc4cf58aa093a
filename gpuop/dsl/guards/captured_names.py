"""Captured names: the globals, closure variables and imports that code loads, and the attributes that it accesses."""

from __future__ import annotations

import dis
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from types import CodeType
from typing import NamedTuple

# Scope of a name, by the instruction that loads it (3.10 … 3.14); "maybe": in a class body the name may belong to that body
SCOPES = {
    "LOAD_GLOBAL": "global", "LOAD_NAME": "maybe", "LOAD_FROM_DICT_OR_GLOBALS": "maybe", "LOAD_DEREF": "cell",
    "LOAD_CLASSDEREF": "cell", "LOAD_FROM_DICT_OR_DEREF": "cell",
}  # fmt: skip
ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
ATTRIBUTE_LOADS = (*ATTRIBUTES, "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD", "IMPORT_FROM")
ATTRIBUTE_FUNCTIONS = ("getattr", "hasattr")
SKIPPED = ("EXTENDED_ARG", "CACHE", "PRECALL", "PUSH_NULL")
NAMESPACES = ("__dict__", "__getattr__", "__getattribute__")  # access to these may give any attribute
IMPLICIT = {  # attributes that instructions access without naming them; patterns ask abstract classes
    "STORE_ATTR": ("__setattr__",), "DELETE_ATTR": ("__delattr__",), "MATCH_CLASS": ("__match_args__",),
    "LOAD_BUILD_CLASS": ("__init_subclass__", "__set_name__"), "MATCH_SEQUENCE": ("MATCH_SEQUENCE",),
    "MATCH_MAPPING": ("MATCH_MAPPING",),
}  # fmt: skip
ANY = "*"  # stands for names that are computed


class Use(NamedTuple):
    """A loaded name and the attributes accessed on it (`np`, random and random in `np.random.random()`), or an imported module."""

    scope: str
    name: str
    attributes: tuple[str, ...]


class Uses(NamedTuple):
    """Names and attributes that code uses, including the functions within it.

    Attributes:
        loads: loaded names, each once.
        accessed: names of attributes of anything else, such as a local name; ANY among them if one is computed.
    """

    loads: tuple[Use, ...]
    accessed: tuple[str, ...]


@lru_cache(maxsize=4096)
def uses(code: CodeType) -> Uses:
    """Names and attributes that the code takes from outside."""
    inner = [uses(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    listing = [i for i in dis.get_instructions(code) if i.opname not in SKIPPED]
    loads = list(_loads(listing))
    chained = {position for _, positions in loads for position in positions}
    accessed = (i.argval for n, i in enumerate(listing) if i.opname in ATTRIBUTE_LOADS and n not in chained)
    names = [ANY if name in NAMESPACES else str(name) for name in accessed]
    for position, instruction in enumerate(listing):
        names += IMPLICIT.get(instruction.opname, ())
        if instruction.opname == "MATCH_CLASS":
            names += listing[position - 1].argval  # of the keywords of the pattern
    return Uses(
        tuple(dict.fromkeys(chain((use for use, _ in loads), *(each.loads for each in inner)))),
        tuple(dict.fromkeys(chain(names, _attribute_texts(listing), *(each.accessed for each in inner)))),
    )


def line_of(code: CodeType, name: str) -> int:
    """Line of the first use of a name or an attribute, in code or in functions within it; that of the code if there is none."""
    offsets = [i.offset for i in dis.get_instructions(code) if i.argval == name]
    lines = [line for start, end, line in code.co_lines() if line and any(start <= at < end for at in offsets)]
    if lines:
        return lines[0]
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return next((line for each in inner if (line := line_of(each, name)) != each.co_firstlineno), code.co_firstlineno)


def _loads(listing: Sequence[dis.Instruction]) -> Iterator[tuple[Use, range]]:
    """Loaded and imported names, each with the positions of its attribute accesses."""
    for position, instruction in enumerate(listing):
        if instruction.opname in SCOPES:
            accesses = range(position + 1, _chain_end(listing, position + 1))
            attributes = tuple(str(listing[n].argval) for n in accesses)
            yield Use(SCOPES[instruction.opname], str(instruction.argval), attributes), accesses
        elif instruction.opname == "IMPORT_NAME":
            level = listing[position - 2].argval
            yield Use("import", "." * level + str(instruction.argval), ()), range(0)


def _chain_end(listing: Sequence[dis.Instruction], position: int) -> int:
    """Position after a chain of attribute accesses."""
    while position < len(listing) and listing[position].opname in ATTRIBUTES and not listing[position].is_jump_target:
        position += 1
    return position


def _attribute_texts(listing: Sequence[dis.Instruction]) -> Iterator[str]:
    """Names passed to `getattr` and `hasattr`, as in `getattr(x.y, "name", other)`; ANY for computed ones."""
    for position, instruction in enumerate(listing):
        if instruction.opname == "LOAD_GLOBAL" and instruction.argval in ATTRIBUTE_FUNCTIONS:
            at = _chain_end(listing, position + 2)
            last = at + 1
            while last < len(listing) and listing[last].opname.startswith("LOAD_"):
                last += 1
            called = last < len(listing) and listing[last].opname.startswith("CALL")
            name = listing[at].argval if called and listing[at].opname == "LOAD_CONST" else None
            yield name if isinstance(name, str) else ANY
