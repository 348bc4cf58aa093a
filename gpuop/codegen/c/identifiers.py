"""Identifiers: names of the user, made unique and distinct from those of the language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from gpuop.codegen.c.dialect import Dialect
from gpuop.codegen.c.reserved_words import FAMILIES, WORDS
from gpuop.ir.nodes import AXES, Array, FieldParam, Index, Var
from gpuop.ir.ops import OPS
from gpuop.ir.types import DTYPES

INDEX_NAMES = {
    "global": "_{axis}",
    "local": "_local{Axis}",
    "group": "_group{Axis}",
    "global_size": "_{axis}s",
    "local_size": "_local{Axis}s",
    "group_count": "_group{Axis}s",
}


def index_name(index: Index, threads: Mapping[str, str] = MappingProxyType({})) -> str:
    """`_row`, `_localRow`, `_rows`… without the offset; `threads` has what axes are called whose threads are no points."""
    if index.axis == "element":
        return "_tensorElement" if index.kind == "global" else "_tensorElements"
    axis = threads.get(index.axis, index.axis)
    return INDEX_NAMES[index.kind].format(axis=axis, Axis=axis[0].upper() + axis[1:])


FACTS = (
    "layers", "rows", "columns", "points", "tensorElements", "layerStride", "rowStride", "columnStride", "tensorStride",
    "tensorRowStride", *"xyzw",
)  # fmt: skip
"""What is behind the name of a field, and an underscore, in the names of its layout and of what it has by value."""


def comment(text: str) -> str:
    """A line of comment, whatever the text: nothing in it ends the line, or joins the next one to it."""
    line = "".join(c if c.isprintable() else " " for c in text).replace("\\", "/")
    return "// " + re.sub(r"\?{2,}/", "?/", line)  # the trigraph of a backslash


class Names:
    """Identifiers of symbols: the names of the user, made unique in order of appearance."""

    def __init__(self, dialect: Dialect) -> None:
        self.reserved = {*WORDS, *OPS, *DTYPES, *dialect.helpers, *dialect.words}
        self.reserved |= {index_name(Index(kind, axis)) for kind in INDEX_NAMES for axis in AXES}
        self.names: dict[Var | Array | FieldParam, str] = {}
        self.used: dict[str, int] = {}

    def of(self, symbol: Var | Array | FieldParam) -> str:
        if symbol not in self.names:
            self.names[symbol] = self.fresh(symbol.hint, FACTS if isinstance(symbol, FieldParam) else ())
        return self.names[symbol]

    def fresh(self, hint: str, facts: Iterable[str] = ()) -> str:
        """A new identifier like the hint; those of its facts are reserved with it."""
        base = re.sub(r"\W", "_", hint, flags=re.ASCII).strip("_") or "t"
        base = f"f{base}" if base[0].isdigit() else f"t_{base}" if FAMILIES.fullmatch(base) else base
        name, number = base, self.used.get(base, 0)
        while not self.reserved.isdisjoint(identifiers := {name, *(f"{name}_{fact}" for fact in facts)}):
            number += 1
            name = f"{base}_{number}"
        self.used[base] = number
        self.reserved |= identifiers
        return name
