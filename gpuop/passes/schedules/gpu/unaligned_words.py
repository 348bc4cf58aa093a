"""SWAR stencils of bytes on GPUs, on rows that are not multiples of a word: a thread computes four aligned words, 16 bytes.

The distance of a neighbour in memory is the same at every point, whatever the width. So a thread loads aligned accesses that
contain the neighbours, and extracts these by constant shifts. Columns 0 to 15 of a thread whose stencil has the point above it,
in rows of W bytes:

    memory, 16 bytes an access     |................|................|................|
    row r, written and read        |0123456789abcdef|                                     one aligned access
    row r-1, W bytes before                     |.....0123456789|abcdef..........|        two aligned accesses, shifted by
                                                                                          W mod 16 bytes in every thread

    threads of a row   | 0 | 1 | 2 | ... | vectors - 1 | one for each column at the ends, where neighbours lie beyond the row |

Rows at the edges of the grid are computed column by column.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.analysis.intervals import LIMITS
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import INT, UCHAR, UINT, Shape, Type
from gpuop.ir.visit import expressions
from gpuop.passes.coarsening_factor import ACCESS
from gpuop.passes.instantiate import without_tables
from gpuop.passes.loops import numbered
from gpuop.passes.schedules.common.method import Method, Parameters
from gpuop.passes.schedules.gpu.roll import unfit
from gpuop.passes.schedules.gpu.shifted_rows import ShiftedRows
from gpuop.passes.swar.packed_lanes import LANES, Packed
from gpuop.passes.swar.word_kernel import Value, WordKernel

WORDS = ACCESS // LANES  # words of a thread
LONG = 8 * ACCESS  # least columns of a row, so that those at its ends are few
MOST_HELD = 64  # registers for the words that a thread reads
GROUP = Shape(1, 8, 32)  # threads of a work-group, whose rows share loads
AT_ONCE = 4  # columns of a row at the edge whose loads overlap
GAIN = 0.75  # greatest ratio of the statements for words to those for single bytes
WORD = Type(UINT)
Line = tuple[ir.FieldParam, tuple[int, ...]]  # a row that is read: its field, and its distance along the other axes
LoadedWords = Mapping[
    Line, tuple[ir.Array, int]
]  # the words of a row, and the distance of its first column from the thread


@dataclass(frozen=True)
class Lines:
    """The rows that a thread reads, with the least and the greatest offset of the columns of each."""

    spans: dict[Line, tuple[int, int]]

    @property
    def halo(self) -> tuple[int, int]:
        return max(0, *(-low for low, _ in self.spans.values())), max(0, *(high for _, high in self.spans.values()))


def lines_of(kernel: Kernel) -> Lines | None:
    """The rows that a thread of a kernel reads; None where some reads are not at constant distances."""
    spans: dict[Line, tuple[int, int]] = {}
    for read in (e for e in expressions(kernel.body) if isinstance(e, ir.Read)):
        place = line_of(read)
        if place is None:
            return None
        line, column = place
        low, high = spans.get(line, (column, column))
        spans[line] = min(low, column), max(high, column)
    return Lines(spans)


def line_of(read: ir.Read) -> tuple[Line, int] | None:
    """The row and the column of a read; None where it is not at a constant distance."""
    point = read.point or tuple(ir.Index("global", "column") for _ in read.field.type.field_shape)
    away = [at.offset for at in point if isinstance(at, ir.Index)]
    return ((read.field, tuple(away[:-1])), away[-1]) if away and len(away) == len(point) else None


def refuse(kernel: Kernel) -> str:
    if reason := unfit(kernel):
        return reason
    domain = kernel.domain
    if domain.extent("column") % LANES == 0 or domain.extent("column") < LONG:
        return "its rows are whole words, or short"
    fields = (*kernel.inputs, *kernel.written)
    if domain.elements > 1 or any(f.type.dtype != "uint8" or f.type.planes > 1 or f.by_value for f in fields):
        return "not all of its fields are planes of bytes"
    has_fills = any(output.fill is not None for output in kernel.outputs)
    if kernel.intermediates or kernel.layouts or kernel.shared_memory or has_fills:
        return "its fields are not all in memory of their own"
    if without_tables(kernel) != kernel.body:
        return "it has tables"
    lines = lines_of(kernel)
    if lines is None or max(lines.halo) > ACCESS:
        return "it reads far away"
    if domain.threads < kernel.machine.least_threads * ACCESS:
        return "wide accesses would leave too few threads"
    rows = {line: (ir.Array("row", WORD, (3 * WORDS,)), -ACCESS) for line in lines.spans}
    if len(rows) * 2 * WORDS > MOST_HELD:
        return "its reads take too many registers"
    words = WordsOfThread(
        kernel, rows, {f: ir.Array("lanes", WORD, (WORDS,)) for f in kernel.written}, constant(0, INT)
    ).block()
    return "" if words and len(words) <= GAIN * LANES * len(kernel.body) else "words would not make it faster"


def candidates(kernel: Kernel) -> tuple[Parameters, ...]:
    return ({"columns": ACCESS},)


def legalize(kernel: Kernel, parameters: Parameters) -> Parameters:
    return {"columns": ACCESS}


def apply(kernel: Kernel, parameters: Parameters) -> Kernel:
    return replace(UnalignedWords(kernel).kernel(), group=GROUP)


class WordsOfThread(WordKernel):
    """The SWAR body for one of a thread's words, with its neighbours in arrays."""

    def __init__(
        self, kernel: Kernel, rows: LoadedWords, results: Mapping[ir.FieldParam, ir.Array], number: ir.Expr
    ) -> None:
        super().__init__(kernel)
        self.rows, self.results, self.number = rows, results, number
        self.loaded: dict[tuple[ir.Array, int], ir.Expr] = {}

    def block(self) -> ir.Block | None:
        """The statements; None where some have no SWAR form."""
        return tuple(self.out) if all(map(self.stmt, self.source.body)) else None

    def read(self, read: ir.Read) -> list[Value] | None:
        place = line_of(read)
        assert place is not None
        (array, first), column = self.rows[place[0]], place[1]
        return [self.lanes.beside(lambda k: (self.row_word(array, k),), 8, column - first, LIMITS[UCHAR])]

    def row_word(self, array: ir.Array, word: int) -> ir.Expr:
        if (array, word) not in self.loaded:
            self.loaded[array, word] = self.b.bind(ir.Load(array, (self.b.apply("add", self.number, word),), WORD))
        return self.loaded[array, word]

    def write(self, stmt: ir.Write) -> bool:
        values = self.value(stmt.value) or []
        words = [v for v in values if isinstance(v, Packed) and v.range[1] <= LIMITS[UCHAR][1]]
        if len(words) == 1:
            self.out.append(ir.Store(self.results[stmt.field], (self.number,), words[0].form(8)[0], stmt.loc))
        return len(words) == 1


class UnalignedWords(ShiftedRows):
    """Builds the kernel.

    Attributes:
        lines: the rows that a thread reads.
        vectors: the threads of a row that have sixteen columns.
        ends: the numbers of columns at the ends of a row that have threads of their own.
    """

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel, ACCESS)
        lines = lines_of(kernel)
        assert lines is not None
        self.lines = lines
        self.loaded, self.stored = {}, {}
        self.vectors = -(-(self.columns + ACCESS - 1) // ACCESS)
        self.ends = tuple(n + ACCESS - 1 for n in lines.halo)
        self.points = (self.vectors + sum(self.ends)) * ACCESS

    def computed(self) -> ir.Block:
        out, thread, behind = list[ir.Stmt](), list[ir.Stmt](), list[ir.Stmt]()
        left, right = self.lines.halo
        test = self.are_within(left, self.columns - right, thread)
        rows = self.inner_rows(collector(out))
        vector = (ir.If(rows, (*thread, ir.If(test, self.words())), self.one_by_one()),)
        self.at_end(behind)
        first = collector(out).apply("lt", ir.Index("global", "column"), self.vectors)
        return (*out, ir.If(first, vector, (ir.If(rows, tuple(behind)),)))

    def inner_rows(self, b: Builder) -> ir.Expr:
        """Return whether all rows that are read are inside, and another one behind them, into which the last access may reach."""
        tests = []
        for n, axis in enumerate(self.source.domain.axes[:-1]):
            away = [across[n] for _, across in self.lines.spans]
            last = self.source.domain.extent(axis) - 1 - max(0, *away) - (axis == "row")
            tests += [b.apply("ge", ir.Index("global", axis), -min(away))] if min(away) < 0 else []
            tests.append(b.apply("le", ir.Index("global", axis), last))
        for test in tests[1:]:
            tests[0] = b.apply("and", tests[0], test)
        return tests[0]

    def at_end(self, out: list[ir.Stmt]) -> None:
        """The statements of a thread for one column at an end of a row."""
        b, (left, right) = collector(out), self.ends
        number = b.apply("sub", ir.Index("global", "column"), self.vectors)
        moved = b.apply("choose", b.apply("lt", number, left), 0, self.columns - left - right)
        self.at_column(b.apply("add", number, moved), out)

    def one_by_one(self) -> ir.Block:
        """The columns of a row at the edge of the grid; the last one takes the place of columns outside, so that loads overlap."""

        def one(lane: ir.Expr, out: list[ir.Stmt]) -> None:
            b = collector(out)
            column = b.apply("max", b.apply("add", ir.Ref(self.first), lane), 0)
            self.at_column(b.apply("min", column, self.columns - 1), out)

        return numbered("lane", 0, self.thread.count, one, AT_ONCE)

    # --- words ------------------------------------------------------------------------------------------------------

    def words(self) -> ir.Block:
        out: list[ir.Stmt] = []
        rows = {line: self.load_row(line, out) for line in self.lines.spans}
        results = {field: ir.Array(f"{field.hint}_words", WORD, (WORDS,)) for field in self.source.written}
        out += map(ir.Declare, results.values())

        def one(number: ir.Expr, out: list[ir.Stmt]) -> None:
            block = WordsOfThread(self.source, rows, results, number).block()
            assert block is not None
            out += block

        out += numbered("word", 0, WORDS, one)
        point: tuple[ir.Expr, ...] = (*self.rows, ir.Ref(self.first))
        return (*out, *(ir.Wide(field, array, False, point) for field, array in results.items()))

    def load_row(self, line: Line, out: list[ir.Stmt]) -> tuple[ir.Array, int]:
        """Load the aligned accesses that contain the reads of a row."""
        (field, across), domain = line, self.source.domain
        low, high = self.lines.spans[line]
        far = sum(n * math.prod(domain.shape[k:]) for k, n in enumerate(across, 1))
        first = (far + low) // ACCESS * ACCESS - far
        last = -(-(far + high + ACCESS) // ACCESS) * ACCESS - far
        row = ir.Array(f"{field.hint}_row", WORD, ((last - first) // LANES,))
        starts = [start + far for start in range(first, last, ACCESS)]  # distances in memory, whichever row they are in
        self.load_pieces(field, row, starts, self.rows, WORDS, out)
        return row, first


UNALIGNED_WORDS = Method("ragged words", ("columns",), refuse, candidates, legalize, apply)
