"""Symbolic bounds of integers at a statement of a lowered kernel: ranges, and linear sums under the enclosing conditions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from gpuop.ir import nodes as ir
from gpuop.ir.analysis.intervals import LIMITS, Range, interval
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import INT, LONG, UINT, ULONG
from gpuop.ir.visit import operands, walk
from gpuop.passes.linear_sums import Key, Opaque, Sum, common
from gpuop.passes.ranges import Ranges, fits

DEEP = 4  # nested selections whose conditions are used, and bounds that one sum is combined with
DEEPEST = 7  # the same, for the proof of a given bound
NEVER = -(1 << 80)
TRIED = 3000  # limit of sums for one bound: columns beyond the edges of strips need some 1,000
WIDE = (INT, LONG)
WORDS = (UINT, ULONG)
FLIPPED = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}


class SymbolicBounds(Ranges):
    """Ranges, narrowed by the conditions of enclosing statements. Mutable variables and arrays have the range of all their values.

    Attributes:
        values: the values of immutable variables.
        narrowed: ranges of variables and positions, where a condition narrows them.
        limits: sums that are at most 0.
        either: groups of conditions of which at least one holds, or does not.
    """

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.values: dict[ir.Var, ir.Expr] = {}
        self.narrowed: dict[Key, Range] = {}
        self.limits: list[Sum] = []
        self.cached: dict[ir.Var, Range] = {}
        self.operands: dict[Key, list[ir.Var]] = {}  # variables whose values have a key as an operand
        self.users: dict[Key, set[Key]] = {}  # a key, and all variables whose ranges depend on its range
        self.positions: dict[tuple[str, str], Range] = {}
        self.sums: dict[ir.Var, Sum] = {}
        self.depth = self.tried = 0
        self.either: tuple[tuple[tuple[ir.Expr, ...], bool], ...] = ()
        # the values that may be assigned to variables and arrays that change; None: any
        self.assigned: dict[ir.Var | ir.Array, list[ir.Expr] | None] = {}
        for stmt in walk(kernel.body):
            self._note(stmt)

    def _note(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.Let(var=var, value=value) | ir.Assign(var=var, value=value) if value.type.kind in "iub":
                if not var.mutable:
                    self.values[var] = value
                    self._note_uses(var, (value,))
                elif (values := self.assigned.setdefault(var, [])) is not None:
                    values.append(value)
            case ir.Store(memory=ir.Array() as array, value=value) if value.type.kind in "iu":
                if (values := self.assigned.setdefault(array, [])) is not None:
                    values.append(value)
            case ir.Wide(array=array, loads=True) | ir.Atomic(memory=ir.Array() as array):
                self.assigned[array] = None
            case ir.For():
                self.by_var[stmt.var] = LIMITS[INT]

    def _note_uses(self, var: ir.Var, parts: tuple[ir.Expr, ...]) -> None:
        for part in parts:
            if isinstance(part, ir.Ref):
                self.operands.setdefault(part.var, []).append(var)
            elif isinstance(part, ir.Index):
                self.operands.setdefault((part.kind, part.axis), []).append(var)
            elif not isinstance(part, ir.Const):
                self._note_uses(var, operands(part))

    def _forget(self, key: Key) -> None:
        """Drop the ranges that depend on that of a key, which has been narrowed."""
        if key not in self.users:
            users, pending = set[Key](), [key]
            while pending:
                if (user := pending.pop()) not in users:
                    users.add(user)
                    pending += self.operands.get(user, ())
            self.users[key] = users
        for var in self.cached.keys() & self.users[key]:
            del self.cached[var]

    # --- conditions -------------------------------------------------------------------------------------------------

    @contextmanager
    def under(self, cond: ir.Expr, holds: bool) -> Iterator[None]:
        """Assume that a condition holds, or does not."""
        before, either = (self.narrowed, self.limits, self.cached), self.either
        self.narrowed, self.limits, self.cached = dict(before[0]), list(before[1]), dict(before[2])
        self._suppose(cond, holds)
        yield
        (self.narrowed, self.limits, self.cached), self.either = before, either

    @contextmanager
    def turning(self, loop: ir.For) -> Iterator[None]:
        """Assume the bounds of the counter in a loop."""
        self.by_var[loop.var] = self.counter(loop)
        before = self.narrowed, self.limits, self.cached
        self.narrowed, self.limits, self.cached = dict(before[0]), list(before[1]), dict(before[2])
        self._forget(loop.var)
        counter, step = ir.Ref(loop.var), self.range(loop.step)
        if step[0] > 0:
            self._at_most(counter, loop.stop, -1)
            self._at_last(loop, step)
            self._at_most(loop.start, counter, 0)
        elif step[1] < 0:
            self._at_most(loop.stop, counter, -1)
            self._at_most(counter, loop.start, 0)
        yield
        self.narrowed, self.limits, self.cached = before

    def _at_last(self, loop: ir.For, step: Range) -> None:
        """Assume the last value of the counter, where its distance from the end is known."""
        if step[0] != step[1]:
            return
        by, start = step[0], self.sum(loop.start)
        far = self.sum(loop.stop).plus(start, -1)
        if not far.terms and far.constant > 0:
            limit = Sum({loop.var: 1}).plus(start, -1)
            self._limit(Sum(limit.terms, limit.constant - (far.constant - 1) // by * by))
        first, end = self._rest(start, by), self._rest(self.sum(loop.stop), by)
        if by > 1 and first is not None and end is not None:
            self._at_most(ir.Ref(loop.var), loop.stop, -((end - first) % by or by))

    def _rest(self, whole: Sum, by: int) -> int | None:
        """The remainder of a sum divided by a number; None where it is unknown."""
        rest = whole.constant
        for key, n in whole.terms.items():
            if n % by:
                value = self.values.get(key) if isinstance(key, ir.Var) else None
                if not isinstance(value, ir.Apply) or value.op not in ("min", "max", "choose"):
                    return None
                rests = {self._rest(self.sum(arm), by) for arm in value.args[value.op == "choose" :]}
                remainder = rests.pop()
                if rests or remainder is None:
                    return None
                rest += n * remainder
        return rest % by

    def _suppose(self, cond: ir.Expr, holds: bool) -> None:
        match cond:
            case ir.Ref(var=var) if var in self.values:
                self._suppose(self.values[var], holds)
            case ir.Apply(op="not", args=(one,)):
                self._suppose(one, not holds)
            case ir.Apply(op="and", args=args) if holds and cond.type.kind == "b":
                for one in args:
                    self._suppose(one, True)
            case ir.Apply(op="or", args=args) if not holds and cond.type.kind == "b":
                for one in args:
                    self._suppose(one, False)
            case ir.Apply(op="or") | ir.Apply(op="and") if cond.type.kind == "b":
                self.either = (*self.either, (cond.args, holds))
            case ir.Apply(op=op, args=(a, b)) if op in FLIPPED and a.type.kind in "iu":
                self._compare(op if holds else FLIPPED[op], a, b)

    def _compare(self, op: str, a: ir.Expr, b: ir.Expr) -> None:
        signed = self._signed(a)
        if signed is not None and op in ("lt", "le"):  # an integer below 0 is a large number
            low, high = self.range(b)
            if low >= 0 and high <= LIMITS[INT][1]:
                self._at_most(ir.Const(0, signed.type), signed, 0)
                self._at_most(signed, ir.Const(high, signed.type), -1 if op == "lt" else 0)
        if op in ("gt", "ge"):
            op, a, b = {"gt": "lt", "ge": "le"}[op], b, a
        if op in ("lt", "eq", "le"):
            self._at_most(a, b, -1 if op == "lt" else 0)
        if op == "eq":
            self._at_most(b, a, 0)

    def _signed(self, expr: ir.Expr) -> ir.Expr | None:
        """The signed integer that an expression converts to unsigned; None for others."""
        expr = self._value(expr)
        if isinstance(expr, ir.Cast) and expr.type.dtype in WORDS and expr.arg.type.dtype in WIDE:
            return expr.arg
        return None

    def _at_most(self, a: ir.Expr, b: ir.Expr, by: int) -> None:
        """Assume a ≤ b + by."""
        low, high = self.range(a)[0], self.range(b)[1]
        self._narrow(a, (low, high + by))
        self._narrow(b, (low - by, high))
        limit = self.sum(a).plus(self.sum(b), -1)
        self._limit(Sum(limit.terms, limit.constant - by))
        for side, op in ((a, "max"), (b, "min")):  # the greater one of two is at most so much: so are both
            value = self._value(side)
            if isinstance(value, ir.Apply) and value.op == op:
                for arm in value.args:
                    self._at_most(*((arm, b) if op == "max" else (a, arm)), by)
            elif isinstance(value, ir.Apply) and value.op in ("min", "max"):  # one of both is: that which can be
                for arm, other in (value.args, value.args[::-1]):
                    if op == "max" and self.range(other)[0] > high + by:
                        self._at_most(arm, b, by)
                    elif op == "min" and self.range(other)[1] < low - by:
                        self._at_most(a, arm, by)

    def _limit(self, limit: Sum) -> None:
        """Assume that a sum is at most 0, which limits each term by the others."""
        self.limits.append(limit)
        ends = {key: self.extremes(key) for key in limit.terms}
        least = limit.constant + sum(n * ends[key][n < 0] for key, n in limit.terms.items())
        for key, n in limit.terms.items():
            if isinstance(key, Opaque):
                continue
            low, high = ends[key]
            room = n * (low if n > 0 else high) - least
            narrowed = (low, min(high, room // n)) if n > 0 else (max(low, -(room // -n)), high)
            if narrowed != (low, high):
                self.narrowed[key] = narrowed
                self._forget(key)
                self._narrow_arms(key, narrowed, (low, high))

    def _narrow_arms(self, key: Key, to: Range, before: Range) -> None:
        """Narrow the operands of a minimum or maximum by its range."""
        value = self.values.get(key) if isinstance(key, ir.Var) else None
        if isinstance(key, ir.Var) and isinstance(value, ir.Apply) and value.op in ("min", "max"):
            if to[0] > before[0]:
                self._at_most(ir.Const(to[0], value.type), ir.Ref(key), 0)
            if to[1] < before[1]:
                self._at_most(ir.Ref(key), ir.Const(to[1], value.type), 0)

    def _narrow(self, expr: ir.Expr, to: Range) -> None:
        if isinstance(expr, ir.Ref) and not expr.var.mutable:
            low, high = self.range(expr)
            narrowed = max(low, to[0]), min(high, to[1])
            if narrowed != (low, high):
                self.narrowed[expr.var] = narrowed
                self._forget(expr.var)

    # --- ranges -----------------------------------------------------------------------------------------------------

    def exact(self, expr: ir.Expr) -> Range:
        match expr:
            case ir.Ref(var=var):
                bounds = self.cached.get(var)
                if bounds is None:
                    bounds = self.cached[var] = self._of(var)
                return bounds
            case ir.Const(value=value):
                return int(value), int(value)
            case ir.Apply():
                return self.result(expr)
            case ir.Index(kind=kind, axis=axis, offset=offset):
                if (kind, axis) not in self.positions:
                    self.positions[kind, axis] = self.kernel.bounds(ir.Index(kind, axis))
                low, high = self.positions[kind, axis]
                bounds = self.narrowed.get((kind, axis), (low, high))
                return max(low, bounds[0]) + offset, min(high, bounds[1]) + offset
            case ir.Cast(arg=arg, type=kind) if kind.dtype in WIDE and (signed := self._unwrapped(arg)):
                bounds = self.range(arg)
                return bounds if fits(bounds, kind.dtype) else signed
            case ir.Load(memory=ir.Array(space="private" | "local") as array) if (
                expr.type.kind in "iu" and expr.type.lanes == 1
            ):
                return self._all_values(array)
        return super().exact(expr)

    def result(self, expr: ir.Apply) -> Range:
        match expr.op, expr.args:
            case "choose", (cond, a, b) if expr.type.kind in "iu" and self.depth < DEEP:
                return self._chosen(cond, a, b)
            case "sub", (a, b) if self._rounds_down(a, b):
                low, high = self.range(a)
                mask = self.range(b)[1]
                return (low & ~mask, high & ~mask) if low >= 0 else (low - mask, high)
            case "hidden", (a,):
                return self.range(a)
            case "xor", (a, b) if expr.type.kind == "i" and self.range(b) == (-1, -1):
                low, high = self.range(a)
                return -1 - high, -1 - low
            case "and", (a, b) if expr.type.kind == "i":
                masks = [high for low, high in map(self.range, (a, b)) if low >= 0]
                return (0, min(masks)) if masks else LIMITS[expr.type.dtype]
        return super().result(expr)

    def _of(self, var: ir.Var) -> Range:
        if var in self.values:
            bounds = self.range(self.values[var])
        elif var.mutable:
            return self._all_values(var)
        else:
            bounds = self.by_var.get(var, LIMITS[var.type.dtype])
        low, high = self.narrowed.get(var, bounds)
        return max(low, bounds[0]), min(high, bounds[1])

    def _all_values(self, what: ir.Var | ir.Array) -> Range:
        """The range of all values that are anywhere assigned to a mutable variable, or stored to an array."""
        values, kind = self.assigned.get(what), what.type.dtype
        if not values:
            return LIMITS[kind]
        before = self.narrowed, self.limits, self.cached
        self.narrowed, self.limits, self.cached = {}, [], {}
        self.assigned[what] = None  # values that depend on themselves are unbounded
        ranges = [self.range(value) for value in values]
        self.assigned[what] = [
            ir.Const(low, what.type) for low in (min(low for low, _ in ranges), max(high for _, high in ranges))
        ]
        self.narrowed, self.limits, self.cached = before
        return min(low for low, _ in ranges), max(high for _, high in ranges)

    def _chosen(self, cond: ir.Expr, a: ir.Expr, b: ir.Expr) -> Range:
        self.depth += 1
        ranges = list[Range]()
        for arm, holds in ((a, True), (b, False)):
            with self.under(cond, holds):
                low, high = self.range(arm)
            if low <= high:  # else the arm is never selected
                ranges.append((low, high))
        self.depth -= 1
        return (min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else (0, 0)

    def _value(self, expr: ir.Expr) -> ir.Expr:
        while isinstance(expr, ir.Ref) and expr.var in self.values:
            expr = self.values[expr.var]
        return expr

    def _unwrapped(self, expr: ir.Expr) -> Range | None:
        """The range, as if it could not overflow, of arithmetic on signed integers converted to unsigned; None for others."""
        value = self._value(expr)
        if not isinstance(value, ir.Apply) or value.op not in ("add", "sub", "mul") or value.type.dtype not in WORDS:
            return None
        args = [self._signed(arg) or self._value(arg) for arg in value.args]
        if not all(arg.type.dtype in WIDE or isinstance(arg, ir.Const) for arg in args):
            return None
        return interval(value.op, [self.range(arg) for arg in args], LONG)

    def _rounds_down(self, a: ir.Expr, b: ir.Expr) -> bool:
        """Return whether a - b rounds a down to a multiple of a power of two."""
        masked = self._value(b)
        if not (isinstance(masked, ir.Apply) and masked.op == "and" and isinstance(masked.args[1], ir.Const)):
            return False
        mask = int(masked.args[1].value)
        same = self.sum(a).plus(self.sum(masked.args[0]), -1)
        return mask >= 0 and mask & (mask + 1) == 0 and not same.terms and same.constant == 0

    # --- sums -------------------------------------------------------------------------------------------------------

    def extremes(self, key: Key) -> Range:
        match key:
            case Opaque(range=bounds):
                return bounds
            case ir.Var():
                return self.exact(ir.Ref(key))
        return self.exact(ir.Index(*key))

    def sum(self, expr: ir.Expr) -> Sum:
        """The expression as a linear sum."""
        match expr:
            case ir.Const(value=value) if expr.type.kind in "iu":
                return Sum({}, int(value))
            case ir.Stride(field=field, what=what, value=value) if field not in self.open or what == "tensorElements":
                return Sum({}, value)
            case ir.Index(kind=kind, axis=axis, offset=offset):
                return Sum({(kind, axis): 1}, offset)
            case ir.Ref(var=var) if not var.mutable:
                if var not in self.sums:
                    linear = self._linear(self.values[var]) if var in self.values else None
                    self.sums[var] = Sum({var: 1}) if linear is None else linear
                return self.sums[var]
        return self._linear(expr) or Sum({Opaque(self.range(expr)): 1})

    def _linear(self, expr: ir.Expr) -> Sum | None:
        match expr:
            case ir.Const() | ir.Stride() | ir.Index() | ir.Ref(var=ir.Var(mutable=False)):
                return self.sum(expr) if not isinstance(expr, ir.Stride) or expr.field not in self.open else None
            case ir.Apply(op="add" | "sub" as op, args=(a, b)) if expr.type.dtype in WIDE:
                return self.sum(a).plus(self.sum(b), 1 if op == "add" else -1)
            case ir.Apply(op="neg", args=(a,)) if expr.type.dtype in WIDE:
                return self.sum(a).times(-1)
            case ir.Apply(op="hidden", args=(a,)) if expr.type.dtype in WIDE:
                return self.sum(a)
            case ir.Apply(op="xor", args=(a, b)) if expr.type.dtype in WIDE and self.range(b) == (-1, -1):
                return Sum({}, -1).plus(self.sum(a), -1)
            case ir.Apply(op="mul", args=(a, b)) if expr.type.dtype in WIDE:
                x, y = self.sum(a), self.sum(b)
                return x.times(y.constant) if not y.terms else y.times(x.constant) if not x.terms else None
            case ir.Apply(op="shl", args=(a, ir.Const(value=n))) if expr.type.dtype in WIDE:
                return self.sum(a).times(1 << int(n))
            case ir.Cast(arg=arg, type=kind) if kind.dtype is LONG and arg.type.dtype is INT:
                return self.sum(arg)
        return None

    def bounds(self, expr: ir.Expr) -> Range:
        """The range of an integer, from ranges and from limits of sums."""
        (low, high), whole = self.range(expr), self.sum(expr)
        self.tried = 0
        return max(low, -self.most(whole.times(-1), DEEP)), min(high, self.most(whole, DEEP))

    def is_within(self, expr: ir.Expr, low: int, high: int) -> bool:
        """Return whether an integer is proved to be in a range."""
        least, most = self.range(expr)
        if low <= least and most <= high:
            return True
        whole = self.sum(expr)
        return (low <= least or self._is_at_most(whole.times(-1), -low)) and (
            most <= high or self._is_at_most(whole, high)
        )

    def _is_at_most(self, whole: Sum, most: int) -> bool:
        for depth in range(DEEPEST + 1):  # simple proofs first
            self.tried = 0
            if self.most(whole, depth, most) <= most:
                return True
        return False

    def most(self, whole: Sum, depth: int, enough: int = NEVER) -> int:
        """An upper bound of a sum; the search ends at one that is `enough`."""
        self.tried += 1
        best = whole.constant
        for key, n in whole.terms.items():
            best += n * self.extremes(key)[n > 0]
        step = math.gcd(*whole.terms.values())
        if not step:
            return best
        if enough != NEVER:  # the greatest value that rounds down to it
            enough = whole.constant + (enough - whole.constant) // step * step + step - 1
        if best > enough and depth and self.tried < TRIED:
            best = self._better(whole, depth, best, enough)
        return whole.constant + (best - whole.constant) // step * step

    def _better(self, whole: Sum, depth: int, best: int, enough: int) -> int:
        for limit in (*self.limits, *self._of_operations(whole)):
            scale, times = common(whole, limit)
            if times:
                goal = enough if enough == NEVER else enough * scale + scale - 1
                best = min(best, self.most(whole.times(scale).plus(limit, -times), depth - 1, goal) // scale)
                if best <= enough:
                    return best
        for key, n in whole.terms.items():
            best = min(best, self._of_cases(whole, key, n, depth - 1, best, enough))
            if best <= enough:
                return best
        return best

    def _of_cases(self, whole: Sum, key: Key, n: int, depth: int, best: int, enough: int) -> int:
        """An upper bound of a sum by the two cases of a term that is a minimum, maximum, selection or absolute value."""
        value = self.values.get(key) if isinstance(key, ir.Var) else None
        if not isinstance(value, ir.Apply) or value.op not in ("min", "max", "choose", "abs") or self._may_stay(value):
            return best
        if (value.op == "min" and n > 0) or (value.op in ("max", "abs") and n < 0):
            return best
        rest = whole.plus(Sum({key: 1}), -n)
        arms = [self.sum(arm) for arm in value.args[value.op == "choose" :]]
        arms += [arms[0].times(-1)] if value.op == "abs" else []
        bounds: list[int] = []
        for arm, holds in zip(arms, (True, False), strict=True):
            with self.under(value.args[0], holds) if value.op == "choose" else nullcontext():
                bounds.append(self.most(rest.plus(arm, n), depth, enough))
                if bounds[-1] > enough != NEVER and len(arm.terms) > 1:
                    bounds[-1] = min(bounds[-1], self._apart(rest, arm, n, depth, enough))
            if bounds[-1] > enough != NEVER:
                return best
        return max(bounds)

    def _apart(self, rest: Sum, part: Sum, n: int, depth: int, enough: int) -> int:
        """An upper bound of a sum and n times a part of it, whose own bound is a whole number: quotients round down."""
        bound = self.most(part, depth) if n > 0 else -self.most(part.times(-1), depth)
        return self.most(Sum(rest.terms, rest.constant + n * bound), depth, enough)

    def _may_stay(self, value: ir.Apply) -> bool:
        """Return whether a value is the absolute value of a number that may be the least of its type, which has none."""
        return value.op == "abs" and self.range(value.args[0])[0] <= LIMITS[value.type.dtype][0]

    def _of_operations(self, whole: Sum) -> Iterator[Sum]:
        """The sums that are at most 0 because of the operations behind the terms of a sum."""
        for key in whole.terms:
            value = self.values.get(key) if isinstance(key, ir.Var) else None
            if not isinstance(value, ir.Apply) or value.op not in ("and", "mod", "div", "shr", "min", "max", "abs"):
                continue
            a, b = value.args[0], value.args[-1]
            own, first, natural = Sum({key: 1}), self.sum(a), self.range(a)[0] >= 0
            if value.op == "abs":
                yield from (first.plus(own, -1), first.times(-1).plus(own, -1)) if not self._may_stay(value) else ()
            elif value.op == "min":
                yield from (own.plus(first, -1), own.plus(self.sum(b), -1))
            elif value.op == "max":
                yield from (first.plus(own, -1), self.sum(b).plus(own, -1))
            elif natural and value.op in ("and", "mod"):
                yield own.plus(first, -1)
            elif isinstance(b, ir.Const) and (natural or value.op == "shr") and int(b.value) >= (value.op == "div"):
                by = 1 << int(b.value) if value.op == "shr" else int(b.value)
                over = own.times(by)
                yield over.plus(first, -1)
                yield Sum(first.plus(over, -1).terms, first.constant - by + 1)
