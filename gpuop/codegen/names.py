"""Identifiers: the user's names, made unique and kept apart from the language's own."""

from __future__ import annotations

import re

from gpuop.codegen.dialect import Dialect
from gpuop.ir.nodes import AXES, Array, FieldParam, Index, Var
from gpuop.ir.ops import OPS
from gpuop.ir.types import DTYPES

C_WORDS = frozenset(
    [
        "auto",
        "bool",
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
        "goto",
        "half",
        "if",
        "inline",
        "int",
        "long",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "typedef",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
        "kernel",
        "global",
        "local",
        "constant",
        "private",
        "uchar",
        "ushort",
        "uint",
        "ulong",
        "size_t",
        "image2d_t",
        "sampler_t",
        "event_t",
        "template",
        "typename",
        "class",
        "namespace",
        "new",
        "delete",
        "this",
        "true",
        "false",
        "operator",
        "public",
        "protected",
        "friend",
        "virtual",
        "using",
        "try",
        "throw",
        "catch",
        "asm",
        "dim3",
        "threadIdx",
        "blockIdx",
        "blockDim",
        "gridDim",
        "warpSize",
        "main",
        "NAN",
        "INFINITY",
        "NULL",
        "quad",
        "complex",
        "vec_step",
        "y0",
        "y1",
        "j0",
        "j1",
        "signbit",
        "isnan",
        "isinf",
        "isfinite",
        "select",
        "any",
        "all",
        "dot",
        "cross",
        "length",
        "distance",
        "normalize",
        "clamp",
        "mix",
        "step",
        "sign",
        "abs",
        "half_float",
        "out",
        "in",
    ]
)
INDEX_NAMES = {
    "global": "_{axis}",
    "local": "_local{Axis}",
    "group": "_group{Axis}",
    "global_size": "_{axis}s",
    "local_size": "_local{Axis}s",
}


def index_name(index: Index, column: str = "column") -> str:
    """`_row`, `_localRow`, `_rows`… without the offset; `column` is what an axis of threads is called that are no columns."""
    if index.axis == "element":
        return "_tensorElement" if index.kind == "global" else "_tensorElements"
    axis = column if index.axis == "column" else index.axis
    return INDEX_NAMES[index.kind].format(axis=axis, Axis=axis.capitalize())


class Names:
    """Turns symbols into identifiers: the user's hints, made unique in order of appearance."""

    def __init__(self, dialect: Dialect) -> None:
        self.taken = set(C_WORDS | set(OPS) | set(DTYPES) | set(dialect.helpers))
        self.taken |= {index_name(Index(kind, axis)) for kind in INDEX_NAMES for axis in AXES}
        self.names: dict[Var | Array | FieldParam, str] = {}
        self.used: dict[str, int] = {}

    def of(self, symbol: Var | Array | FieldParam) -> str:
        if symbol not in self.names:
            self.names[symbol] = self.fresh(symbol.hint)
        return self.names[symbol]

    def fresh(self, hint: str) -> str:
        base = re.sub(r"\W", "_", hint, flags=re.ASCII).strip("_") or "t"
        base = f"f{base}" if base[0].isdigit() else base
        name, number = base, self.used.get(base, 0)
        while name in self.taken:
            number += 1
            name = f"{base}_{number}"
        self.used[base] = number
        self.taken.add(name)
        return name
