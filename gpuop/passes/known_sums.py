"""Sums of multiples of numbers that a kernel computes, and of a constant."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpuop.ir.analysis.intervals import Range
from gpuop.ir.nodes import Var

MOST_SCALED = 1 << 12


@dataclass(frozen=True, eq=False)
class Opaque:
    """A number of which nothing but its range is known."""

    range: Range


Key = Var | tuple[str, str] | Opaque  # a variable, a thread's position (kind and axis), or what has no name


@dataclass(frozen=True)
class Sum:
    """Multiples of numbers, and a constant."""

    terms: dict[Key, int]
    constant: int = 0

    def plus(self, other: Sum, times: int = 1) -> Sum:
        terms = dict(self.terms)
        for key, n in other.terms.items():
            terms[key] = terms.get(key, 0) + times * n
        return Sum({key: n for key, n in terms.items() if n}, self.constant + times * other.constant)

    def times(self, n: int) -> Sum:
        return Sum({key: n * m for key, m in self.terms.items()} if n else {}, n * self.constant)


def common(whole: Sum, limit: Sum) -> tuple[int, int]:
    """How many times a limit goes into how many times the sum, where it takes a term away; 0 where it does not."""
    for key, n in limit.terms.items():
        m = whole.terms.get(key, 0)
        if m and (m > 0) == (n > 0):
            scale = abs(n) // math.gcd(m, n)
            if scale <= MOST_SCALED:
                return scale, m * scale // n
    return 1, 0
