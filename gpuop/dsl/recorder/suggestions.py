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
    """Kernel call that corresponds to a NumPy or `math` function; empty if there is none."""
    if name in OTHERS:
        return OTHERS[name]
    builtin = "_" + re.sub("^arc", "a", name)
    if not hasattr(sys.modules.get("gpuop.dsl"), builtin):
        return ""
    return f"{builtin}({'a, b' if builtin[1:] in TWO else 'x'})"


def math_call() -> str:
    """Replacement of the `math` function in the user's line, with its name; an example if there is none."""
    at = here()
    called = re.findall(r"\bmath\.(\w+)\(", at.text if at is not None else "")
    suggestion = next(
        (f"`{call}` for `math.{name}{call[call.index('(') :]}`" for name in called if (call := kernel_call(name))), ""
    )
    return suggestion or "`_sin(x)` for `math.sin(x)`"
