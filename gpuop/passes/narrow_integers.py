"""Narrowing of integers to the smallest types that hold them: vectors have more lanes, and line buffers are smaller.

Users compute pixels of 8 and 16 bits in int. Where the ranges of operands prove that a value fits fewer bits, it is computed in
these, exactly, since nothing overflows. Only results of narrow values are narrowed, never positions. Sums that are only compared
with small numbers are saturated, as all greater values give the same results: whether eight bytes add up to 3 can be read from
their saturated sum, which is a byte and keeps the lanes of vectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from gpuop.base.config import config
from gpuop.base.records import dataclass
from gpuop.ir.analysis.intervals import LIMITS, Range, interval
from gpuop.ir.build import Builder, collector
from gpuop.ir.expansions.table import expand
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Block, Cast, Const, Expr, FieldParam, Lane, Let, Read, Ref, Stmt, Var, Write
from gpuop.ir.ops import MIRRORED
from gpuop.ir.types import CHAR, SHORT, UCHAR, USHORT, DType, Type
from gpuop.ir.visit import expressions, map_blocks, map_values, walk, with_operands
from gpuop.passes.ranges import Ranges, fits
from gpuop.passes.schedules.methods import PLAIN

NARROW = (UCHAR, CHAR, USHORT, SHORT)  # narrowest first
# operations that are exact on operands of the type of the result
EXACT = {"add", "sub", "mul", "and", "or", "xor", "min", "max"}
# distance of the bound from the number of the comparison
ALIKE_FROM = {"lt": 0, "ge": 0, "le": 1, "gt": 1, "eq": 1, "ne": 1}
MULTIPLIED = 16  # bits: vectors have no products of bytes


@dataclass(frozen=True)
class Narrow:
    """An atom with a value, in a type that may be narrower than the value's own, and its range."""

    atom: Expr
    range: Range


def narrow(kernel: Kernel) -> Kernel:
    """The kernel with narrower integers, if its target has vectors."""
    if kernel.target is None or kernel.target.vector_length == 1 or config.schedule == PLAIN:
        return kernel
    narrowing = _Narrowing(kernel)
    body = narrowing.block(kernel.body)
    return replace(kernel, body=body, intermediates=tuple(narrowing.fields.get(p, p) for p in kernel.intermediates))


class _Narrowing:
    """Rewrites a body.

    Attributes:
        atoms: the narrow atoms of variables.
        ceilings: the bounds from which on sums may be saturated.
        fields: the narrower intermediates.
        ranges: the ranges of values that are read of these.
        written, fills: the number of writes of each field, and the values beyond their edges.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.intermediates = set(kernel.intermediates)
        self.written = Counter(stmt.field for stmt in walk(kernel.body) if isinstance(stmt, Write))
        self.fills: dict[FieldParam, list[int]] = {}
        for e in expressions(kernel.body):
            if isinstance(e, Read) and e.fill is not None and e.type.integer:
                ends = (e.fill.value,) if isinstance(e.fill, Const) else LIMITS[e.type.dtype]
                self.fills.setdefault(e.field, []).extend(map(int, ends))
        self.atoms: dict[Var, Narrow] = {}
        self.ceilings = ceilings(kernel)
        self.fields: dict[FieldParam, FieldParam] = {}
        self.ranges: dict[FieldParam, Range] = {}

    def block(self, block: Block) -> Block:
        out: list[Stmt] = []
        for stmt in block:
            b = collector(out, stmt.loc)
            if isinstance(stmt, Let) and not stmt.var.mutable and stmt.value.type.kind in "iub":
                self.let(stmt, out, b)
                continue
            if isinstance(stmt, Write) and stmt.field in self.intermediates:
                self.note(stmt)
            if isinstance(stmt, Write) and stmt.field in self.fields:
                field, value = self.fields[stmt.field], self.narrowed(stmt.value)
                assert value is not None
                stored = b.cast(value.atom, Type(field.type.element, stmt.value.type.lanes), saturate=False)
                out.append(replace(stmt, field=field, value=stored))
                continue
            stmt = map_values(stmt, lambda e, b=b: self.expr(e, b))  # type: ignore[misc]
            out.append(map_blocks(stmt, self.block))
        return tuple(out)

    def expr(self, expr: Expr, b: Builder) -> Expr:
        """The expression of values in their own types."""
        if isinstance(expr, Ref) and expr.var in self.atoms:
            return b.cast(self.atoms[expr.var].atom, expr.type, saturate=False)
        return with_operands(expr, lambda e: self.expr(e, b))

    def let(self, stmt: Let, out: list[Stmt], b: Builder) -> None:
        var, result = stmt.var, self.saturated(stmt, b) or self.value(stmt.value, b)
        if result is None:
            out.append(replace(stmt, value=self.expr(stmt.value, b)))
            if var.type.integer and var.type.dtype in NARROW:
                self.atoms[var] = Narrow(Ref(var), LIMITS[var.type.dtype])
            return
        value, range_ = result
        if isinstance(value, Ref):
            self.atoms[var] = Narrow(value, range_)
            return
        if value.type != var.type:
            var = replace(var, type=value.type)
        out.append(replace(stmt, var=var, value=value))
        if var.type.integer:
            self.atoms[stmt.var] = Narrow(Ref(var), range_)

    # --- values -------------------------------------------------------------------------------------------------

    def narrowed(self, atom: Expr) -> Narrow | None:
        if isinstance(atom, Const) and atom.type.integer:
            return Narrow(atom, (int(atom.value), int(atom.value)))
        return self.atoms.get(atom.var) if isinstance(atom, Ref) else None

    def value(self, expr: Expr, b: Builder) -> tuple[Expr, Range] | None:
        """The value in a narrower type, and its range; None where it stays as it is."""
        match expr:
            case Read(field=field) if field in self.fields:
                kind = self.fields[field].type.element
                fill = expr.fill and b.cast(expr.fill, Type(kind), saturate=False)
                moved = with_operands(replace(expr, fill=None), lambda e: self.expr(e, b))
                assert isinstance(moved, Read)
                return replace(moved, field=self.fields[field], type=expr.type.of(kind), fill=fill), self.ranges[field]
            case Cast(arg=arg, type=type_) if arg.type.kind == "b" and type_.integer and type_.dtype.bits > UCHAR.bits:
                return Cast(self.expr(arg, b), type_.of(UCHAR), expr.saturate), (0, 1)
            case Cast(arg=arg, type=type_) if (narrow := self.narrowed(arg)) and type_.integer:
                holds = fits(narrow.range, type_.dtype) and arg.type.lanes == type_.lanes
                return (narrow.atom, narrow.range) if holds else None
            case Lane(arg=arg, lane=lane) if narrow := self.narrowed(arg):
                return Lane(narrow.atom, lane, narrow.atom.type.scalar), narrow.range
            case Apply(op=op, args=args):
                operands = [n for a in args[op == "choose" :] if (n := self.narrowed(a))]
                if len(operands) == len(args) - (op == "choose"):
                    return (
                        self.chosen(args[0], operands, expr, b)
                        if op == "choose"
                        else self.applied(op, operands, expr, b)
                    )
        return None

    def chosen(self, test: Expr, values: list[Narrow], expr: Apply, b: Builder) -> tuple[Expr, Range] | None:
        type_ = common(values)
        if type_ is None or type_.bits >= expr.type.dtype.bits:
            return None
        operands = [b.cast(v.atom, v.atom.type.of(type_), saturate=False) for v in values]
        range_ = interval("choose", [(0, 1), *(v.range for v in values)], type_)
        return Apply("choose", (self.expr(test, b), *operands), expr.type.of(type_)), range_

    def applied(self, op: str, values: list[Narrow], expr: Apply, b: Builder) -> tuple[Expr, Range] | None:
        """An operation on narrow values."""
        if all(isinstance(v.atom, Const) for v in values):
            return None
        own, ranges = expr.args[0].type.dtype, [v.range for v in values]
        result = interval(op, ranges, own)
        if op in MIRRORED:
            type_ = common(values)
        elif op == "shr" and isinstance(values[1].atom, Const):
            type_ = common(values[:1])
            if type_ is None or not 0 <= ranges[1][0] < type_.bits:
                return None
        elif op in ("div", "mod") and ranges[0][0] >= 0 and ranges[1][0] > 0:
            type_ = common(values)
        elif op in EXACT:
            type_ = common(values, [result], MULTIPLIED if op == "mul" else 0)
        else:
            return None
        if type_ is None or type_.bits >= own.bits:
            return None
        operands = tuple(b.cast(v.atom, v.atom.type.of(type_), saturate=False) for v in values)
        return Apply(op, operands, expr.type if op in MIRRORED else expr.type.of(type_)), result

    def saturated(self, stmt: Let, b: Builder) -> tuple[Expr, Range] | None:
        """A sum in a type that holds its terms and its ceiling, but not the sum."""
        if stmt.var not in self.ceilings or not isinstance(stmt.value, Apply):
            return None
        values = [v for atom in stmt.value.args if (v := self.narrowed(atom))]
        type_ = common(values, [(0, max(self.ceilings[stmt.var], 0))])
        if len(values) < len(stmt.value.args) or type_ is None or type_.kind != "u":
            return None
        total = interval("add", [v.range for v in values], stmt.var.type.dtype)
        if fits(total, type_):
            return None
        operands = [b.cast(v.atom, v.atom.type.of(type_), saturate=False) for v in values]
        return expand(b, "add_sat", *operands), (total[0], LIMITS[type_][1])

    # --- intermediates ------------------------------------------------------------------------------------------

    def note(self, write: Write) -> None:
        """Narrow an intermediate to the range of the values that are written to it."""
        field, value = write.field, self.narrowed(write.value)
        if value is None or self.written[field] > 1 or write.element is not None:
            return
        ends = [*value.range, *self.fills.get(field, [])]
        low, high = min(ends), max(ends)
        type_ = next((t for t in NARROW if fits((low, high), t)), None)
        if type_ is not None and type_.bits < field.type.element.bits:
            self.fields[field] = FieldParam(field.hint, field.type.replace(dtype=type_.name))
            self.ranges[field] = low, high


def common(values: Sequence[Narrow], more: Sequence[Range] = (), least: int = 0) -> DType | None:
    """The narrowest type that holds all values and is not narrower than any of their types; None where there is none."""
    ranges = [*(v.range for v in values), *more]
    bits = max([least, *(v.atom.type.dtype.bits for v in values if not isinstance(v.atom, Const))])
    return next((t for t in NARROW if t.bits >= bits and all(fits(r, t) for r in ranges)), None)


# --- saturation bounds --------------------------------------------------------------------------------------------------


def ceilings(kernel: Kernel) -> dict[Var, int]:
    """The bound of each integer: all readers give the same result for it and for any greater value.

    A reader is a comparison with a constant, or a sum of values that are never negative and has such a bound itself.
    """
    lets = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Let)]
    sums = _sums(kernel)
    unread = Counter(e.var for e in expressions(kernel.body) if isinstance(e, Ref))  # readers that come later
    bounds: dict[Var, int] = {}
    for stmt in reversed(lets):
        atoms, ceiling = _asked(stmt.value)
        if stmt.var in sums and stmt.var in bounds and not unread[stmt.var]:
            assert isinstance(stmt.value, Apply)
            atoms, ceiling = stmt.value.args, bounds[stmt.var]
        for atom in atoms:
            if isinstance(atom, Ref):
                unread[atom.var] -= 1
                bounds[atom.var] = max(bounds.get(atom.var, 0), ceiling)
    return {var: ceiling for var, ceiling in bounds.items() if var in sums and not unread[var]}


def _sums(kernel: Kernel) -> set[Var]:
    """The sums of values that are never negative, without overflow."""
    ranges, sums = Ranges(kernel, anywhere=True), set()
    for stmt in walk(kernel.body):
        match stmt:
            case Let(var=var, value=Apply(op="add", args=args) as value) if var.type.integer and not var.mutable:
                if fits(ranges.exact(value), var.type.dtype) and all(ranges.range(a)[0] >= 0 for a in args):
                    sums.add(var)
        ranges.meet(stmt)
    return sums


def _asked(expr: Expr) -> tuple[tuple[Expr, ...], int]:
    """The variables that are compared with a constant, and the values from which on the result is the same."""
    match expr:
        case Apply(op=op, args=(Ref() as atom, Const(value=value))) if op in MIRRORED and atom.type.integer:
            return (atom,), int(value) + ALIKE_FROM[op]
        case Apply(op=op, args=(Const(value=value), Ref() as atom)) if op in MIRRORED and atom.type.integer:
            return (atom,), int(value) + ALIKE_FROM[MIRRORED[op]]
    return (), 0
