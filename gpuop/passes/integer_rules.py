"""Simplification of integer arithmetic by ranges: quotients, remainders and limits without effect are removed.

Quotients and remainders of a linear index, `row * 64 + column`, become its parts again. A number between limits
that is compared with one of them is a number without limits in an order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpuop.base.records import dataclass
from gpuop.ir.analysis.intervals import interval
from gpuop.ir.build import constant, fold
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Const, Expr, Let, Ref, Stmt, Var
from gpuop.ir.ops import OPS
from gpuop.passes.ranges import Ranges, fits


@dataclass(frozen=True)
class Digits:
    """A number that is `high` × `base` + `low`, where 0 ≤ low < base, 0 ≤ high, and nothing overflows.

    It is no `Affine`, because both parts are expressions that replace the number's quotient and remainder.
    """

    high: Expr
    base: int
    low: Expr


class IntegerRules:
    """Simplifies operations on scalars whose operands are atoms; bindings must be added in order, by `meet`.

    Args:
        bind: binds an operation to a variable before the statement that is simplified.

    Attributes:
        ranges: the ranges of variables.
        operations: the operations of immutable variables.
    """

    def __init__(self, kernel: Kernel, bind: Callable[[Apply], Expr]) -> None:
        self.ranges = Ranges(kernel, anywhere=True)
        self.bind = bind
        self.operations: dict[Var, Apply] = {}

    def meet(self, stmt: Stmt, varies: bool = False) -> None:
        self.ranges.meet(stmt)
        if isinstance(stmt, Let) and isinstance(stmt.value, Apply) and stmt.value.type.integer and not varies:
            self.operations[stmt.var] = stmt.value

    def simpler(self, expr: Apply) -> Expr:
        if expr.op in ORDERS and expr.args[0].type.integer and expr.args[0].type.lanes == 1:
            return self.equality(expr) or expr
        if not expr.type.integer or expr.type.lanes > 1:
            return expr
        result = RULES[expr.op](self, *expr.args) if expr.op in RULES else None
        if result is not None and result.type == expr.type:
            return result
        number, computed = self.value(expr), any(self.value(e) is None for e in expr.args if e.type.kind in "iub")
        return expr if number is None or not computed else constant(number, expr.type.dtype)

    # --- operations -----------------------------------------------------------------------------------------------

    def quotient(self, x: Expr, y: Expr) -> Expr | None:
        n = self.value(y)
        if n is None or n < 1:
            return None
        if n == 1:
            return x
        least, most = self.ranges.range(x)
        if -n < least and most < n:
            return constant(0, x.type.dtype)
        match self.operation(x):
            case Apply(op="div", args=(inner, by)) if (k := self.positive(by)) and fits((0, k * n), x.type.dtype):
                return self.apply("div", inner, k * n)
        parts = self.digits(x)
        if parts is not None and n % parts.base == 0:
            return self.apply("div", parts.high, n // parts.base)
        if parts is not None and parts.base % n == 0:
            high, low = self.apply("mul", parts.high, parts.base // n), self.apply("div", parts.low, n)
            return Apply("add", (high, low), x.type)
        return None

    def rest(self, x: Expr, y: Expr) -> Expr | None:
        n = self.value(y)
        if n is None or n < 1:
            return None
        least, most = self.ranges.range(x)
        if -n < least and most < n:
            return x
        match self.operation(x):
            case Apply(op="mod", args=(inner, by)) if (k := self.positive(by)) and k % n == 0:
                return self.apply("mod", inner, n)
            case Apply(op="div", args=(inner, by)) if k := self.positive(by):
                parts = self.digits(inner)
                if parts is not None and parts.base % (k * n) == 0:
                    return self.apply("mod", self.apply("div", parts.low, k), n)
        parts = self.digits(x)
        if parts is not None and parts.base % n == 0:
            return self.apply("mod", parts.low, n)
        return None

    def total(self, x: Expr, y: Expr) -> Expr | None:
        """`a / n * n + a % n` is a."""
        for multiple, rest in ((x, y), (y, x)):
            product, remainder = self.multiple(multiple), self.operation(rest)
            if product is not None and remainder is not None and remainder.op == "mod":
                (quotient, n), (a, by) = product, remainder.args
                if self.value(by) == n and self.is_quotient(quotient, a, n):
                    return a
        return None

    def difference(self, x: Expr, y: Expr) -> Expr | None:
        """`a - a / n * n` is a % n."""
        quotient, n = self.multiple(y) or (y, 0)
        return self.apply("mod", x, n) if n and self.is_quotient(quotient, x, n) else None

    def least(self, x: Expr, y: Expr) -> Expr | None:
        (least_x, most_x), (least_y, most_y) = self.ranges.range(x), self.ranges.range(y)
        return x if most_x <= least_y else y if most_y <= least_x else None

    def greatest(self, x: Expr, y: Expr) -> Expr | None:
        (least_x, most_x), (least_y, most_y) = self.ranges.range(x), self.ranges.range(y)
        return x if most_y <= least_x else y if most_x <= least_y else None

    def masked(self, x: Expr, y: Expr) -> Expr | None:
        """A mask of low bits, of a number without other bits, is that number."""
        for number, mask in ((x, y), (y, x)):
            bits, (least, most) = self.value(mask), self.ranges.range(number)
            if bits is not None and bits & (bits + 1) == 0 and least >= 0 and most <= bits:
                return number
        return None

    # --- equality with a limit ----------------------------------------------------------------------------------

    def equality(self, expr: Apply) -> Apply | None:
        """Equality of a number between limits with one of them, as an order: `max(min(x, 7), 0) == 7` is x >= 7.

        PTXAS of CUDA 13 tests 0 <= x <= 7 instead, on sm_90 and sm_100 (`VIMNMX.RELU` with a predicate).
        """
        x, limit = expr.args if self.operation(expr.args[0]) else expr.args[::-1]
        match self.operation(x):
            case Apply(op="add" | "sub" as sign, args=(y, Const(value=k))) if (n := self.value(limit)) is not None:
                (least, most), k = self.ranges.range(y), int(k) if sign == "add" else -int(k)
                if y.type == x.type and fits((min(least + k, n - k), max(most + k, n - k)), x.type.dtype):
                    return self.equality(replace(expr, args=(y, constant(n - k, x.type.dtype))))
            case Apply(op="min" | "max" as op, args=(y, bound)) if y.type == bound.type == limit.type:
                return self.limited(expr, op, y, bound, limit) or self.limited(expr, op, bound, y, limit)
        return None

    def limited(self, expr: Apply, op: str, x: Expr, bound: Expr, limit: Expr) -> Apply | None:
        """Equality of an extreme of a number and a bound with a limit; None where it has no simpler form."""
        if bound == limit:
            return Apply(ORDERS[expr.op][op], (x, limit), expr.type)
        ends, limits = self.ranges.range(bound), self.ranges.range(limit)
        if ends[1] < limits[0] if op == "max" else limits[1] < ends[0]:  # the bound is never the limit
            return self.equality(replace(expr, args=(x, limit)))
        match self.operation(x):
            case Apply(op="min" | "max" as inner, args=args) if inner != op and limit in args:
                y = self.bind(Apply(op, (args[1] if args[0] == limit else args[0], bound), x.type))
                reached = Apply(ORDERS[expr.op][inner], (y, limit), expr.type)
                if ends[1] <= limits[0] if op == "max" else limits[1] <= ends[0]:
                    return reached
                # limits that may cross: the outer one has the last word
                apart = Apply(ORDERS[expr.op][inner], (limit, bound), expr.type)
                return Apply("and" if expr.op == "eq" else "or", (self.bind(reached), self.bind(apart)), expr.type)
        return None

    # --- operands and digits ----------------------------------------------------------------------------------------------

    def operation(self, expr: Expr) -> Apply | None:
        return self.operations.get(expr.var) if isinstance(expr, Ref) else None

    def value(self, expr: Expr) -> int | None:
        """The constant value of an integer; None where its range has several."""
        low, high = self.ranges.range(expr)
        return low if low == high else None

    def positive(self, expr: Expr) -> int:
        """The constant value of a divisor; 0 where it is unknown or not above 0."""
        return max(self.value(expr) or 0, 0)

    def multiple(self, expr: Expr) -> tuple[Expr, int] | None:
        """The factors of a product with a constant above 0; None for other expressions."""
        match self.operation(expr):
            case Apply(op="mul", args=(x, y)):
                if n := self.positive(y):
                    return x, n
                if n := self.positive(x):
                    return y, n
        return None

    def is_quotient(self, expr: Expr, x: Expr, n: int) -> bool:
        """Return whether an expression is x / n, possibly as one division of the dividend of x."""
        match self.operation(expr), self.operation(x):
            case Apply(op="div", args=(dividend, by)), _ if dividend == x and self.value(by) == n:
                return True
            case Apply(op="div", args=(dividend, by)), Apply(op="div", args=(inner, first)) if inner == dividend:
                return self.positive(first) > 0 and self.value(by) == self.positive(first) * n
        return False

    def digits(self, expr: Expr) -> Digits | None:
        """A sum or a product as digits; None where it has none."""
        match self.operation(expr):
            case Apply(op="mul"):
                return self.digit_sum(expr, constant(0, expr.type.dtype))
            case Apply(op="add", args=(x, y)):
                return self.digit_sum(x, y) or self.digit_sum(y, x)
        return None

    def digit_sum(self, product: Expr, low: Expr) -> Digits | None:
        factors = self.multiple(product)
        if factors is None or factors[0].type != product.type:
            return None
        high, base = factors
        upper, lower = self.ranges.range(high), self.ranges.range(low)
        most = interval("mul", [upper, (base, base)], product.type.dtype)[1] + lower[1]
        inside = upper[0] >= 0 and lower[0] >= 0 and lower[1] < base
        return Digits(high, base, low) if inside and fits((0, most), product.type.dtype) else None

    def apply(self, op: str, x: Expr, n: int) -> Expr:
        """An operation with a constant, simplified."""
        number = constant(n, x.type.dtype)
        folded = fold(OPS[op], (x, number), (x.type, x.type), x.type)
        result = self.simpler(Apply(op, (x, number), x.type)) if folded is None else folded
        return self.bind(result) if isinstance(result, Apply) else result


# the order that equality with a limit is, by operation
ORDERS = {"eq": {"min": "ge", "max": "le"}, "ne": {"min": "lt", "max": "gt"}}
RULES: dict[str, Callable[[IntegerRules, Expr, Expr], Expr | None]] = {
    "div": IntegerRules.quotient,
    "mod": IntegerRules.rest,
    "add": IntegerRules.total,
    "sub": IntegerRules.difference,
    "min": IntegerRules.least,
    "max": IntegerRules.greatest,
    "and": IntegerRules.masked,
}
