"""Dynamic sizes of a bundle: the numbers that depend on them, and the sizes at which the plan is checked to be the same.

A function is recorded for stand-ins, primes that are factors of no other number, so that the factors of an extent identify its
sizes. It is recorded again at the ends of the range for which its kernels have one text, as `passes/dynamic_extents.py` does
with kernels, and must give the same plan: a number that Python computes from a size, or a plan of other kernels, does not.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gpuop.runtime.files.validated_json import Item

FIRST, FIRST_OF_MANY = 1009, 307  # stand-ins
LARGEST = 2**24  # functions may make arrays of such extents
LATER, SMALLER = 129, (20000, 4096)  # narrower ranges, for programs whose plan differs at the ends of the widest one
Sizes = tuple[int, ...]


def stand_ins(count: int) -> Sizes:
    """Return `count` primes."""
    primes: list[int] = []
    n = FIRST if count < 3 else FIRST_OF_MANY
    while len(primes) < count:
        if all(n % d for d in range(2, math.isqrt(n) + 1)):
            primes.append(n)
        n += 2
    return tuple(primes)


def open_number(n: int, sizes: Sizes, each: int = 1, times: int = 1, multiple: int = 1) -> Any:
    """A number divided by `each`, multiplied, and rounded up to a multiple; a document entry if stand-ins are factors of it."""
    factor, positions = n, []
    for k, size in enumerate(sizes):
        while factor and factor % size == 0:
            factor //= size
            positions.append(k)
    if not positions:
        return -(-(-(-n // each) * times) // multiple) * multiple
    return {"factor": factor, "open": positions, "each": each, "times": times, "multiple": multiple}


def position_of(extent: Item) -> int:
    """The position of an extent among the sizes; -1 for a number.

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
    """A document whose open numbers are replaced by their values."""
    if isinstance(value, Mapping):
        return Item(value, "", sizes).whole() if "multiple" in value else {k: at(v, sizes) for k, v in value.items()}
    return [at(v, sizes) for v in value] if isinstance(value, (list, tuple)) else value


def ranges(kernels: Iterable[tuple[Any, int, int]]) -> Iterator[tuple[int, int]]:
    """Yield ranges of sizes, least and most, the widest range first.

    Args:
        kernels: open numbers of kernels, each with its least and its greatest value.
    """
    least, most = 2, LARGEST
    for number, low, high in kernels:
        power = 1 / len(number["open"])
        least = max(least, math.ceil((low / number["factor"]) ** power))
        most = min(most, math.floor((high / number["factor"]) ** power))
    yield from ((low, min(high, most)) for low in (least, LATER) for high in (most, *SMALLER) if low < min(high, most))


def ends(least: int, most: int, count: int, excluded: Collection[int]) -> list[Sizes]:
    """Sizes at the ends of a range: all at one end, or all but one.

    Args:
        excluded: extents that sizes must differ from, because equal extents change plans.
    """
    lows, highs = _free(range(least, most), count, excluded), _free(range(most, least, -1), count, excluded)
    pairs = ((lows, highs), (highs, lows)) if count > 1 else ()
    return [lows, highs, *((*a[:k], b[k], *a[k + 1 :]) for k in range(count) for a, b in pairs)]


def _free(numbers: Sequence[int], count: int, excluded: Collection[int]) -> Sizes:
    free = (n for n in numbers if n not in excluded)
    return tuple(n for n, _ in zip(free, range(count), strict=False))
