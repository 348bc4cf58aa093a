"""Linear sums: integer multiples of variables and positions of a kernel, and a constant."""

from __future__ import annotations

import math

from gpuop.base.records import dataclass
from gpuop.ir.analysis.intervals import Range
from gpuop.ir.nodes import Var

MOST_SCALED = 1 << 12


@dataclass(frozen=True, eq=False)
class Opaque:
    """A number with a known range and nothing else."""

    range: Range


Key = Var | tuple[str, str] | Opaque  # a variable, a thread's position (kind and axis), or an unnamed number


@dataclass(frozen=True)
class Sum:
    """A linear sum."""

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
    """Factors (s, t) for which s · whole - t · limit lacks a term of `whole`; (1, 0) where there are none."""
    for key, n in limit.terms.items():
        m = whole.terms.get(key, 0)
        if m and (m > 0) == (n > 0):
            scale = abs(n) // math.gcd(m, n)
            if scale <= MOST_SCALED:
                return scale, m * scale // n
    return 1, 0
