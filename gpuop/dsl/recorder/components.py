"""Vector components, by number and by letter."""

from __future__ import annotations

import re
from typing import Any

from gpuop.base.errors import SemanticError, article
from gpuop.ir.types import Type, is_integer

SWIZZLE = re.compile(r"[xyzw]{1,4}\Z")
COMPONENTS = "it has components x, y, z, w and their swizzles"
_PAIR = "of a complex number, a pair of floats, it is"
INSTEAD = {  # replacements of array attributes
    "conj": f"{_PAIR} `_complexConj(z)`", "conjugate": f"{_PAIR} `_complexConj(z)`", "real": f"{_PAIR} `z.x`",
    "imag": f"{_PAIR} `z.y`", "astype": "`_convert(x, dtype)` converts",
    "numpy": "it exists only on the device; return it, and call `.numpy()` of the Field that the operator gives",
}  # fmt: skip


def component(type_: Type, index: Any) -> int:
    """The number of a component, which may be counted from the end."""
    if not is_integer(index):
        raise SemanticError(
            "a vector is indexed by a Python integer; name several components, as in `v.xy`, "
            "and use an array (`_floatArray(n)`) for computed indices"
        )
    if not -type_.lanes <= index < type_.lanes:
        raise SemanticError(f"{article(str(type_))} has no component {index}: its components are 0 … {type_.lanes - 1}")
    return int(index) % type_.lanes


def lane_of(type_: Type, letter: str) -> int:
    """The number of a component."""
    lane = "xyzw".index(letter)
    if type_.lanes == 1:
        raise SemanticError(f"{article(str(type_))} is a scalar: it has no component `{letter}`")
    if lane >= type_.lanes:
        raise SemanticError(
            f"{article(str(type_))} has no component `{letter}`: its components are {', '.join('xyzw'[: type_.lanes])}"
        )
    return lane
