"""Sums of integers with weights that are not whole, where doubles are slow or missing: in integers, by weights of 2^-n.

`(long)(0.25 * (double)a + 0.3 * (double)b)` is `(1073741824 * (long)a + 1288490189 * (long)b) >> 32`, unless rounding decides:
the sum in integers and that of doubles are both within an error bound of the exact one, so they have the same integer part if no
integer lies within the bound. If one does, as where all values are equal, a device with doubles computes the doubles, so its
results have the bits of every other device; one without takes that integer. Equal bytes, as of a white page, have few
sums: a table says which of them doubles make less than an integer.
"""

from __future__ import annotations

import operator
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from gpuop.base.errors import Loc
from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.dead_code import without_dead_code
from gpuop.ir.kernel import Kernel
from gpuop.ir.target import Target
from gpuop.ir.types import BOOL, DOUBLE, INT, LONG, Type
from gpuop.ir.visit import Copier, blocks, map_blocks, used_by, walk
from gpuop.passes.ranges import Ranges

ROUNDING = Fraction(1, 2**53)  # relative error of an operation on doubles
CERTAIN = 16  # the error bound is below 2^-16: one sum of 2^15, at most, is undecided by chance
WORD = 2**31  # products with lesser weights are one multiplication of 32 bits
MOST = 2**62  # sums are below it
BYTES = 256  # integers whose equal sums are in a table
OPERATIONS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}


def scaled_sums(kernel: Kernel) -> Kernel:
    """Replace sums of doubles that become integers, where the target has no doubles or slow ones."""
    target = kernel.target
    if target is None or not (target.slow_fp64 or not target.has_fp64):
        return kernel
    sums = _ScaledSums(kernel, target)
    body = sums.block(kernel.body)
    tables = map(ir.Declare, sums.tables.values())
    return without_dead_code(replace(kernel, body=(*tables, *body))) if sums.replaced else kernel


@dataclass(frozen=True)
class LinearForm:
    """A sum of integers times weights, as doubles compute it.

    Attributes:
        terms: integers and their weights; an integer may come twice.
        constant: a number that is added.
        size: bound of the magnitude of the sum, and of all sums on the way.
        error: bound of the error of the doubles.
    """

    terms: tuple[tuple[ir.Expr, Fraction], ...]
    constant: Fraction
    size: Fraction
    error: Fraction

    def plus(self, other: LinearForm, sign: int) -> LinearForm:
        terms = self.terms + (other.terms if sign > 0 else tuple((leaf, -weight) for leaf, weight in other.terms))
        size = self.size + other.size
        error = self.error + other.error
        return LinearForm(terms, self.constant + sign * other.constant, size, error + (size + error) * ROUNDING)

    def times(self, factor: Fraction) -> LinearForm:
        terms = tuple((leaf, weight * factor) for leaf, weight in self.terms)
        size, error = self.size * abs(factor), self.error * abs(factor)
        return LinearForm(terms, self.constant * factor, size, error + (size + error) * ROUNDING)


@dataclass(frozen=True)
class Scale:
    """Weights as integers.

    Attributes:
        bits: n of the scale 2^n.
        weights: an integer for each term.
        constant: that of the form.
        error: bound of the difference to the doubles, times 2^n.
    """

    bits: int
    weights: dict[ir.Expr, int]
    constant: int
    error: int


class _ScaledSums:
    """A copy of a body in which sums are integers; doubles that nothing needs are still there."""

    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.has_doubles, self.replaced = target.has_fp64, False
        self.has_tables = target.vector_length == 1  # lanes of a vector look at neighbours
        self.ranges = Ranges(kernel, anywhere=True)
        self.lets: dict[ir.Var, ir.Let] = {}
        self.forms: dict[ir.Var, LinearForm | None] = {}
        self.tables: dict[tuple[int, ...], ir.Array] = {}
        others = (stmt for stmt in walk(kernel.body) if not _conversion(stmt))
        self.others = {var for stmt in others for var in used_by(stmt) if var.type == Type(DOUBLE)}

    def block(self, block: ir.Block) -> ir.Block:
        out: list[ir.Stmt] = []
        for stmt in block:
            self.ranges.meet(stmt)
            if _conversion(stmt):
                stmt = self.converted(out, stmt)
            elif isinstance(stmt, ir.Let) and stmt.var.type == Type(DOUBLE) and not stmt.var.mutable:
                self.lets[stmt.var], self.forms[stmt.var] = stmt, self.form(stmt.value)
            out.append(map_blocks(stmt, self.block) if blocks(stmt) else stmt)
        return tuple(out)

    def converted(self, out: list[ir.Stmt], stmt: ir.Stmt) -> ir.Stmt:
        """The conversion of a double, or of a sum in integers if the double is one and nothing else is done with it."""
        match stmt:
            case ir.Let(value=ir.Cast(arg=ir.Ref(var=var)) as cast) if var not in self.others:
                form = self.forms.get(var)
                scale = scaled(form, self.ranges) if form else None
                if form and scale:
                    self.replaced = True
                    return replace(stmt, value=self.whole(out, stmt.loc, cast, form, scale))
        return stmt

    def form(self, value: ir.Expr) -> LinearForm | None:
        """The linear form of a double; None if it is another function of integers, or of doubles that are not sums."""
        match value:
            case ir.Cast(arg=ir.Ref(var=var) as leaf) if leaf.type.kind in "iu" and not var.mutable:
                least, most = self.ranges.range(leaf)
                size = max(-least, most)
                return LinearForm(((leaf, Fraction(1)),), Fraction(0), Fraction(size), Fraction(0))
            case ir.Apply(op="add" | "sub" as op, args=(a, b)):
                left, right = self.operand(a), self.operand(b)
                return left.plus(right, 1 if op == "add" else -1) if left and right else None
            case ir.Apply(op="mul", args=(a, ir.Const(value=factor)) | (ir.Const(value=factor), a)):
                form = self.operand(a)
                return form.times(Fraction(factor)) if form and abs(factor) < MOST else None
            case ir.Apply(op="div", args=(a, ir.Const(value=divisor))):
                form = self.operand(a)
                return form.times(1 / Fraction(divisor)) if form and 0 < abs(divisor) < MOST else None
        return None

    def operand(self, expr: ir.Expr) -> LinearForm | None:
        if isinstance(expr, ir.Const):
            value = Fraction(expr.value) if abs(expr.value) < MOST else None
            return None if value is None else LinearForm((), value, abs(value), Fraction(0))
        return self.forms.get(expr.var) if isinstance(expr, ir.Ref) else None

    # --- statements -------------------------------------------------------------------------------------------------

    def whole(self, out: list[ir.Stmt], loc: Loc | None, cast: ir.Cast, form: LinearForm, scale: Scale) -> ir.Expr:
        """The integer of a sum, in the type of the conversion."""
        b = collector(out, loc)
        total = self.total(b, scale)
        floor = b.apply("shr", total, scale.bits)
        rest = b.apply("and", total, constant(2**scale.bits - 1, LONG))
        near = b.apply("le", rest, constant(2 * scale.error, LONG))
        positive = all(self.ranges.range(leaf)[0] >= 0 and weight >= 0 for leaf, weight in form.terms)
        positive, result = positive and form.constant >= 0, floor
        if not positive:  # truncated towards 0
            up = b.apply("and", b.apply("lt", floor, constant(0, LONG)), b.apply("not", near))
            result = b.apply("choose", up, b.apply("add", floor, constant(1, LONG)), floor)
        chosen = ir.Var("whole", cast.type, mutable=True, temporary=True)
        exact = self.doubles(cast, chosen) if self.has_doubles else ()
        exact = self.of_equal(cast, chosen, floor, scale, exact) if positive and self.has_tables else exact
        converted = b.cast(result, cast.type, cast.saturate)
        if not exact:
            return converted
        undecided = b.apply("and", near, b.apply("ne", floor, constant(0, LONG)))
        out += ir.Let(chosen, converted, loc), ir.If(undecided, exact, loc=loc)
        return ir.Ref(chosen)

    def of_equal(self, cast: ir.Cast, chosen: ir.Var, floor: ir.Expr, scale: Scale, otherwise: ir.Block) -> ir.Block:
        """A sum that is nearly an integer, of integers of which none is negative: if these are equal bytes, it is looked up."""
        leaves = [leaf for leaf, weight in scale.weights.items() if weight]
        if len(leaves) < len(scale.weights) or any(self.ranges.range(leaf)[1] >= BYTES for leaf in leaves):
            return otherwise
        out: list[ir.Stmt] = []
        b = collector(out)
        same = b.all_of(b.apply("eq", leaf, leaves[0]) for leaf in leaves[1:]) or constant(True, BOOL)
        then: list[ir.Stmt] = []
        c = collector(then)
        value = c.cast(leaves[0], Type(INT), False)
        words = c.bind(ir.Load(self.table(cast, scale), (c.apply("shr", value, 5),), Type(INT)))
        less = c.apply("and", c.apply("shr", words, c.apply("and", value, 31)), 1)
        result = c.cast(c.apply("sub", floor, c.cast(less, Type(LONG))), cast.type, cast.saturate)
        then.append(ir.Assign(chosen, result))
        return (*out, ir.If(same, tuple(then), otherwise))

    def table(self, cast: ir.Cast, scale: Scale) -> ir.Array:
        """Bits of equal bytes: whether doubles make their sum less than the integer that it nearly is."""
        assert isinstance(cast.arg, ir.Ref)
        values = np.arange(BYTES)
        nearest = (values * sum(scale.weights.values()) + scale.constant + scale.error) >> scale.bits
        less = nearest - np.trunc(self.computed(cast.arg, values.astype(np.float64))).astype(np.int64)
        words = tuple(np.packbits(less.astype(bool), bitorder="little").view("<i4").tolist())
        if words not in self.tables:
            self.tables[words] = ir.Array("less", Type(INT), (len(words),), "constant", values=words)
        return self.tables[words]

    def computed(self, expr: ir.Expr, values: Any) -> Any:
        """A sum of doubles of which each integer is one of some values."""
        match expr:
            case ir.Ref(var=var):
                return self.computed(self.lets[var].value, values)
            case ir.Apply(op=op, args=(a, b)):
                return OPERATIONS[op](self.computed(a, values), self.computed(b, values))
            case ir.Const(value=value):
                return value
        return values

    def total(self, b: Builder, scale: Scale) -> ir.Expr:
        """The sum in integers, and its error bound: equal weights are one product."""
        groups: dict[int, list[tuple[ir.Expr, bool]]] = {}
        for leaf, weight in scale.weights.items():
            if weight:
                groups.setdefault(abs(weight), []).append((leaf, weight > 0))
        result: ir.Expr = constant(scale.constant + scale.error, LONG)
        for weight, leaves in groups.items():
            leaves.sort(key=lambda each: not each[1])
            sign = leaves[0][1]
            part = b.cast(leaves[0][0], Type(INT), False)
            for leaf, positive in leaves[1:]:
                part = b.apply("add" if positive == sign else "sub", part, b.cast(leaf, Type(INT), False))
            product = b.apply("mul", b.cast(part, Type(LONG)), constant(weight, LONG))
            result = b.apply("add" if sign else "sub", result, product)
        return result

    def doubles(self, cast: ir.Cast, chosen: ir.Var) -> ir.Block:
        """The conversion of the sum as it was written."""
        assert isinstance(cast.arg, ir.Ref)
        needed: dict[ir.Var, ir.Let] = {}
        waiting = [cast.arg.var]
        while waiting:
            var = waiting.pop()
            if var in self.lets:
                needed[var] = self.lets[var]
                waiting += used_by(self.lets[var])
        lets = tuple(let for var, let in self.lets.items() if var in needed)
        whole, loc = ir.Var("t", cast.type, temporary=True), needed[cast.arg.var].loc
        return Copier((*lets, ir.Let(whole, cast, loc), ir.Assign(chosen, ir.Ref(whole), loc))).copy()


def scaled(form: LinearForm, ranges: Ranges) -> Scale | None:
    """The weights of a sum as integers, of 31 bits if these are precise enough; None if integers of 64 bits are too short."""
    weights: dict[ir.Expr, Fraction] = {}
    for leaf, weight in form.terms:
        weights[leaf] = weights.get(leaf, Fraction(0)) + weight
    sizes = [max(-least, most) for least, most in map(ranges.range, weights)]
    greatest = max((abs(weight) for weight in weights.values()), default=Fraction(0))
    if not greatest or form.size >= WORD or sum(sizes) >= WORD:
        return None
    rounding = Fraction(sum(sizes) + 1, 2)  # of the weights and the constant, in units
    fitting = min(_bits(WORD / greatest), _bits(MOST / form.size) - 1, 61)
    bits = max(fitting, _bits(rounding) + 2 + CERTAIN)
    error = ceil(rounding + form.error * 2**bits)
    if error > 2 ** (bits - CERTAIN) or form.size * 2**bits + 2 * error >= MOST:
        return None
    whole = {leaf: round(weight * 2**bits) for leaf, weight in weights.items()}
    return Scale(bits, whole, round(form.constant * 2**bits), error)


def _bits(number: Fraction) -> int:
    """The greatest n for which 2^n is not above a number."""
    n = number.numerator.bit_length() - number.denominator.bit_length()
    power: Any = Fraction(2) ** n
    return n if power <= number else n - 1


def _conversion(stmt: ir.Stmt) -> bool:
    """Return whether a statement converts a double to an integer."""
    match stmt:
        case ir.Let(value=ir.Cast(arg=ir.Ref() as arg, type=type_)):
            return arg.type == Type(DOUBLE) and type_.lanes == 1 and type_.kind in "iu"
    return False
