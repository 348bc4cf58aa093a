"""Strided vector loads: elements at constant distances are shuffled out of loads of neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

LONGEST = 16  # lanes of a vector
DIGITS = "0123456789abcdef"
Neighbours = Callable[[int, int], str]  # so many elements, so far ahead, as text


def picked(kind: str, ahead: Sequence[int], neighbours: Neighbours) -> str:
    """The elements `ahead` of a place, as a vector of `kind` with their number; nothing before the first of them is read, nor
    behind the last."""
    return _picked(kind, ahead, neighbours, min(ahead), max(ahead))


def _picked(kind: str, ahead: Sequence[int], neighbours: Neighbours, low: int, high: int) -> str:
    n, first, span = len(ahead), min(ahead), max(ahead) - min(ahead) + 1
    if span == 1:
        return f"({kind}{n})({neighbours(1, first)})" if n > 1 else neighbours(1, first)
    if span > LONGEST:
        parts = (_picked(kind, part, neighbours, low, high) for part in (ahead[: n // 2], ahead[n // 2 :]))
        return f"({kind}{n})({', '.join(parts)})"
    width = 1 << (span - 1).bit_length()
    if width <= high - low + 1:
        first = min(first, high - width + 1)
        return f"{neighbours(width, first)}.s{_digits(k - first for k in ahead)}"
    width //= 2
    second = first + span - width  # the other one of two overlapping vectors
    both = f"({kind}{2 * width})({neighbours(width, first)}, {neighbours(width, second)})"
    return f"({both}).s{_digits(k - first if k < first + width else k - second + width for k in ahead)}"


def _digits(lanes: Iterable[int]) -> str:
    return "".join(DIGITS[k] for k in lanes)
