"""Products of large matrices on CPUs: a thread has some rows of a panel of the result in registers, a panel being some columns.

Rows of a large matrix are far apart, so that a panel of the right one has no place in the nearest caches. Where many threads read
each one, panels are first copied to where their rows lie one behind the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import gpuop.dsl as k
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.types import FieldType
from gpuop.lib.linalg.product_dtypes import Products, broadcast_place
from gpuop.ops.layout.gather import Place, Reading, apart, gathered

ROWS, VECTORS, LANES, HIGH = 8, 2, 16, 16  # of a thread, its vectors, and the most threads of a group
WIDE = LANES * VECTORS  # columns of a panel
MANY = 3 * ROWS * HIGH  # rows of a product from which on panels are copied,
LARGE = 1 << 21  # if the right matrix has so many values


def matrix_of(field: Field, batch: Sequence[int]) -> list[Any]:
    """Which one of a field's matrices a work-group of a product multiplies."""
    return broadcast_place(apart(k._groupLayer, batch), field.field_shape[:-2])


def in_panels(a: Field, b: Field, out: FieldType, products: Products) -> Field:
    """The product of matrices of scalars, of at least 32 rows and columns."""
    rows, columns = out.field_shape[-2:]
    copies = rows >= MANY and b.field_shape[-2] * columns >= LARGE and not products.complex
    right = _panels(b, products) if copies else b
    body = _Threads(a, right, out, products, copies).body
    return library_call("matmul", (out,), [a, right], body, ("panels", copies), whole=True)[0]


def _panels(b: Field, products: Products) -> Field:
    """The panels of a matrix, one below the other, in the dtype of sums."""
    *batch, inner, columns = b.field_shape
    panels = -(-columns // WIDE)

    def value(at: Place, read: Reading) -> Any:
        *before, row, column = at
        panel, n = row // inner, row % inner
        return products.read(b, *before, n, _first_column(panel, columns) + column)

    out = FieldType((*batch, panels * inner, WIDE), (), products.summed)
    return gathered("panels", out, [b], value, products.summed)


def _first_column(panel: Any, columns: int) -> Any:
    """Of a strip; the last one begins earlier where it would not be whole."""
    return k._min(panel * WIDE, columns - WIDE)


class _Threads:
    """What threads compute.

    Args:
        b: the right matrix, or its panels where these were `copied`.
    """

    def __init__(self, a: Field, b: Field, out: FieldType, products: Products, copied: bool) -> None:
        self.a, self.b, self.products, self.copied = a, b, products, copied
        *batch, self.rows, self.columns = out.field_shape
        self.batch, self.inner = tuple(batch), a.field_shape[-1]
        self.matrices = out.field_shape.points // (self.rows * self.columns)

    def body(self) -> None:
        """A thread's values stay in registers, its neighbours along columns are the lanes of vectors, and a group's threads read
        the same columns of the right matrix one after the other, which are in the cache then. Last ones begin earlier."""
        threads = -(-self.rows // ROWS)
        groups = -(-threads // HIGH)
        high = -(-threads // groups)
        k._globalThreads(self.matrices, groups * high, -(-self.columns // WIDE) * LANES)
        k._localThreads(1, high, LANES)
        sums = self.products.array(ROWS, VECTORS)
        row = k._min(k._row * ROWS, self.rows - ROWS)
        first = _first_column(k._groupColumn, self.columns)
        lanes = [n * LANES + k._localColumn for n in range(VECTORS)]
        left, right = (matrix_of(field, self.batch) for field in (self.a, self.b))
        with k._for(self.inner) as n:
            values = [self.products.read(self.b, *right, *self._place(n, first, lane)) for lane in lanes]
            for i in range(ROWS):
                value = self.products.read(self.a, *left, row + i, n)
                for j in range(VECTORS):
                    sums[i, j] = self.products.more(sums[i, j], value, values[j])
        batch = apart(k._groupLayer, self.batch)
        for i, j in itertools.product(range(ROWS), range(VECTORS)):
            k._writeTensor(k._out0, self.products.result(sums[i, j]), *batch, row + i, first + lanes[j])

    def _place(self, n: Any, first: Any, lane: Any) -> tuple[Any, Any]:
        """Of a value of the right matrix, in a row and a lane of the group's panel."""
        return (k._groupColumn * self.inner + n, lane) if self.copied else (n, first + lane)
