"""Kernel builtins that correspond to Python and NumPy functions, for messages."""

from __future__ import annotations

import re
import sys

from gpuop.base.errors import here

OTHERS = {
    "maximum": "_max(a, b)", "fmax": "_max(a, b)", "minimum": "_min(a, b)", "fmin": "_min(a, b)", "arctan2": "_atan2(a, b)",
    "gamma": "_tgamma(x)", "matmul": "_dot(a, b)", "deg2rad": "_radians(x)",
    "rad2deg": "_degrees(x)", "float_power": "_pow(a, b)", "bitwise_count": "_popcount(x)",
}  # fmt: skip
TWO = ("atan2", "copysign", "fmod", "hypot", "ldexp", "nextafter", "pow", "remainder")
ANY = "_sqrt(x)"


def kernel_call(name: str) -> str:
    """How a kernel calls a function that NumPy or Python's `math` has; empty where it has no word for it."""
    if name in OTHERS:
        return OTHERS[name]
    word = "_" + re.sub("^arc", "a", name)
    if not hasattr(sys.modules.get("gpuop.dsl"), word):
        return ""
    return f"{word}({'a, b' if word[1:] in TWO else 'x'})"


def math_call() -> str:
    """What to write for the function of `math` that the user's line calls, with its name; of any, where it has none."""
    at = here()
    called = re.findall(r"\bmath\.(\w+)\(", at.text if at is not None else "")
    found = next(
        (f"`{word}` for `math.{name}{word[word.index('(') :]}`" for name in called if (word := kernel_call(name))), ""
    )
    return found or "`_sin(x)` for `math.sin(x)`"
