"""Products of two values that are added up: in which dtype, and how each one is rounded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.ir.types import BY_NUMPY

SUMS = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32", "float16": "float32"}
NAMES = {"int32": "int", "uint32": "uint", "int64": "long", "uint64": "ulong", "float32": "float", "float64": "double"}


class Products:
    """Sums of products of values of a common dtype.

    Of floats each product is added without rounding it (`fma`), those of float16 in float32; integers wrap. Complex numbers are
    vectors of two, of which each product is two steps for either part.

    Args:
        dtype: that of the result.
    """

    def __init__(self, dtype: str) -> None:
        self.dtype, self.complex = dtype, dtype == "complex64"
        self.summed = "float32" if self.complex else SUMS.get(dtype, dtype)
        self._vector = NAMES[self.summed] + "2" * self.complex
        self.floats = BY_NUMPY[self.summed].kind == "f"

    def array(self, *shape: int) -> Any:
        """Sums of a thread's own, or what is read, of zeros."""
        return getattr(k, f"_{self._vector}Array")(*shape)

    def total(self) -> Any:
        """A sum that nothing was added to yet."""
        return getattr(k, f"_{self._vector}Var")()

    def read(self, field: Field, *place: Any, border: str = "unchecked") -> Any:
        """What is at a point of a field of scalars, in the dtype of sums."""
        return self.converted(field, k._readTensor(field, *place, border=border))

    def converted(self, field: Field, value: Any) -> Any:
        if not self.complex:
            return k._convert(value, self.summed)
        return value if field.dtype == "complex64" else k._float2(k._convert_float(value), 0)

    def more(self, total: Any, x: Any, y: Any) -> Any:
        """The sum and the product of two values."""
        if self.complex:
            real = k._fma(-x.y, y.y, k._fma(x.x, y.x, total.x))
            return k._float2(real, k._fma(x.y, y.x, k._fma(x.x, y.y, total.y)))
        return k._fma(x, y, total) if self.floats else total + x * y

    def sum_of(self, total: Any, values: Sequence[Any]) -> Any:
        """The sum and the product of some values."""
        if len(values) == 1:
            return total + values[0]
        product = values[0]
        for other in values[1:-1]:
            product = k._complexMul(product, other) if self.complex else product * other
        return self.more(total, product, values[-1])

    def result(self, total: Any) -> Any:
        """The sum as the result's dtype holds it: integers wrap."""
        if self.dtype == "bool":
            return total != 0
        kind = BY_NUMPY[self.dtype if not self.complex else "float32"]
        if self.complex or kind.kind == "f" or kind.bits >= 32:
            return total
        low = total & ((1 << kind.bits) - 1)
        return low if kind.kind == "u" else (low ^ (1 << (kind.bits - 1))) - (1 << (kind.bits - 1))


def broadcast_place(place: Sequence[Any], shape: Sequence[int]) -> list[Any]:
    """Where a field of this shape has what others have at a place: at 0 along axes of extent 1, and without those that it lacks."""
    rest = place[len(place) - len(shape) :] if shape else ()
    return [0 if n == 1 else at for at, n in zip(rest, shape, strict=True)]
