"""Table of monoids: associative operations with their identities.

Reductions, scans of work-groups, atomic updates, private copies of outputs and parts of windows all combine values by these rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuop.base.records import dataclass
from gpuop.ir.dead_code import without_dead_code
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Atomic, FieldParam
from gpuop.ir.ops import OPS
from gpuop.ir.types import DType
from gpuop.ir.visit import updated, walk


@dataclass(frozen=True)
class Monoid:
    """An associative and commutative operation of `ir/ops.py`; of floats it is so but for rounding.

    Attributes:
        name: the operation.
        between: the identity element, from the least and the greatest value of a type.
        atomic: the kinds of numbers that memory is updated of atomically; empty where there is no such update.
        idempotent: whether a value that is combined twice counts once.
    """

    name: str
    between: Callable[[float, float], float]
    atomic: str = "iu"
    idempotent: bool = True

    @property
    def numpy(self) -> Any:
        """The NumPy ufunc of the operation."""
        return OPS[self.name].numpy

    def identity(self, dtype: DType) -> float:
        """The identity element of a type; for sums of floats it is 0, the visible start value, which changes -0."""
        return self.between(*dtype.ends)

    def neutral(self, dtype: DType) -> float:
        """The identity element, which for floats also preserves -0."""
        if dtype.kind != "f":
            return self.identity(dtype)
        return -0.0 if self.name == "add" else float(self.identity(dtype))

    def joined(self, a: Any, b: Any) -> Any:
        """Two values as atomic updates join them, elementwise: of floats the extreme that is a number, of zeros -0 the least."""
        if self.name not in ("min", "max") or np.asarray(a).dtype.kind != "f":
            return self.numpy(a, b)
        least = self.name == "min"
        first = (a < b if least else a > b) | (b != b)
        return np.where(first | (a == b) & (np.signbit(a) == least), a, b)


MONOIDS = {
    row.name: row
    for row in (
        Monoid("add", lambda low, high: 0, atomic="iuf", idempotent=False),
        Monoid("mul", lambda low, high: 1, atomic="", idempotent=False),
        Monoid("min", lambda low, high: high, atomic="iuf"),
        Monoid("max", lambda low, high: low, atomic="iuf"),
        Monoid("fmin", lambda low, high: high, atomic=""),
        Monoid("fmax", lambda low, high: low, atomic=""),
        Monoid("and", lambda low, high: -1 if low else high),
        Monoid("or", lambda low, high: 0),
        Monoid("xor", lambda low, high: 0, idempotent=False),
    )
}


def joined_by(op: str) -> Monoid | None:
    """The monoid that combines the results of an atomic operation of several threads; None if their order matters."""
    monoid = MONOIDS.get("add" if op == "sub" else op)
    return monoid if monoid and monoid.atomic else None


def output_atomics(kernel: Kernel) -> list[tuple[Atomic, FieldParam]]:
    """The atomic operations on outputs, each with its output; dead code is left out."""
    if not any(isinstance(memory, FieldParam) for memory in updated(kernel.body)):
        return []
    atomics = (stmt for stmt in walk(without_dead_code(kernel).body) if isinstance(stmt, Atomic))
    return [(stmt, stmt.memory) for stmt in atomics if isinstance(stmt.memory, FieldParam)]
