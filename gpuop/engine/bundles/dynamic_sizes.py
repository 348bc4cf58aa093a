"""Sizes that a bundle does not know: numbers that they are factors of, and the sizes at which it is tried that all have one plan.

A function is recorded for stand-ins, primes that no other number has as a factor, so that an extent tells which of them made it.
Recorded at the ends of the range that its kernels have one text for, as `passes/dynamic_extents.py` does with kernels, it must come
out the same: a number that was computed in Python from a size, or a plan of other kernels, does not.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gpuop.runtime.files.validated_json import Item

FIRST, FIRST_OF_MANY = 1009, 307  # stand-ins
LARGEST = 2**24  # functions may make arrays of such extents
LATER, SMALLER = 129, (20000, 4096)  # where ranges begin and end of what is planned otherwise beyond
Sizes = tuple[int, ...]


def stand_ins(count: int) -> Sizes:
    """So many primes."""
    found: list[int] = []
    n = FIRST if count < 3 else FIRST_OF_MANY
    while len(found) < count:
        if all(n % d for d in range(2, math.isqrt(n) + 1)):
            found.append(n)
        n += 2
    return tuple(found)


def open_number(n: int, sizes: Sizes, each: int = 1, times: int = 1, multiple: int = 1) -> Any:
    """A number divided by `each`, multiplied, and rounded up to a multiple, as a document has it if stand-ins are factors of it."""
    factor, positions = n, []
    for k, size in enumerate(sizes):
        while factor and factor % size == 0:
            factor //= size
            positions.append(k)
    if not positions:
        return -(-(-(-n // each) * times) // multiple) * multiple
    return {"factor": factor, "open": positions, "each": each, "times": times, "multiple": multiple}


def position_of(extent: Item) -> int:
    """Which size an extent is; -1 where it is a number.

    Raises:
        Damaged: it follows from a size, or from several.
    """
    if not isinstance(extent.value, dict):
        return -1
    (position,) = extent.entry("open").wholes(count=1)
    if extent.value != {**open_number(2, (2,)), "open": [position]}:
        raise extent.is_not("a number, or an extent that arguments have")
    return position


def at(value: Any, sizes: Sizes) -> Any:
    """A document with numbers where open ones were."""
    if isinstance(value, Mapping):
        return Item(value, "", sizes).whole() if "multiple" in value else {k: at(v, sizes) for k, v in value.items()}
    return [at(v, sizes) for v in value] if isinstance(value, (list, tuple)) else value


def ranges(kernels: Iterable[tuple[Any, int, int]]) -> Iterator[tuple[int, int]]:
    """The least and the most that sizes may be, the widest range first.

    Args:
        kernels: an open number that a kernel gets, and the least and the most that it may be.
    """
    least, most = 2, LARGEST
    for number, low, high in kernels:
        power = 1 / len(number["open"])
        least = max(least, math.ceil((low / number["factor"]) ** power))
        most = min(most, math.floor((high / number["factor"]) ** power))
    yield from ((low, min(high, most)) for low in (least, LATER) for high in (most, *SMALLER) if low < min(high, most))


def ends(least: int, most: int, count: int, taken: Collection[int]) -> list[Sizes]:
    """The sizes at the ends of a range: all at one end, or one at the other.

    Args:
        taken: extents that sizes are not to be, as equal ones mean something.
    """
    lows, highs = _free(range(least, most), count, taken), _free(range(most, least, -1), count, taken)
    pairs = ((lows, highs), (highs, lows)) if count > 1 else ()
    return [lows, highs, *((*a[:k], b[k], *a[k + 1 :]) for k in range(count) for a, b in pairs)]


def _free(numbers: Sequence[int], count: int, taken: Collection[int]) -> Sizes:
    free = (n for n in numbers if n not in taken)
    return tuple(n for n, _ in zip(free, range(count), strict=False))
