"""Products of large matrices in the last axes of grids: in tiles on GPUs, in panels on CPUs.

Every variant adds one product after the other in the order of k, so results have equal bits on all devices and for all tile sizes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import gpuop.dsl as k
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.dsl.operators.variants import either
from gpuop.dsl.recorder.precisions import exactly
from gpuop.ir.types import BY_NUMPY, FieldType
from gpuop.lib.linalg.product_dtypes import Products, broadcast_place
from gpuop.ops.layout.gather import Place, Reading, apart, gathered
from gpuop.ops.sort.radix_sort import single


@dataclass(frozen=True)
class TileSize:
    """The tile that a work-group of a GPU computes.

    Attributes:
        high, wide: rows and columns of the result.
        deep: columns of the left matrix and rows of the right one in local memory at a time.
        each: rows and columns that a thread computes, in blocks of four by four.
        warp: rows and columns of a warp's threads: the squarer, the fewer words of local memory are read at a time.
    """

    high: int
    wide: int
    deep: int = 8
    each: tuple[int, int] = (8, 8)
    warp: tuple[int, int] = (4, 8)

    @property
    def threads(self) -> int:
        return self.high // self.each[0] * (self.wide // self.each[1])


SMALL = TileSize(32, 32, 16, (4, 4))
LARGE = {
    32: TileSize(64, 128),
    64: TileSize(64, 64, 8, (4, 8)),
    128: SMALL,
}  # by the bits of a value: registers hold half as many 64-bit values
BUSY = 100  # work-groups that keep a GPU busy
LEAST = 32  # below so many rows or columns, one thread per value


def tiled(a: Field, b: Field, out: FieldType, dtype: str) -> Field:
    """The product of matrices of scalars, tiled; leading axes are broadcast."""
    products = Products(dtype)
    with exactly():
        body = _TiledProduct(a, b, out, products).body
        elsewhere = library_call("matmul", (out,), [a, b], body, "tiled", whole=True)[0]
        return either(single(), in_panels(a, b, out, products), elsewhere)


def interpreted() -> Any:
    """Return whether the target is the interpreter, for which threads are cheap and statements expensive."""
    return k._target.backend == "reference"


def suits(a: Field, b: Field) -> bool:
    """Return whether both are matrices of scalars that are large enough for tiles."""
    shapes = a.field_shape, b.field_shape
    if a.tensor_shape or b.tensor_shape or min(map(len, shapes)) < 2:
        return False
    return shapes[0][-2] >= LEAST and shapes[1][-1] >= LEAST and shapes[0][-1] > 0


class _TiledProduct:
    def __init__(self, a: Field, b: Field, out: FieldType, products: Products) -> None:
        self.a, self.b, self.products = a, b, products
        *batch, self.rows, self.columns = out.field_shape
        self.batch, self.inner = tuple(batch), a.field_shape[-1]
        self.matrices = out.field_shape.points // (self.rows * self.columns)
        self.tile = self._tile()

    def _tile(self) -> TileSize:
        large = LARGE[BY_NUMPY[self.products.summed].bits * (2 if self.products.complex else 1)]
        groups = self.matrices * -(-self.rows // large.high) * -(-self.columns // large.wide)
        return large if groups >= BUSY else SMALL

    def body(self) -> None:
        """Record the kernel with the thread grid of each kind of target; the interpreter has one thread per value."""
        alone, tile = interpreted(), self.tile
        on_gpu = 1 - alone
        k._globalThreads(
            self.matrices,
            on_gpu * -(-self.rows // tile.high) + alone * self.rows,
            on_gpu * (-(-self.columns // tile.wide) * tile.threads) + alone * self.columns,
        )
        k._localThreads(1, 1, on_gpu * tile.threads + alone)
        with k._codegenIf(alone):
            self.value_by_value()
        with k._codegenElse():
            _GroupTile(self, tile).computed()

    def left(self, row: Any, column: Any, border: str = "unchecked") -> Any:
        return self.products.read(self.a, *matrix_of(self.a, self.batch), row, column, border=border)

    def right(self, row: Any, column: Any, border: str = "unchecked") -> Any:
        return self.products.read(self.b, *matrix_of(self.b, self.batch), row, column, border=border)

    def put(self, value: Any, row: Any, column: Any) -> None:
        k._writeTensor(k._out0, self.products.result(value), *apart(k._groupLayer, self.batch), row, column)

    def value_by_value(self) -> None:
        total, row, column = self.products.total(), k._row, k._column
        with k._for(self.inner) as n:
            total @= self.products.more(total, self.left(row, n), self.right(n, column))
        self.put(total, row, column)


class _GroupTile:
    """A work-group's tile: blocks of both matrices go through double-buffered local memory, the next while one is multiplied."""

    def __init__(self, product: _TiledProduct, tile: TileSize) -> None:
        self.product, self.tile = product, tile
        self.high, self.wide, self.deep, threads = tile.high, tile.wide, tile.deep, tile.threads
        array = product.products.array
        self.left = k._local(array(2, self.deep, self.high + 4))
        self.right = k._local(array(2, self.deep, self.wide))
        self.next_left, self.next_right = (
            array(self.high * self.deep // threads),
            array(self.wide * self.deep // threads),
        )
        self.sums = array(*tile.each)
        tall, broad = tile.warp[0] * tile.each[0], tile.warp[1] * tile.each[1]
        warp = k._unravel(k._localColumn // 32, (self.high // tall, self.wide // broad))
        lane = k._unravel(k._localColumn % 32, tile.warp)
        self.top, self.start = warp[0] * tall + lane[0] * 4, warp[1] * broad + lane[1] * 4
        self.first_row, self.first_column = k._groupRow * self.high, k._groupColumn * self.wide
        whole = product.rows % self.high == 0 and product.columns % self.wide == 0
        self.border = "unchecked" if whole else "clamp"

    def computed(self) -> None:
        deep, inner = self.deep, self.product.inner
        blocks, rest = divmod(inner, deep)
        self.fetch(0, "clamp" if inner < deep else self.border)
        self.keep(0)
        if blocks:
            with k._for(blocks) as block:
                buffer = block % 2
                with k._if(block + 1 < blocks):
                    self.fetch((block + 1) * deep, self.border)
                if rest:
                    with k._if(block + 1 == blocks):
                        self.fetch(blocks * deep, "clamp")
                self.multiply(buffer, deep)
                if rest:
                    self.keep(1 - buffer)
                else:
                    with k._if(block + 1 < blocks):
                        self.keep(1 - buffer)
        if rest:
            self.multiply(blocks % 2, rest)
        for i, j in itertools.product(*map(range, self.tile.each)):
            self.product.put(self.sums[i, j], self.first_row + self.row(i), self.first_column + self.column(j))

    def parts(self, count: int, width: int) -> list[tuple[Any, Any]]:
        """The indices of the values of a block, `width` columns wide, that a thread loads; they are equally spaced."""
        thread, threads = k._localColumn, self.tile.threads
        if width > threads:
            each = width // threads
            return [(i // each, thread + i % each * threads) for i in range(count * each)]
        return [(thread // width + i * (threads // width), thread % width) for i in range(count * width // threads)]

    def fetch(self, first: Any, border: str) -> None:
        for i, (row, column) in enumerate(self.parts(self.high, self.deep)):
            self.next_left[i] = self.product.left(self.first_row + row, first + column, border)
        for i, (row, column) in enumerate(self.parts(self.deep, self.wide)):
            self.next_right[i] = self.product.right(first + row, self.first_column + column, border)

    def keep(self, buffer: Any) -> None:
        for i, (row, column) in enumerate(self.parts(self.high, self.deep)):
            self.left[buffer, column, row] = self.next_left[i]
        for i, (row, column) in enumerate(self.parts(self.deep, self.wide)):
            self.right[buffer, row, column] = self.next_right[i]
        k._syncThreadsLocal()

    def multiply(self, buffer: Any, count: int) -> None:
        with k._for(count, unroll=True) as n:
            x = [self.left[buffer, n, self.row(i)] for i in range(self.tile.each[0])]
            y = [self.right[buffer, n, self.column(j)] for j in range(self.tile.each[1])]
            for i, j in itertools.product(*map(range, self.tile.each)):
                self.sums[i, j] = self.product.products.more(self.sums[i, j], x[i], y[j])

    def row(self, i: int) -> Any:
        return self.top + (i // 4 * (4 * self.tile.warp[0]) + i % 4)

    def column(self, j: int) -> Any:
        return self.start + (j // 4 * (4 * self.tile.warp[1]) + j % 4)


# --- ------------------------------------------------------------------------------------------------------------------
# Products of large matrices on CPUs: a thread keeps some rows of a panel of the result, which is some columns, in registers.
# The rows of a large matrix are far apart in memory, so a panel of the right matrix does not fit the inner caches. If many threads
# read each panel, panels are first packed: copied so that their rows are contiguous.


ROWS, VECTORS, LANES, HIGH = 8, 2, 16, 16  # rows and vectors of a thread, lanes, most threads of a group
WIDE = LANES * VECTORS  # columns of a panel
MANY = 3 * ROWS * HIGH  # least rows of a product whose panels are packed,
LARGE_RIGHT = 1 << 21  # and least values of its right matrix


def matrix_of(field: Field, batch: Sequence[int]) -> list[Any]:
    """The index of the matrix of a field that this work-group multiplies."""
    return broadcast_place(apart(k._groupLayer, batch), field.field_shape[:-2])


def in_panels(a: Field, b: Field, out: FieldType, products: Products) -> Field:
    """The product of matrices of scalars, of at least 32 rows and columns."""
    rows, columns = out.field_shape[-2:]
    copies = rows >= MANY and b.field_shape[-2] * columns >= LARGE_RIGHT and not products.complex
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
