"""Accumulation of products: the accumulator's dtype and the rounding of each product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.ir.dtype_names import COMPLEX_DTYPES, part_dtype, wide_float
from gpuop.ir.types import BY_NUMPY

SUMS = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}
NAMES = {"int32": "int", "uint32": "uint", "int64": "long", "uint64": "ulong", "float32": "float", "float64": "double"}


class Products:
    """Sums of products of values of a common dtype.

    Floats are accumulated with `fma`, float16 and bfloat16 in float32; integers wrap. Complex numbers are 2-vectors: a product
    takes two steps for each part.

    Args:
        dtype: the result's dtype.
    """

    def __init__(self, dtype: str) -> None:
        self.dtype, self.complex = dtype, dtype in COMPLEX_DTYPES
        self.summed = part_dtype(dtype) if self.complex else SUMS.get(dtype, wide_float(dtype))
        self._vector = NAMES[self.summed] + "2" * self.complex
        self.floats = BY_NUMPY[self.summed].kind == "f"

    def array(self, *shape: int) -> Any:
        """A thread-private array of zeros, for sums or for values that are read."""
        return getattr(k, f"_{self._vector}Array")(*shape)

    def total(self) -> Any:
        """An accumulator, 0 at first."""
        return getattr(k, f"_{self._vector}Var")()

    def read(self, field: Field, *place: Any, border: str = "unchecked") -> Any:
        """The value of a scalar field at a point, in the accumulator's dtype."""
        return self.converted(field, k._readTensor(field, *place, border=border))

    def converted(self, field: Field, value: Any) -> Any:
        number = k._convert(value, self.summed)
        return k._vector(number, 0.0) if self.complex and field.dtype not in COMPLEX_DTYPES else number

    def more(self, total: Any, x: Any, y: Any) -> Any:
        """The sum plus the product of two values."""
        if self.complex:
            real = k._fma(-x.y, y.y, k._fma(x.x, y.x, total.x))
            return k._vector(real, k._fma(x.y, y.x, k._fma(x.x, y.y, total.y)))
        return k._fma(x, y, total) if self.floats else total + x * y

    def sum_of(self, total: Any, values: Sequence[Any]) -> Any:
        """The sum plus the product of one or more values."""
        if len(values) == 1:
            return total + values[0]
        product = values[0]
        for other in values[1:-1]:
            product = k._complexMul(product, other) if self.complex else product * other
        return self.more(total, product, values[-1])

    def result(self, total: Any) -> Any:
        """The sum in the result's dtype: integers wrap."""
        if self.dtype == "bool":
            return total != 0
        kind = BY_NUMPY[part_dtype(self.dtype)]
        if self.complex or kind.kind == "f" or kind.bits >= 32:
            return total
        low = total & ((1 << kind.bits) - 1)
        return low if kind.kind == "u" else (low ^ (1 << (kind.bits - 1))) - (1 << (kind.bits - 1))


def broadcast_place(place: Sequence[Any], shape: Sequence[int]) -> list[Any]:
    """The broadcast index into a field of this shape: 0 along axes of extent 1, without the leading axes that it lacks."""
    rest = place[len(place) - len(shape) :] if shape else ()
    return [0 if n == 1 else at for at, n in zip(rest, shape, strict=True)]
