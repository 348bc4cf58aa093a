"""Detection of wraparound in 8- and 16-bit integer arithmetic of the user's operators.

Wider integers are left alone, as hashes use them. Conversions and writes saturate, so they lose nothing silently.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.ir.build import conversion
from gpuop.ir.nodes import Apply, Const, Expr
from gpuop.ir.types import INT, Type

WIDEST = 16  # bits of the widest checked integers
EXACT = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative, "shl": np.left_shift}
TEXT = {"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "neg": "-({})", "shl": "{} << {}"}


def may_wrap(expr: Expr) -> bool:
    if not isinstance(expr, Apply) or expr.op not in EXACT:
        return False
    return expr.type.integer and expr.type.kind in "iu" and expr.type.dtype.bits <= WIDEST


def wraps(expr: Apply, args: Sequence[NDArray[Any]]) -> NDArray[np.bool_]:
    """Return the threads in which the result of one lane is out of the type's range."""
    info = np.iinfo(expr.type.dtype.numpy)
    exact = EXACT[expr.op](*(np.asarray(each).astype(np.int64) for each in args))
    return np.asarray((exact < info.min) | (exact > info.max))


def is_masked(expr: Apply) -> bool:
    """Return whether the operation takes low bits by a number, which are right whatever wraps around."""
    return expr.op == "and" and any(isinstance(arg, Const) for arg in expr.args)


def wraparound_message(expr: Apply, values: Sequence[int]) -> str:
    """Return the message, with the values and the remedy."""
    kind, info = Type(expr.type.dtype), np.iinfo(expr.type.dtype.numpy)
    exact = int(EXACT[expr.op](*(np.int64(value) for value in values)))
    every = info.max if kind.kind == "u" else -1
    return (
        f"{TEXT[expr.op].format(*values)} is {exact}, which {kind} ({info.min} to {info.max}) does not hold: it wraps around to "
        f"{int(np.int64(exact).astype(kind.dtype.numpy))}; convert before you compute, as "
        f"`{conversion(Type(INT), expr.type.lanes)}` does, or take the low bits by name, as `& {every}` does, where they are meant"
    )
