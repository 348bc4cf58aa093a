"""Interval arithmetic: least and greatest results of integer operations, from those of their operands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuop.ir.types import DTYPES, DType

Range = tuple[int, int]


def _limits(dtype: DType) -> Range:
    if dtype.kind not in "iu":
        return 0, 1
    info = np.iinfo(dtype.numpy)
    return int(info.min), int(info.max)


LIMITS = {dtype: _limits(dtype) for dtype in DTYPES.values()}


def interval(op: str, args: Sequence[Range], dtype: DType) -> Range:  # noqa: C901 - a case for each operation
    """Bounds of an operation's value as if no type limited it; the type's own where no better ones are known."""
    (low, high), rest = args[0], args[1:]
    match op:
        case "neg":
            return -high, -low
        case "abs":
            return max(low, -high, 0), max(-low, high)
        case "add":
            return low + rest[0][0], high + rest[0][1]
        case "sub":
            return low - rest[0][1], high - rest[0][0]
        case "mul":
            corners = [x * y for x in (low, high) for y in rest[0]]
            return min(corners), max(corners)
        case "max" | "min":
            pick = max if op == "max" else min
            return pick(low, rest[0][0]), pick(high, rest[0][1])
        case "choose":
            return min(r[0] for r in rest), max(r[1] for r in rest)
        case "div" if rest[0][0] > 0:  # the lesser divisor takes a number further from 0, the greater one closer
            least, most = rest[0]
            return _truncated(low, least if low < 0 else most), _truncated(high, most if high < 0 else least)
        case "mod" if rest[0][0] > 0:
            most = rest[0][1] - 1
            inside = -rest[0][0] < low and high < rest[0][0]  # unchanged
            return (low, high) if inside else (max(min(low, 0), -most), min(max(high, 0), most))
        case "or" | "xor" if min(low, rest[0][0]) >= 0:
            return 0, (1 << max(high, rest[0][1]).bit_length()) - 1
        case "shr" if 0 <= rest[0][0] == rest[0][1] < dtype.bits:
            return low >> rest[0][0], high >> rest[0][0]
        case "and" if max(low, rest[0][0]) >= 0:  # no more than one that is not negative
            return 0, min(most for least, most in (args[0], rest[0]) if least >= 0)
        case "clz" | "popcount":
            return 0, dtype.bits
        case "shl" if (
            low >= 0 and 0 <= rest[0][0] <= rest[0][1] < dtype.bits
        ):  # positions on an empty grid have no range
            return low << rest[0][0], high << rest[0][1]
    return LIMITS[dtype] if op != "shl" else (LIMITS[dtype][0] - 1, LIMITS[dtype][1])


def _truncated(x: int, y: int) -> int:
    """C's quotient by a number above 0."""
    return x // y if x >= 0 else -(-x // y)
