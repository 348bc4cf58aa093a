"""What a function's code takes from outside: the names it loads, each with the attributes that it asks of it at once."""

from __future__ import annotations

import dis
from collections.abc import Iterator
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


class Use(NamedTuple):
    """A name that is loaded, as `np` in `np.random.random()`, and the attributes, as random and random."""

    scope: str
    name: str
    attributes: tuple[str, ...]


@lru_cache(maxsize=4096)
def uses(code: CodeType) -> tuple[Use, ...] | None:
    """What the code and the functions within load; None where it imports, which may give anything."""
    inner = [uses(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    listing = [i for i in dis.get_instructions(code) if i.opname not in ("EXTENDED_ARG", "CACHE")]
    if None in inner or any(i.opname == "IMPORT_NAME" for i in listing):
        return None
    return tuple(dict.fromkeys(chain(_loads(listing), *filter(None, inner))))


def _loads(listing: list[dis.Instruction]) -> Iterator[Use]:
    for position, instruction in enumerate(listing):
        if instruction.opname in SCOPES:
            end = position + 1
            while end < len(listing) and listing[end].opname in ATTRIBUTES and not listing[end].is_jump_target:
                end += 1
            attributes = tuple(str(i.argval) for i in listing[position + 1 : end])
            yield Use(SCOPES[instruction.opname], str(instruction.argval), attributes)
