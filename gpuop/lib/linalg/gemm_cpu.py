"""Products of large matrices on CPUs: a thread keeps some rows of a panel of the result, which is some columns, in registers.

The rows of a large matrix are far apart in memory, so a panel of the right matrix does not fit the inner caches. If many threads
read each panel, panels are first packed: copied so that their rows are contiguous.
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

ROWS, VECTORS, LANES, HIGH = 8, 2, 16, 16  # rows and vectors of a thread, lanes, most threads of a group
WIDE = LANES * VECTORS  # columns of a panel
MANY = 3 * ROWS * HIGH  # least rows of a product whose panels are packed,
LARGE = 1 << 21  # and least values of its right matrix


def matrix_of(field: Field, batch: Sequence[int]) -> list[Any]:
    """The index of the matrix of a field that this work-group multiplies."""
    return broadcast_place(apart(k._groupLayer, batch), field.field_shape[:-2])


def in_panels(a: Field, b: Field, out: FieldType, products: Products) -> Field:
    """The product of matrices of scalars, of at least 32 rows and columns."""
    rows, columns = out.field_shape[-2:]
    copies = rows >= MANY and b.field_shape[-2] * columns >= LARGE and not products.complex
    right = _panels(b, products) if copies else b
    body = _Threads(a, right, out, products, copies).body
    return library_call("matmul", (out,), [a, right], body, ("panels", copies), whole=True)[0]


def _panels(b: Field, products: Products) -> Field:
    """The packed panels of a matrix, one below the other, in the accumulator's dtype."""
    *batch, inner, columns = b.field_shape
    panels = -(-columns // WIDE)

    def value(at: Place, read: Reading) -> Any:
        *before, row, column = at
        panel, n = row // inner, row % inner
        return products.read(b, *before, n, _first_column(panel, columns) + column)

    out = FieldType((*batch, panels * inner, WIDE), (), products.summed)
    return gathered("panels", out, [b], value, products.summed)


def _first_column(panel: Any, columns: int) -> Any:
    """The first column of a panel; the last panel begins earlier if it would be incomplete."""
    return k._min(panel * WIDE, columns - WIDE)


class _Threads:
    """The kernel of a product in panels.

    Args:
        b: the right matrix, or its packed panels if `copied`.
    """

    def __init__(self, a: Field, b: Field, out: FieldType, products: Products, copied: bool) -> None:
        self.a, self.b, self.products, self.copied = a, b, products, copied
        *batch, self.rows, self.columns = out.field_shape
        self.batch, self.inner = tuple(batch), a.field_shape[-1]
        self.matrices = out.field_shape.points // (self.rows * self.columns)

    def body(self) -> None:
        """Record the kernel: sums stay in registers, threads along columns are lanes of vectors, and the threads of a group read
        the same columns of the right matrix, which are in the cache then. The last rows and columns begin earlier."""
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
        """The index of a value of the right matrix, from its row and its lane in the group's panel."""
        return (k._groupColumn * self.inner + n, lane) if self.copied else (n, first + lane)
