"""The SWAR kernel of a stencil of bytes: its statements, which have no conditions or loops, and its fields of words."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.analysis.intervals import LIMITS, Range
from gpuop.ir.build import collector
from gpuop.ir.dead_code import without_dead_code
from gpuop.ir.kernel import Kernel
from gpuop.ir.layout import Layout
from gpuop.ir.ops import MIRRORED
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import BOOL, INT, UCHAR, UINT, Shape, Type
from gpuop.ir.visit import walk
from gpuop.passes.swar.packed_lanes import LANES, MOST, Flags, Packed, PackedLanes, Words, splat, uint

BORDERS = ("clamp", "wrap", "fill", "unchecked")  # borders of words; "clamp" needs a repeated edge byte besides
FIRST, LAST = {8: 0x0000, 16: 0x1010}, {8: 0x3333, 16: 0x3232}  # selectors of the first and the last lane for all lanes
Value: TypeAlias = Packed | Flags


@dataclass(frozen=True)
class Stored:
    """A field of words.

    Attributes:
        param: the field.
        bits: the bits of a lane, 8 or 16.
        range: the range of its values.
        alternate: whether the elements of four points are interleaved in as many words.
    """

    param: ir.FieldParam
    bits: int
    range: Range
    alternate: bool = False


class WordKernel:
    """Rewrites the statements of a body without conditions and loops.

    Attributes:
        fields: the fields of words, by field of bytes.
        parts: the values of variables, by component.
        words: the variables of words that were read.
        repeated: the words that replace those that may lie beyond an edge.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.source = kernel
        self.shape = Shape((*kernel.domain.shape[:-1], kernel.domain.shape[-1] // LANES))
        self.fields = {f: self.stored(f, 8, LIMITS[UCHAR]) for f in (*kernel.inputs, *kernel.written)}
        self.writes = Counter(stmt.field for stmt in walk(kernel.body) if isinstance(stmt, ir.Write))
        self.parts: dict[ir.Var, list[Value]] = {}
        self.words: dict[ir.Read, ir.Expr] = {}
        self.repeated: dict[ir.Expr, ir.Expr] = {}
        self.out: list[ir.Stmt] = [ir.Comment(f"{LANES} columns in a word")]
        self.b = collector(self.out)
        self.lanes = PackedLanes(self.b)

    def stored(self, field: ir.FieldParam, bits: int, range_: Range) -> Stored:
        planes = (*field.type.tensor_shape, 2) if bits == 16 else field.type.tensor_shape
        kind = field.type.replace(field_shape=self.shape, tensor_shape=planes, dtype=UINT.name)
        return Stored(ir.FieldParam(field.hint, kind), bits, range_, not self.source.layout(field).in_rows())

    def kernel(self) -> Kernel | None:
        """The SWAR kernel; None where a statement has no SWAR form."""
        source = self.source
        for stmt in source.body:
            if not self.stmt(stmt):
                return None
        param = {field: stored.param for field, stored in self.fields.items()}
        packed = replace(
            source,
            inputs=tuple(param[f] for f in source.inputs),
            outputs=tuple(replace(o, param=param[o.param], over=o.over and param[o.over]) for o in source.outputs),
            intermediates=tuple(param[f] for f in source.intermediates),
            domain=Domain(self.shape),
            layouts=tuple((param[f], in_words(layout)) for f, layout in source.layouts),
            body=tuple(self.out),
            packed=True,
        )
        return without_dead_code(packed)  # some uses need only one of two words

    def stmt(self, stmt: ir.Stmt) -> bool:
        match stmt:
            case ir.Comment():
                self.out.append(stmt)
                return True
            case ir.Let(var=var, value=value) if not var.mutable:
                parts = self.value(value)
                if parts is not None:
                    self.parts[var] = parts
                return parts is not None
            case ir.Write(point=None):
                return self.write(stmt)
        return False

    def write(self, stmt: ir.Write) -> bool:
        parts = self.value(stmt.value)
        values = [v for v in parts or [] if isinstance(v, Packed)]
        if not values:
            return False
        if stmt.field not in self.fields:
            range_ = min(v.range[0] for v in values), max(v.range[1] for v in values)
            bits = 8 if range_[1] <= MOST[8] else 16
            if self.writes[stmt.field] > 1 or (bits == 16 and len(values) > 1):
                return False
            self.fields[stmt.field] = self.stored(stmt.field, bits, range_)
        there = self.fields[stmt.field]
        if max(v.range[1] for v in values) > MOST[there.bits]:
            return False
        words = [word for v in values for word in v.form(there.bits)]
        self.out.append(replace(stmt, field=there.param, value=self.b.pack(words)))
        return True

    # --- values -------------------------------------------------------------------------------------------------

    def value(self, expr: ir.Expr) -> list[Value] | None:
        """The components of a value."""
        match expr:
            case ir.Const(value=number) if expr.type.integer:
                packed = self.lanes.number(int(number))
                return None if packed is None else [packed]
            case ir.Ref(var=var):
                return self.parts.get(var)
            case ir.Read():
                return self.read(expr)
            case ir.Lane(arg=arg, lane=lane):
                values = self.value(arg)
                return None if values is None else [values[lane]]
            case ir.Pack(args=args):
                return self.joined([self.value(a) for a in args])
            case ir.Cast(arg=arg):
                values = self.value(arg)
                return None if values is None else self.joined([self.cast(v, expr) for v in values])
            case ir.Apply(op=op, args=args):
                operands = [self.value(a) for a in args]
                present = [o for o in operands if o is not None]
                if len(present) < len(operands):
                    return None
                count = max(map(len, present))
                spread = [o * count if len(o) < count else o for o in present]
                return self.joined([self.apply(op, list(v), expr) for v in zip(*spread, strict=True)])
        return None

    def joined(self, parts: list[list[Value] | None]) -> list[Value] | None:
        result = [v for part in parts if part is not None for v in part]
        return None if None in parts else result

    def cast(self, value: Value, cast: ir.Cast) -> list[Value] | None:
        dtype = cast.type.dtype
        if cast.type.lanes > 1 and cast.arg.type.lanes == 1:
            return None
        if isinstance(value, Flags):
            return [value] if dtype is BOOL else [self.lanes.truth(value)] if dtype.kind in "iu" else None
        if dtype.kind not in "iu":
            return None
        most = LIMITS[dtype][1]
        if value.range[1] <= most:
            return [value]
        if not cast.saturate and dtype.kind == "u":
            return [self.lanes.masked(value, most)]
        limit = self.lanes.number(most)
        clamped = None if limit is None or not cast.saturate else self.lanes.apply("min", value, limit)
        return None if clamped is None else [clamped]

    def apply(self, op: str, values: list[Value], expr: ir.Apply) -> list[Value] | None:
        """An operation on one component."""
        lanes, result = self.lanes, None
        match op, values:
            case "choose", [Flags() as test, Packed() as x, Packed() as y]:
                result = lanes.chosen(test, x, y)
            case "and" | "or" | "xor", [Flags() as x, Flags() as y]:
                return [lanes.combined(op, x, y)]
            case "not", [Flags() as x]:
                return [lanes.inverted(x)]
            case _, [Packed() as x, Packed() as y] if op in MIRRORED:
                flags = lanes.compared(op, x, y)
                return None if flags is None else [flags]
            case _, [Packed() as x, Packed() as y]:
                result = lanes.apply(op, x, y)
        if result is not None and result.range[1] > LIMITS[expr.type.dtype][1]:  # it wraps in its own type
            result = lanes.masked(result, LIMITS[expr.type.dtype][1]) if expr.type.kind == "u" else None
        return None if result is None else [result]

    # --- memory -------------------------------------------------------------------------------------------------

    def read(self, read: ir.Read) -> list[Value] | None:
        there = self.fields.get(read.field)
        if isinstance(read.fill, ir.Argument):
            return None
        fill = int(read.fill.value) if isinstance(read.fill, ir.Const) else None
        if there is None or read.border not in BORDERS or (fill is not None and not 0 <= fill <= MOST[there.bits]):
            return None
        ends = (*there.range, *([] if fill is None else [fill]))
        planes = read.field.type.planes
        if read.element is not None and not isinstance(read.element, ir.Const):
            return None
        elements = range(planes) if read.element is None else [min(max(int(read.element.value), 0), planes - 1)]
        at = 0 if read.point is None else read.point[-1]
        column = at.offset if isinstance(at, ir.Index) else 0

        def parts(plane: int, k: int) -> Words:
            return tuple(self.word(read, there, plane, k, part) for part in range(there.bits // 8))

        range_ = min(ends), max(ends)
        return [self.lanes.beside(partial(parts, plane), there.bits, column, range_) for plane in elements]

    def word(self, read: ir.Read, there: Stored, plane: int, k: int, part: int) -> ir.Expr:
        """The word at a distance of k words; beyond a clamped edge, the last column in all lanes."""
        word, bits = self.stored_word(read, there, plane, k, part), there.bits
        if read.border != "clamp" or read.point is None or not k:
            return word
        if word not in self.repeated:
            b, at = self.b, ir.Index("global", "column", k)
            edge = self.stored_word(read, there, plane, k, 0 if k < 0 else bits // 8 - 1)
            last = self.lanes.bytes(edge, uint(0), FIRST[bits] if k < 0 else LAST[bits])
            outside = b.apply("lt", at, 0) if k < 0 else b.apply("ge", at, self.shape[-1])
            self.repeated[word] = b.apply("choose", outside, last, word)
        return self.repeated[word]

    def stored_word(self, read: ir.Read, there: Stored, plane: int, k: int, part: int) -> ir.Expr:
        """A word of a plane in memory, or of the border."""
        if there.alternate:
            return self.picked([self.word_at(read, there, n, k) for n in range(there.param.type.planes)], plane)
        return self.word_at(read, there, plane * (there.bits // 8) + part, k)

    def picked(self, words: list[ir.Expr], plane: int) -> ir.Expr:
        """The word of an element of four points, whose elements are interleaved in several words."""
        lanes = [divmod(plane + point * len(words), LANES) for point in range(LANES)]
        first, *others = sorted({word for word, _ in lanes})
        result, there = words[first], [byte for _, byte in lanes]
        for number in others:
            selector = [LANES + byte if word == number else at for (word, byte), at in zip(lanes, there, strict=True)]
            result = self.lanes.bytes(result, words[number], sum(at << 4 * n for n, at in enumerate(selector)))
            there = list(range(LANES))
        return result

    def word_at(self, read: ir.Read, there: Stored, number: int, k: int) -> ir.Expr:
        """The word with a number, of those of four points."""
        point = None if read.point is None else (*read.point[:-1], ir.Index("global", "column", k))
        if all(isinstance(at, ir.Index) and not at.offset for at in point or ()):
            read, point = replace(read, border="clamp", fill=None), None
        element = None if there.param.type.planes == 1 else ir.Const(number, Type(INT))
        fill = splat(int(read.fill.value), there.bits) if isinstance(read.fill, ir.Const) else None
        key = ir.Read(there.param, Type(UINT), point, element, read.border, fill)
        if key not in self.words:
            self.words[key] = self.b.bind(key)
        return self.words[key]


def in_words(layout: Layout) -> Layout:
    """The layout in words of an array of bytes, whose rows are multiples of a word."""
    along = layout.element if layout.in_rows() else LANES  # interleaved elements lie in words
    point = (*(n // LANES for n in layout.point[:-1]), layout.point[-1])
    return Layout(point, along // LANES, behind=(layout.behind or 0) // LANES)
