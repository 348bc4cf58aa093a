"""The kernel that transposes small elements, read and written in whole words although rows are not aligned.

A row of a tile holds the words of a row of the input, so it begins up to a word earlier, and has up to a word fewer elements
that count.
"""

from __future__ import annotations

from gpuop.ir.build import Builder, collector
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Declare, Expr, If, Load, Read, Stmt, Store, Wide, Write
from gpuop.ir.visit import expressions
from gpuop.passes.coarsening_factor import Place, is_own
from gpuop.passes.schedules.common.transpose_kernel import TransposedPoint, TransposeKernel
from gpuop.passes.schedules.common.transposed_reads import involved, is_mirrored, transposed


class TransposeWords(TransposeKernel):
    """Builds the kernel; the lanes of a thread are a word."""

    def start(self, axis: str, threads: str, out: list[Stmt]) -> Expr:
        """The first point of the tile along an axis of the grid; the last tiles end beyond the grid."""
        b = collector(out, hint="left" if axis == "column" else "top", temporary=False)
        return b.apply("mul", self.number(threads), self.tiling.step(axis))

    @property
    def skewed(self) -> bool:
        return False

    def misalignment(self, row: Expr, first: Expr, extent: int, to: int, b: Builder) -> Expr:
        """The distance of an element of a row from the aligned place before it, for rows of `extent` elements."""
        return b.apply("and", b.apply("add", b.apply("mul", row, extent), first), to - 1)

    def fill(self, place: Place, row: Expr, piece: Expr, out: list[Stmt]) -> None:
        (field, element), axis, count, domain = place, self.tiling.axis, self.tiling.lanes, self.source.domain
        tile, staged, (rows, columns) = (
            self.tiles[place],
            self.staged[place],
            (domain.extent("column"), domain.extent(axis)),
        )
        b = collector(out, hint="across")
        across = b.apply("sub", b.apply("add", self.first["column"], row), self.tiling.align - 1)
        across = b.apply("min", b.apply("max", across, 0), rows - 1)
        first = b.apply("sub", self.first[axis], self.misalignment(across, self.first[axis], columns, count, b))
        column = b.apply("add", first, b.apply("mul", piece, count))
        inside = b.apply("or", b.apply("lt", across, rows - 1), b.apply("le", column, columns - count))

        def point(column: Expr) -> tuple[Expr, ...]:
            where = {"column": across, axis: column}
            return tuple(where[name] for name, _ in self.axes[place])

        def lane(k: Expr, out: list[Stmt]) -> None:
            b = collector(out)
            there = b.apply("min", b.apply("add", column, k), columns - 1)
            out.append(Store(staged, (k,), b.bind(Read(field, tile.type, point(there), element, "unchecked"))))

        def store(k: Expr, out: list[Stmt]) -> None:
            b = collector(out)
            there = b.apply("add", b.apply("mul", piece, count), k)
            out.append(Store(tile, (row, there), b.bind(Load(staged, (k,), tile.type))))

        whole = Wide(field, staged, True, point(column), element)
        out += [Declare(staged), If(inside, (whole,), self.each_lane(lane)), *self.each_lane(store)]

    def aligned(self, row: Expr, piece: Expr, out: list[Stmt]) -> None:
        """Compute a word of a row of the outputs; those at the ends of rows may be partly outside of the grid."""
        tiling, domain, body = self.tiling, self.source.domain, list[Stmt]()
        axis, count = tiling.axis, tiling.lanes
        rows, columns = domain.extent(axis), domain.extent("column")
        b = collector(out, hint="at")
        at = b.apply("add", self.first[axis], row)
        inner = collector(body, hint="moved")
        moved = self.misalignment(at, self.first["column"], columns, tiling.align, inner)
        across = inner.apply("sub", inner.apply("mul", piece, count), moved)
        column = inner.apply("add", self.first["column"], across)
        body += [Declare(array) for array in self.stored.values()]

        def lane(k: Expr, out: list[Stmt]) -> None:
            b = collector(out, hint="at")
            here = b.apply("add", column, k)
            there = b.apply("add", b.apply("add", across, k), tiling.align - 1)
            misalignment = b.apply("add", row, self.misalignment(here, self.first[axis], rows, count, b))
            out += TransposedPoint(self, {axis: at, "column": here}, (there, misalignment, piece), k, out).copy()

        def one(k: Expr, out: list[Stmt]) -> None:
            b = collector(out)
            for (field, _), array in self.stored.items():
                there = tuple({axis: at, "column": b.apply("add", column, k)}[a] for a in domain.axes)
                out.append(Write(field, b.bind(Load(array, (k,), array.type)), there))

        body += self.each_lane(lane)
        point = tuple({axis: at, "column": column}[a] for a in domain.axes)
        whole = tuple(Wide(field, array, False, point, element) for (field, element), array in self.stored.items())
        test = collector(body)
        inside = test.apply("and", test.apply("ge", column, 0), test.apply("le", column, columns - count))
        body.append(If(inside, whole, self.each_lane(one)))
        out.append(If(b.apply("and", b.apply("lt", row, self.tiling.step(axis)), b.apply("lt", at, rows)), tuple(body)))


def suits_words(kernel: Kernel) -> bool:
    """Whether all accesses are transposed reads and writes of planes whose elements have one size below a word."""
    fields, reads = involved(kernel), [e for e in expressions(kernel.body) if isinstance(e, Read) and is_own(e.field)]
    small = len({f.type.storage.bits for f in fields}) == 1 and max(f.type.storage.bits for f in fields) <= 16
    flat = len(kernel.domain.shape) == 2 and kernel.domain.elements == max(f.type.planes for f in fields) == 1
    alone = (
        all(read in transposed(kernel) for read in reads) and not kernel.shared("constant") and not is_mirrored(kernel)
    )
    return small and flat and alone and not kernel.shared_memory
