"""Simplification: value numbering, constant folding, exact identities, and dead code elimination."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace

from gpuop.ir import nodes as ir
from gpuop.ir.analysis.intervals import Range
from gpuop.ir.build import constant, fold, fold_cast
from gpuop.ir.dead_code import without_dead_code
from gpuop.ir.kernel import Kernel
from gpuop.ir.ops import MIRRORED, OPS
from gpuop.ir.types import BOOL, Type
from gpuop.ir.visit import map_blocks, map_values, operands, walk, with_operands
from gpuop.passes.integer_rules import IntegerRules
from gpuop.passes.ranges import Ranges


def simplify(kernel: Kernel) -> Kernel:
    return without_dead_code(replace(kernel, body=_Numbering(kernel).block(kernel.body)))


# --- value numbering ------------------------------------------------------------------------------------------------


class _Numbering:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        # the thread's own point, where tail threads do not run
        self.own = None if kernel.whole else tuple(ir.Index("global", axis) for axis in kernel.domain.axes)
        self.assigned = {stmt.var for stmt in walk(kernel.body) if isinstance(stmt, ir.Assign)}
        self.alias: dict[ir.Var, ir.Expr] = {}
        self.packs: dict[ir.Var, ir.Pack] = {}
        self.casts: dict[ir.Var, ir.Cast] = {}
        self.orders: dict[ir.Var, ir.Apply] = {}
        # temporaries that are copies of a variable, and the moment of the copy
        self.copies: dict[ir.Var, tuple[ir.Var, int]] = {}
        self.moment = 0  # counts the statements that may have changed variables
        self.tables: list[dict[ir.Expr, ir.Var]] = []
        self.first: list[ir.Stmt] = []  # bindings that go before the current statement
        self.integers = IntegerRules(kernel, self.bind)

    def varies(self, expr: ir.Expr) -> bool:
        """Return whether the value may differ between two statements: it depends on a mutable variable or on a thread's memory."""
        if isinstance(expr, ir.Ref):
            return expr.var in self.assigned
        if isinstance(expr, ir.Load) and isinstance(expr.memory, ir.Array) and expr.memory.written:
            return True
        return any(map(self.varies, operands(expr)))

    def block(self, block: ir.Block) -> ir.Block:
        self.tables.append({})
        self.moment += 1
        out: list[ir.Stmt] = []
        for stmt in block:
            out += self.stmt(stmt)
        self.tables.pop()
        self.moment += 1
        return tuple(out)

    def expr(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Ref):
            return self.alias.get(expr.var, expr)
        return self.simpler(with_operands(expr, self.expr))

    def simpler(self, expr: ir.Expr) -> ir.Expr:
        match expr:
            case ir.Apply():
                return self.operation(expr)
            case ir.Cast(arg=ir.Const() as arg, type=type_, saturate=saturate) if type_.lanes == 1:
                return fold_cast(arg, type_, saturate)
            case ir.Cast(arg=ir.Ref(var=var), type=type_, saturate=False) if _undone(self.casts.get(var), type_):
                return self.casts[var].arg
            case ir.Lane(arg=ir.Ref(var=var), lane=lane) if var in self.packs:
                return self.packs[var].args[lane]
            case ir.Load(memory=ir.Array(space="constant") as table, index=index, type=type_):
                return entry_of(table, index, type_) or expr
            case ir.Read(field=field, point=point) if (
                point == self.own and field.type.field_shape == self.kernel.domain.shape
            ):
                return replace(expr, point=None)
        return expr

    def operation(self, expr: ir.Apply) -> ir.Expr:
        match expr:
            case ir.Apply(op="choose", args=(ir.Ref(var=var), a, b)) if var in self.orders:
                if a.type.integer and self.orders[var].type.lanes == 1:  # compilers handle these better
                    expr = extreme_of(self.orders[var], a, b) or expr
        result: ir.Expr = expr
        if expr.op in DECIDED or ir.Const in map(
            type, expr.args
        ):  # the constant that it is, or the operand that it returns
            folded = fold(OPS[expr.op], expr.args, [a.type for a in expr.args], expr.type)
            result = folded or decided(self.same_copies(expr), self.integers.ranges) or identity(expr)
        return self.integers.simpler(result) if isinstance(result, ir.Apply) else result

    def same_copies(self, expr: ir.Apply) -> ir.Apply:
        """A comparison of two copies of a variable made at one moment, as one of equal operands."""
        copies = [self.copies.get(arg.var) for arg in expr.args if isinstance(arg, ir.Ref)]
        if expr.op not in COMPARED or len(copies) < 2 or copies[0] is None or copies[0] != copies[1]:
            return expr
        return replace(expr, args=(expr.args[0],) * 2)

    def bind(self, value: ir.Expr) -> ir.Expr:
        """A variable for a value that is needed before the current statement."""
        for table in self.tables:
            if value in table:
                return ir.Ref(table[value])
        stmt = ir.Let(ir.Var("t", value.type, temporary=True), value)
        self.first += self.let(stmt, stmt.var, value)
        return ir.Ref(stmt.var)

    def stmt(self, stmt: ir.Stmt) -> ir.Block:
        if not isinstance(stmt, ir.While):
            stmt = map_values(stmt, self.expr)
        first, self.first = self.first, []
        return (*first, *self.rest(stmt))

    def rest(self, stmt: ir.Stmt) -> ir.Block:
        """A statement whose values are simplified."""
        self.moment += isinstance(stmt, ir.Assign | ir.While)
        match stmt:
            case ir.Let(var=var, value=value) if var not in self.assigned:
                return self.let(stmt, var, value)
            case ir.If(cond=ir.Const(value=truth), then=then, orelse=orelse):
                return self.block(then if truth else orelse)
            case ir.Assign(var=var, value=ir.Ref(var=same)) if var is same:
                return ()
            case ir.While(head=head, cond=cond, body=body):
                self.tables.append({})  # the condition and the body see what the head computed
                first = tuple(s for inner in head for s in self.stmt(inner))
                loop = replace(stmt, head=first, cond=self.expr(cond), body=self.block(body))
                self.tables.pop()
                return (loop,)
        self.integers.meet(stmt, varies=True)
        return (map_blocks(stmt, self.block),)

    def let(self, stmt: ir.Let, var: ir.Var, value: ir.Expr) -> ir.Block:
        varies = self.varies(value)
        if isinstance(value, ir.ATOMS) and not varies:
            self.alias[var] = value
            return ()
        if isinstance(value, ir.Ref):
            self.copies[var] = value.var, self.moment
        if not varies:
            for table in self.tables:
                if value in table:
                    self.alias[var] = ir.Ref(table[value])
                    return ()
            self.tables[-1][value] = var
            if isinstance(value, ir.Pack):
                self.packs[var] = value
            if isinstance(value, ir.Cast):
                self.casts[var] = value
            if isinstance(value, ir.Apply) and value.op in EXTREMES:
                self.orders[var] = value
        self.integers.meet(stmt, varies)
        return (stmt,)


def entry_of(table: ir.Array, index: tuple[ir.Expr, ...], type_: Type) -> ir.Const | None:
    """The entry of a constant table at a constant index that is inside; else None."""
    at = 0
    for place, n in zip(index, table.extents, strict=True):
        if not isinstance(place, ir.Const) or not 0 <= place.value < n or type_.lanes > 1:
            return None
        at = at * n + int(place.value)
    return constant(table.values[at], type_.dtype)


def _undone(cast: ir.Cast | None, type_: Type) -> bool:
    """Return whether a cast to a type undoes another one, between integers of one size."""
    if cast is None or cast.saturate or cast.arg.type != type_:
        return False
    return cast.type.integer and type_.integer and cast.type.dtype.bits == type_.dtype.bits


def decided(expr: ir.Apply, ranges: Ranges) -> ir.Const | None:
    """The constant result of an operation on integers or bools, whatever its operands; compilers would warn of it."""
    if expr.type.lanes > 1 or any(arg.type.kind == "f" for arg in expr.args):
        return None
    match expr:
        case ir.Apply(op="mod", args=(_, ir.Const(value=1))):
            return ir.Const(0, expr.type)
        case ir.Apply(op=op, args=(x, y)) if op in COMPARED and x == y:
            return ir.Const(op in ("eq", "le", "ge"), expr.type)
        case ir.Apply(op=op, args=(x, y)) if op in MIRRORED:
            return compared(op, ranges.range(x), ranges.range(y))
        case ir.Apply(op="and", args=(x, ir.Const(value=False)) | (ir.Const(value=False), x)) if _bool(x):
            return ir.Const(False, expr.type)
        case ir.Apply(op="or", args=(x, ir.Const(value=True)) | (ir.Const(value=True), x)) if _bool(x):
            return ir.Const(True, expr.type)
    return None


def extreme_of(order: ir.Apply, a: ir.Expr, b: ir.Expr) -> ir.Apply | None:
    """The minimum or maximum that a selection between two compared numbers is, except for NaN and signed zeros."""
    if order.op not in EXTREMES or a.type != b.type:
        return None
    if order.args == (a, b):
        return ir.Apply(EXTREMES[order.op], (a, b), a.type)
    return ir.Apply(EXTREMES[MIRRORED[order.op]], (a, b), a.type) if order.args == (b, a) else None


DECIDED = {"choose", *MIRRORED}  # operations that may be constant without constant operands
EXTREMES = {"lt": "min", "le": "min", "gt": "max", "ge": "max"}
COMPARED: dict[str, Callable[[float, float], bool]] = {name: getattr(operator, name) for name in MIRRORED}


def compared(op: str, x: Range, y: Range) -> ir.Const | None:
    """The result of a comparison of numbers of two ranges, if it is the same for all of them."""
    if op in ("eq", "ne"):
        apart, one = x[1] < y[0] or y[1] < x[0], x[0] == x[1] == y[0] == y[1]
        return ir.Const((op == "eq") == one, Type(BOOL)) if apart or one else None
    least, most = (COMPARED[op](*ends) for ends in ((x[0], y[1]), (x[1], y[0])))
    return ir.Const(least, Type(BOOL)) if least == most else None


def identity(expr: ir.Apply) -> ir.Expr:
    """Apply identities that are exact in floating point too."""
    match expr:
        case ir.Apply(op="mul" | "div", args=(x, ir.Const(value=1))) if x.type == expr.type:
            return x
        case ir.Apply(op="mul", args=(ir.Const(value=1), x)) if x.type == expr.type:
            return x
        case ir.Apply(op="add" | "sub", args=(x, ir.Const(value=0))) if expr.type.integer and x.type == expr.type:
            return x
        case ir.Apply(op="add", args=(ir.Const(value=0), x)) if expr.type.integer and x.type == expr.type:
            return x
        case (
            ir.Apply(op="and", args=(x, ir.Const(value=True))) | ir.Apply(op="or", args=(x, ir.Const(value=False)))
        ) if _bool(x):
            return x
        case (
            ir.Apply(op="and", args=(ir.Const(value=True), x)) | ir.Apply(op="or", args=(ir.Const(value=False), x))
        ) if _bool(x):
            return x
        case ir.Apply(op="ne", args=(x, ir.Const(value=False))) | ir.Apply(op="eq", args=(x, ir.Const(value=True))) if (
            _bool(x)
        ):
            return x
        case ir.Apply(op="choose", args=(_, a, b)) if a == b:
            return a
        case ir.Apply(op="choose", args=(ir.Const(value=truth), a, b)):
            return a if truth else b
    return expr


def _bool(expr: ir.Expr) -> bool:
    return expr.type.kind == "b"
