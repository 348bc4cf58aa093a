"""Signs: values that are the negatives of others are not computed again.

Shares of neighbours are those of the own point with differences the other way round: a − b and b − a, whose squares are equal,
as are even functions of them. All values become others, computed once, times a sign; that is exact but for signs of zeros.
"""

from __future__ import annotations

from dataclasses import replace

from gpuop.ir import nodes as ir
from gpuop.ir.build import collector
from gpuop.ir.kernel import Kernel
from gpuop.ir.visit import map_blocks, map_values, operands, walk, with_operands

EVEN = {"cos", "cosh", "fabs", "native_cos", "cospi"}
ODD = {
    *(
        "sin",
        "tan",
        "asin",
        "atan",
        "sinh",
        "tanh",
        "asinh",
        "atanh",
        "erf",
        "cbrt",
        "sinpi",
        "native_sin",
        "native_tan",
    ),
    *("rint", "round", "trunc"),
}
Signed = tuple[bool, ir.Expr]  # whether it is the negative of a value


def without_negatives(kernel: Kernel) -> Kernel:
    """The kernel with values that differ by a sign computed once."""
    return replace(kernel, body=_Signs(kernel.body).block(kernel.body))


class _Signs:
    def __init__(self, body: ir.Block) -> None:
        self.assigned = {stmt.var for stmt in walk(body) if isinstance(stmt, ir.Assign)}
        self.values: dict[ir.Var, Signed] = {}
        self.tables: list[dict[ir.Expr, ir.Var]] = []
        self.negatives: list[dict[ir.Expr, ir.Expr]] = []
        self.out: list[ir.Stmt] = []

    def block(self, block: ir.Block) -> ir.Block:
        outer, self.out = self.out, []
        self.tables.append({})
        self.negatives.append({})
        for stmt in block:
            self.stmt(stmt)
        self.tables.pop()
        self.negatives.pop()
        done, self.out = tuple(self.out), outer
        return done

    def stmt(self, stmt: ir.Stmt) -> None:
        if isinstance(stmt, ir.While):  # the condition sees what the head computes
            self.out.append(stmt)
            return
        if isinstance(stmt, ir.Let) and stmt.var not in self.assigned and stmt.var.type.kind == "f":
            signed = self.signed(stmt.value)
            if signed is not None:
                self.values[stmt.var] = self.bound(stmt, signed)
                return
        self.out.append(map_blocks(map_values(stmt, self.plain), self.block))

    def bound(self, stmt: ir.Let, signed: Signed) -> Signed:
        """The value of a variable: another's, or its own without the sign."""
        negative, value = signed
        if isinstance(value, ir.ATOMS):
            return signed
        for table in self.tables:
            if value in table:
                return negative, ir.Ref(table[value])
        fixed = not any(isinstance(e, ir.Ref) and e.var in self.assigned for e in operands(value))
        if fixed:
            self.tables[-1][value] = stmt.var
        self.out.append(replace(stmt, value=value))
        return negative, ir.Ref(stmt.var)

    def plain(self, expr: ir.Expr) -> ir.Expr:
        """An expression of operands with their signs."""
        if not isinstance(expr, ir.Ref):
            return expr if isinstance(expr, ir.ATOMS) else with_operands(expr, self.plain)
        negative, value = self.of(expr)
        if not negative:
            return value
        for table in self.negatives:
            if value in table:
                return table[value]
        result = collector(self.out).apply("neg", value)
        self.negatives[-1][value] = result
        return result

    def of(self, expr: ir.Expr) -> Signed:
        return self.values.get(expr.var, (False, expr)) if isinstance(expr, ir.Ref) else (False, expr)

    def signed(self, expr: ir.Expr) -> Signed | None:
        """The value of an operation on floats, up to a sign; None where that is not looked for."""
        if isinstance(expr, ir.Ref):
            return self.of(expr)
        if isinstance(expr, ir.Read):
            return False, with_operands(expr, self.plain)
        if not isinstance(expr, ir.Apply) or any(arg.type.kind != "f" for arg in expr.args):
            return None
        signs, values = zip(*map(self.of, expr.args), strict=True)
        match expr.op:
            case "neg":
                return not signs[0], values[0]
            case "add" | "sub":
                return self.sum(expr, signs[0], values[0], signs[1] != (expr.op == "sub"), values[1])
            case "mul":
                known = any(replace(expr, args=values[::-1]) in table for table in self.tables)
                return signs[0] != signs[1], replace(expr, args=values[::-1] if known else values)
            case "div":
                return signs[0] != signs[1], replace(expr, args=values)
            case op if op in EVEN:
                return False, replace(expr, args=values)
            case op if op in ODD:
                return signs[0], replace(expr, args=values)
        return False, replace(expr, args=tuple(map(self.plain, expr.args)))

    def sum(self, expr: ir.Apply, first: bool, x: ir.Expr, second: bool, y: ir.Expr) -> Signed:
        """±x ± y as a sum or a difference that is known already, or the one that begins with x."""
        if first == second:
            total, other = (replace(expr, op="add", args=args) for args in ((x, y), (y, x)))
            return first, other if any(other in table for table in self.tables) else total
        difference, other = (replace(expr, op="sub", args=args) for args in ((x, y), (y, x)))
        known = any(other in table for table in self.tables)
        return (not first, other) if known else (first, difference)
