"""Double arithmetic on devices without it: pairs of floats in registers and arrays, the bits of doubles in fields."""

from __future__ import annotations

from dataclasses import replace

from gpuop.base.errors import DeviceError, Loc, located
from gpuop.ir import nodes as ir
from gpuop.ir.build import collector
from gpuop.ir.kernel import Kernel
from gpuop.ir.ops import OPS
from gpuop.ir.types import DOUBLE, FLOAT, ULONG, Type
from gpuop.ir.visit import expressions, map_values, values, walk
from gpuop.passes.float_pairs import BINARY, UNARY, Pair, PairArithmetic, pair_of

COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def double_as_pairs(kernel: Kernel) -> Kernel:
    """Replace double arithmetic where the target has none.

    Raises:
        DeviceError: there is a function of doubles that pairs do not have.
    """
    if kernel.target is None or kernel.target.has_fp64 or not has_doubles(kernel):
        return kernel
    return replace(kernel, body=_Pairs(kernel).block(kernel.body))


def has_doubles(kernel: Kernel) -> bool:
    """Return whether a kernel stores or computes doubles."""
    stored = any(param.type.storage is DOUBLE for param in (*kernel.inputs, *kernel.written, *kernel.intermediates))
    return stored or any(expr.type.dtype is DOUBLE for expr in expressions(kernel.body))


def _is_double(expr: ir.Expr) -> bool:
    return expr.type.dtype is DOUBLE


class _Pairs:
    """A copy of a body. Arrays that are loaded and stored as several neighbours of a field hold the bits of doubles, as it does."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.vars: dict[ir.Var, Pair] = {}
        wide = {stmt.array for stmt in walk(kernel.body) if isinstance(stmt, ir.Wide)}
        declared = [stmt.array for stmt in walk(kernel.body) if isinstance(stmt, ir.Declare)]
        doubles = [array for array in declared if array.type.dtype is DOUBLE]
        self.words = {array: replace(array, type=Type(ULONG)) for array in doubles if array in wide}
        self.arrays = {array: _of_pairs(array) for array in doubles if array not in wide}
        self.out: list[ir.Stmt] = []
        self.loc: Loc | None = None

    def block(self, block: ir.Block) -> ir.Block:
        outer, self.out = self.out, []
        for stmt in block:
            self.loc = stmt.loc
            self.math = PairArithmetic(collector(self.out, stmt.loc))
            self.stmt(stmt)
        body, self.out = tuple(self.out), outer
        self.math = PairArithmetic(collector(self.out, self.loc))
        return body

    # --- statements -------------------------------------------------------------------------------------------------

    def stmt(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.Let(var=var, value=value) if var.type.dtype is DOUBLE:
                self.let(var, self.pair(value))
            case ir.Assign(var=var, value=value) if var.type.dtype is DOUBLE:
                new = self.pair(value)
                high, low = (self.math.b.copy(part) for part in new.parts)
                targets = [part.var for part in self.vars[var].parts if isinstance(part, ir.Ref)]
                self.out += [ir.Assign(v, e, stmt.loc) for v, e in zip(targets, (high, low), strict=True)]
            case ir.Declare(array=array) if array in self.arrays or array in self.words:
                arrays = self.arrays[array] if array in self.arrays else (self.words[array],)
                self.out += [ir.Declare(each, stmt.loc) for each in arrays]
            case ir.Store(memory=memory, value=value) if _is_double(value):
                self.store(stmt, memory, self.pair(value))
            case ir.Wide(array=array, index=index, left=left):
                place = tuple(map(self.other, index))
                self.out.append(replace(stmt, array=self.words.get(array, array), index=place, left=left))
            case ir.Print(args=args):
                shown = tuple(self.pair(arg).high if _is_double(arg) else self.other(arg) for arg in args)
                self.out.append(replace(stmt, args=shown))
            case ir.If() | ir.For() | ir.While():
                self.nested(stmt)
            case _:
                if any(map(_is_double, values(stmt))) or (isinstance(stmt, ir.Atomic) and self.of_doubles(stmt.memory)):
                    self.refuse(f"`{stmt.word}`" if isinstance(stmt, ir.Collective) else "atomic operations")
                self.out.append(map_values(stmt, self.other))

    def let(self, var: ir.Var, pair: Pair) -> None:
        if not var.mutable:
            self.vars[var] = pair._replace(**{n: self.math.b.copy(e) for n, e in pair._asdict().items() if _changes(e)})
            return
        parts = [ir.Var(f"{var.hint}_{part}", Type(FLOAT), True, var.temporary) for part in ("high", "low")]
        self.out += [ir.Let(part, e, self.loc) for part, e in zip(parts, pair.parts, strict=True)]
        self.vars[var] = Pair(*map(ir.Ref, parts))

    def store(self, stmt: ir.Store, memory: ir.Array | ir.FieldParam, pair: Pair) -> None:
        index = tuple(map(self.other, stmt.index))
        if isinstance(memory, ir.Array) and memory in self.arrays:
            parts = zip(self.arrays[memory], pair.parts, strict=True)
            self.out += [ir.Store(array, index, e, stmt.loc) for array, e in parts]
            return
        words = self.words.get(memory, memory) if isinstance(memory, ir.Array) else memory
        self.out.append(ir.Store(words, index, self.math.to_bits(pair), stmt.loc))

    def nested(self, stmt: ir.If | ir.For | ir.While) -> None:
        match stmt:
            case ir.If(cond=cond, then=then, orelse=orelse):
                test = self.other(cond)
                self.out.append(replace(stmt, cond=test, then=self.block(then), orelse=self.block(orelse)))
            case ir.For(body=body):
                self.out.append(replace(stmt, body=self.block(body)))
            case ir.While(head=head, cond=cond, body=body):
                self.out.append(replace(stmt, head=self.block(head), cond=self.other(cond), body=self.block(body)))

    # --- expressions ------------------------------------------------------------------------------------------------

    def other(self, expr: ir.Expr) -> ir.Expr:
        """Return an expression of another type than double."""
        math = self.math
        match expr:
            case ir.Apply(op=op, args=args) if op in COMPARISONS and _is_double(args[0]):
                return math.compare(op, *map(self.pair, args))
            case ir.Cast(arg=arg, type=kind, saturate=saturate) if _is_double(arg):
                return math.to(self.pair(arg), kind.dtype, saturate)
            case ir.Bits(arg=arg, type=kind) if _is_double(arg):
                return math.b.bits(math.to_bits(self.pair(arg)), kind)
            case ir.Apply(op=op, args=args) if any(map(_is_double, args)):
                self.refuse(f"`{OPS[op].shown}`")
        return expr

    def pair(self, expr: ir.Expr) -> Pair:
        """Return an expression of double as a pair."""
        math = self.math
        match expr:
            case ir.Const(value=value):
                return pair_of(float(value))
            case ir.Ref(var=var):
                return self.vars[var]
            case ir.Cast(arg=arg):
                return math.of(arg)
            case ir.Bits(arg=arg):
                return math.of_bits(math.b.bits(arg, Type(ULONG)))
            case ir.Argument():
                return math.of_bits(math.b.copy(replace(expr, type=Type(ULONG))))
            case ir.Load(memory=memory, index=index):
                return self.load(memory, index)
            case ir.Apply(op=op, args=args):
                return self.applied(op, args)
        self.refuse("vectors")
        raise AssertionError

    def load(self, memory: ir.Array | ir.FieldParam, index: tuple[ir.Expr, ...]) -> Pair:
        bind = self.math.b.bind
        if isinstance(memory, ir.Array) and memory in self.arrays:
            return Pair(*(bind(ir.Load(array, index, Type(FLOAT))) for array in self.arrays[memory]))
        words = self.words.get(memory, memory) if isinstance(memory, ir.Array) else memory
        return self.math.of_bits(bind(ir.Load(words, index, Type(ULONG))))

    def applied(self, op: str, args: tuple[ir.Expr, ...]) -> Pair:
        math = self.math
        if op == "choose":
            return math.choose(self.other(args[0]), self.pair(args[1]), self.pair(args[2]))
        if op == "nan":
            return pair_of(float("nan"))
        if op == "ldexp":
            return Pair(*(math.apply(op, part, args[1]) for part in self.pair(args[0]).parts))
        pairs = [self.pair(arg) for arg in args if _is_double(arg)]
        if op in ("hidden", "loaded"):
            return Pair(*(math.apply(op, part) for part in pairs[0].parts))
        if op == "fma":
            return math.fma(*pairs)
        if op in BINARY:
            return BINARY[op](math, *pairs)
        if op in UNARY:
            return UNARY[op](math, *pairs)
        return self.refuse(f"`{OPS[op].shown}`")

    def of_doubles(self, memory: ir.Array | ir.FieldParam) -> bool:
        return memory.type.dtype is DOUBLE if isinstance(memory, ir.Array) else memory.type.storage is DOUBLE

    def refuse(self, what: str) -> Pair:
        message = (
            f"operator `{self.kernel.name}` computes {what} of double, which {self.kernel.machine} lacks and pairs of floats "
            "do not have; use float32, or let another branch of `_codegenIf(_target.has_fp64)` do without"
        )
        raise DeviceError(located(message, self.loc))


def _changes(expr: ir.Expr | None) -> bool:
    return isinstance(expr, ir.Ref) and expr.var.mutable


def _of_pairs(array: ir.Array) -> tuple[ir.Array, ir.Array]:
    """Return the arrays of the first and of the second floats."""
    pairs = [pair_of(float(value)).parts for value in array.values]
    columns = zip(*pairs, strict=True) if pairs else ((), ())
    numbers = [tuple(part.value for part in column if isinstance(part, ir.Const)) for column in columns]
    high, low = (
        replace(array, hint=f"{array.hint}_{part}", type=Type(FLOAT), values=values)
        for part, values in zip(("high", "low"), numbers, strict=True)
    )
    return high, low
