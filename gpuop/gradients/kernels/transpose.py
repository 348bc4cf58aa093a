"""Transposition of a body: from the last write to the first statement, cotangents of values add up in the order of the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpuop.base.errors import Loc, SemanticError
from gpuop.base.records import dataclass
from gpuop.gradients.kernels.loops import (
    MOST_BYTES,
    Carried,
    carried_by,
    count_of,
    iterations,
    joins_of,
    needed,
    reloaded,
    storing,
)
from gpuop.gradients.kernels.places import Site, Sites
from gpuop.gradients.kernels.shares import Cotangents, Key, Share, conjugate, converted, lane_of, masked, zero
from gpuop.ir import nodes as ir
from gpuop.ir.borders import Coordinate, place
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.derivatives import Zero, partial, times
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import INT, SMALL_TENSOR, Type
from gpuop.ir.visit import Copier, blocks, bound, expressions, map_blocks, operands, values, walk, walk_expr


@dataclass(frozen=True, eq=False)
class Transposed:
    """The body of an adjoint: what each thread adds to the places that it has read.

    Attributes:
        kernel: the kernel that it is the adjoint of, in single assignment.
        body: the statements of both.
        shares: the share of a thread for each place, in the order of the text.
        linear: the fields that shares are 0 where they are 0: cotangents, and what is kept of them.
        factored: whether cotangents are the last factors of shares.
        scatters: for fields that are read at computed places, those that the body writes their shares to.
    """

    kernel: Kernel
    body: ir.Block
    shares: Mapping[Site, ir.Expr]
    linear: frozenset[ir.FieldParam]
    factored: bool
    scatters: Mapping[ir.FieldParam, ir.FieldParam]


def transposed(
    kernel: Kernel,
    cotangents: Mapping[ir.FieldParam, ir.FieldParam],
    wanted: frozenset[ir.FieldParam],
    factored: bool = True,
) -> Transposed:
    """Transpose a kernel in single assignment.

    Args:
        cotangents: the fields of the cotangents of outputs.
        wanted: the inputs whose cotangents are wanted.
        factored: whether cotangents are to be the last factors of shares, where they can be.

    Raises:
        SemanticError: there is no derivative of what stands between a wanted input and an output, at its line.
    """
    return _Transposition(kernel, cotangents, wanted, factored).result()


class _Transposition:
    def __init__(
        self,
        kernel: Kernel,
        cotangents: Mapping[ir.FieldParam, ir.FieldParam],
        wanted: frozenset[ir.FieldParam],
        factored: bool,
    ) -> None:
        self.kernel, self.cotangents, self.wanted = kernel, cotangents, wanted
        self.sites = Sites(kernel)
        self.varied = varied(kernel.body, wanted)
        self.line: Loc | None = None
        self.alone = self.only_write() if factored else None
        self.factor: ir.Expr | None = None
        self.scatters: dict[ir.FieldParam, ir.FieldParam] = {}
        self.carried: dict[int, list[Carried]] = {}  # by the loop
        self.arrays: dict[ir.Array, ir.Array] = {}

    def result(self) -> Transposed:
        out: list[ir.Stmt] = []
        bars = Cotangents()
        if self.alone is not None:
            self.factor = self.cotangent(self.alone, collector(out, self.alone.loc))
        self.block(self.kernel.body, bars, out)
        sites = [self.sites.site(e) for e in expressions(self.kernel.body) if isinstance(e, ir.Read)]
        shares: dict[Site, ir.Expr] = {}
        for site in map(_whole, sites):
            share = bars.take(site, _type_of(site), collector(out))
            if share is not None:
                b = collector(out)
                shares[site] = self.complete(share, site.field, site.element is not None, b)
        linear = frozenset(self.cotangents.values())
        out = [*self.primal(self.kernel.body), *map(ir.Declare, self.arrays.values()), *out]
        return Transposed(self.kernel, tuple(out), shares, linear, self.alone is not None, self.scatters)

    def primal(self, block: ir.Block) -> ir.Block:
        """The statements that compute values: no writes, nothing for people, loops with what their adjoints need of iterations."""
        out: list[ir.Stmt] = []
        for stmt in block:
            if not isinstance(stmt, (ir.Write, ir.Print, ir.Assert, ir.Comment)):
                mapped = map_blocks(stmt, self.primal)
                carried = self.carried.get(id(stmt), [])
                out += storing(mapped, carried) if carried and isinstance(mapped, ir.For) else (mapped,)
        return tuple(out)

    def complete(self, share: Share, field: ir.FieldParam, own: bool, b: Builder) -> ir.Expr:
        """A share with the factor that all have, where its conditions hold."""
        value = share.value
        if self.factor is not None:
            value = times(b, value, b.cast(self.factor, value.type))
        return conjugate(b, field, masked(b, value, share.guard), own)

    def only_write(self) -> ir.Write | None:
        """The only write with a cotangent, where that is of one number: shares are slopes, times the cotangent at last.

        Slopes are then the same for a point and its neighbours, whose cotangents differ.
        """
        writes = [s for s in walk(self.kernel.body) if isinstance(s, ir.Write) and s.field in self.cotangents]
        if len(writes) == 1 and writes[0] in self.kernel.body and writes[0].value.type.lanes == 1:
            return writes[0]
        return None

    def block(self, block: ir.Block, bars: Cotangents, out: list[ir.Stmt]) -> None:
        for stmt in reversed(block):
            self.line, self.out = getattr(stmt, "loc", None) or self.line, out
            self.stmt(stmt, bars, out)

    def stmt(self, stmt: ir.Stmt, bars: Cotangents, out: list[ir.Stmt]) -> None:
        b = collector(out, getattr(stmt, "loc", None))
        match stmt:
            case ir.Let(var=var, value=value) | ir.Assign(var=var, value=value):
                share = bars.take(var, var.type, b)
                if share is not None:
                    self.value(value, ir.Ref(var), share, bars, b)
            case ir.Write():
                self.write(stmt, bars, b)
            case ir.If():
                self.check_arrays(stmt)
                self.branches(stmt, bars, out)
            case ir.For():
                self.check_arrays(stmt)
                self.loop(stmt, bars, out)
            case ir.Store(memory=ir.Array() as memory) if memory in self.varied:
                self.store(stmt, memory, bars, b)
            case ir.Declare() | ir.Print() | ir.Assert() | ir.Comment():
                pass
            case _:
                self.check_inactive(stmt, bars)

    def check_inactive(self, stmt: ir.Stmt, bars: Cotangents) -> None:
        """Refuse a statement that cotangents would have to pass."""
        for each in walk((stmt,)):
            var = getattr(each, "var", None)
            memory = isinstance(each, ir.Store) and any(e.var in self.varied for e in _refs(each.value))
            if var in bars or memory or isinstance(each, ir.Write):
                raise self.refusal(WITHOUT.get(type(stmt), f"a {type(stmt).__name__}"), stmt.loc)

    def refusal(self, what: str, loc: Loc | None = None) -> SemanticError:
        return SemanticError(
            f"`{self.kernel.name}` has no gradient: {what}; give the operator a rule of its own, or pass "
            "`gp.stop_gradient(x)` for what is a constant",
            loc or self.line or self.kernel.loc,
        )

    # --- values -------------------------------------------------------------------------------------------------

    def add(self, to: ir.Expr, share: Share, bars: Cotangents) -> None:
        if isinstance(to, ir.Ref) and to.var in self.varied:
            bars.add(to.var, share)

    def value(self, expr: ir.Expr, result: ir.Expr, bar: Share, bars: Cotangents, b: Builder) -> None:
        match expr:
            case ir.Ref():
                self.add(expr, bar, bars)
            case ir.Apply():
                self.operation(expr, result, bar, bars, b)
            case ir.Bits(arg=arg) | ir.Cast(arg=arg) if self.is_varied(arg):
                if isinstance(expr, ir.Bits) or arg.type.kind != "f":
                    raise self.refusal("the bits of a number have no derivative; write the function that is meant")
                self.add(arg, converted(b, bar, arg.type), bars)
            case ir.Lane(arg=arg, lane=lane):
                self.add(arg, replace(bar, lane=lane), bars)
            case ir.Pack(args=args):
                self.pack(args, bar, bars, b)
            case ir.Read() if expr.field in self.wanted:
                self.read(expr, bar, bars, b)
            case ir.Load(memory=ir.Array() as memory) if memory in self.varied:
                self.load(expr, memory, bar, b)
            case _:
                self.check_constant(expr)

    def pack(self, args: Sequence[ir.Expr], bar: Share, bars: Cotangents, b: Builder) -> None:
        for lane, arg in enumerate(args):
            self.add(arg, lane_of(b, bar, lane), bars)

    def check_constant(self, expr: ir.Expr) -> None:
        """Refuse what no rule is for, if it depends on a wanted input."""
        if any(map(self.is_varied, operands(expr))):
            raise self.refusal(f"there is no rule for a {type(expr).__name__}")

    def is_varied(self, expr: ir.Expr) -> bool:
        return isinstance(expr, ir.Ref) and expr.var in self.varied

    def operation(self, expr: ir.Apply, result: ir.Expr, bar: Share, bars: Cotangents, b: Builder) -> None:
        for n, arg in enumerate(expr.args):
            if not self.is_varied(arg):
                continue
            slope = partial(b, expr.op, expr.args, result, n)
            if isinstance(slope, Zero):
                continue
            if slope.type.kind == "b":
                self.add(arg, replace(bar, guard=(*bar.guard, slope)), bars)
            else:
                self.add(arg, replace(bar, value=times(b, slope, bar.value)), bars)

    def read(self, read: ir.Read, bar: Share, bars: Cotangents, b: Builder) -> None:
        site = self.sites.site(read)
        if site.point is None or site.element == "computed":
            return self.scatter(read, bar, b)
        whole = _whole(site)
        bars.add(whole, replace(bar, lane=site.element) if isinstance(site.element, int) and whole != site else bar)

    def scatter(self, read: ir.Read, bar: Share, b: Builder) -> None:
        """Write a share to the place that was read, for `scatter.py` to add up."""
        field = read.field
        target = self.scatters.setdefault(field, ir.FieldParam(f"{field.hint}_bar", field.type))
        value = self.complete(bar, field, read.element is not None, b)
        point = self.sites.own(read) if read.point is None else read.point
        along = zip(point, field.type.field_shape, strict=True)
        if read.border not in ("fill", "unchecked"):
            point = tuple(place(b, Coordinate(at, constant(n, INT), n, None, None), read.border) for at, n in along)
        self.out.append(ir.Write(target, value, point, read.element, self.line))

    def write(self, write: ir.Write, bars: Cotangents, b: Builder) -> None:
        if write is self.alone:
            self.add(write.value, Share(constant(1, write.value.type.dtype)), bars)
        elif write.field in self.cotangents and self.is_varied(write.value):
            self.add(write.value, Share(self.cotangent(write, b)), bars)

    def cotangent(self, write: ir.Write, b: Builder) -> ir.Expr:
        """The cotangent of what is written."""
        kind = write.value.type
        border = () if write.point is None else ("fill", zero(kind))
        read = ir.Read(self.cotangents[write.field], kind, write.point, write.element, *border)
        return conjugate(b, write.field, b.bind(read), write.element is not None)

    # --- branches -----------------------------------------------------------------------------------------------

    def branches(self, stmt: ir.If, bars: Cotangents, out: list[ir.Stmt]) -> None:
        """The adjoint of a branch is a branch by the same condition; what it adds to values from before it goes into variables."""
        joins = dict.fromkeys(s.var for block in blocks(stmt) for s in block if isinstance(s, ir.Assign))
        b = collector(out, stmt.loc)
        ends = {join: bars.take(join, join.type, b) for join in joins if join in bars}
        arms = [self.arm(block, ends) for block in blocks(stmt)]
        if not any(added or inner for added, inner in arms):
            return
        shared: dict[Key, ir.Var] = {}
        for key in dict.fromkeys(key for _, inner in arms for key in inner):
            kind = key.type if isinstance(key, ir.Var) else _type_of(key)
            shared[key] = ir.Var(f"{_hint(key)}_bar", kind, mutable=True, temporary=True)
            out.append(ir.Let(shared[key], b.cast(zero(kind), kind), stmt.loc))
        then, orelse = (
            self.closed(block, arm, shared, stmt.loc) for block, arm in zip(blocks(stmt), arms, strict=True)
        )
        out.append(replace(stmt, then=then, orelse=orelse))
        for key, var in shared.items():
            bars.add(key, Share(ir.Ref(var)))

    def arm(self, block: ir.Block, ends: Mapping[ir.Var, Share | None]) -> tuple[list[ir.Stmt], Cotangents]:
        inner, out = Cotangents(), list[ir.Stmt]()
        for join, share in ends.items():
            if share is not None:
                inner.add(join, share)
        self.block(block, inner, out)
        return out, inner

    def closed(
        self, block: ir.Block, arm: tuple[list[ir.Stmt], Cotangents], shared: Mapping[Key, ir.Var], loc: Loc | None
    ) -> ir.Block:
        """The statements of an arm: those of the branch, and their adjoint, which ends in the variables."""
        out, inner = arm
        b = collector(out, loc)
        for key, var in shared.items():
            share = inner.take(key, var.type, b)
            if share is not None:
                out.append(ir.Assign(var, masked(b, share.value, share.guard), loc))
        before = tuple(s for s in self.primal(block) if not isinstance(s, ir.Assign))
        return Copier((*before, *out)).copy()

    # --- loops --------------------------------------------------------------------------------------------------

    def loop(self, stmt: ir.For, bars: Cotangents, out: list[ir.Stmt]) -> None:
        """The adjoint of a loop runs from its last iteration to the first, and computes again what that needs."""
        b = collector(out, stmt.loc)
        joins = {join: bars.take(join, join.type, b) for join in joins_of(stmt) if join in self.varied}
        carry = {join: ir.Var(f"{join.hint}_bar", join.type, True, True) for join in joins}
        first: list[ir.Stmt] = []
        inner, added = Cotangents(), list[ir.Stmt]()
        for join, var in carry.items():
            share = joins[join]
            start = b.cast(zero(var.type), var.type) if share is None else masked(b, share.value, share.guard)
            out.append(ir.Let(var, start, stmt.loc))
            inner.add(join, Share(collector(first, stmt.loc).copy(ir.Ref(var))))
        self.block(stmt.body, inner, added)
        ends = collector(added, stmt.loc)
        for join, var in carry.items():
            share = inner.take(join, join.type, ends)
            end = ends.cast(zero(var.type), var.type) if share is None else masked(ends, share.value, share.guard)
            added.append(ir.Assign(var, end, stmt.loc))
        for key in [*inner]:
            self.total(key, inner, bars, added, out)
        for join, var in carry.items():
            bars.add(join, Share(ir.Ref(var)))
        out += self.reversed(stmt, tuple(first), tuple(added), b)

    def total(self, key: Key, inner: Cotangents, bars: Cotangents, added: list[ir.Stmt], out: list[ir.Stmt]) -> None:
        """Add up the shares of iterations for a value from before the loop."""
        kind = key.type if isinstance(key, ir.Var) else _type_of(key)
        b = collector(added, self.line)
        share = inner.take(key, kind, b)
        if share is None:
            return
        var = ir.Var(f"{_hint(key)}_bar", kind, True, True)
        out.append(ir.Let(var, collector(out).cast(zero(kind), kind), self.line))
        added.append(ir.Assign(var, b.apply("add", ir.Ref(var), masked(b, share.value, share.guard)), self.line))
        bars.add(key, Share(ir.Ref(var)))

    def reversed(self, stmt: ir.For, first: ir.Block, added: ir.Block, b: Builder) -> ir.Block:
        """The loop of an adjoint, with what it computes again."""
        body = (*first, *(s for s in self.primal(stmt.body) if not isinstance(s, ir.Assign)), *added)
        used, count = needed(body), iterations(b, stmt)
        if count is None:
            raise self.refusal("a loop with a step that is no number is not differentiated", stmt.loc)
        number = ir.Var("back", Type(INT), temporary=True)
        head: list[ir.Stmt] = []
        inside = collector(head, stmt.loc)
        at = inside.apply("sub", inside.apply("sub", count, 1), ir.Ref(number))
        turn = inside.apply("add", stmt.start, inside.apply("mul", at, stmt.step))
        carried = [each for each in carried_by(stmt, count_of(stmt) or 0) if each[1] in used]
        if carried:
            self.check_carried(stmt, carried)
            self.carried[id(stmt)] = carried
        body = (*head, *Copier(reloaded(body, carried, at), {stmt.var: turn}).copy())
        return (ir.For(number, constant(0, INT), count, constant(1, INT), body, 1, stmt.loc),)

    def check_carried(self, stmt: ir.For, carried: Sequence[Carried]) -> None:
        names = " and ".join(f"`{var.hint}`" for _, var in carried)
        if count_of(stmt) is None:
            raise self.refusal(
                f"the slope of an iteration depends on {names} from before it, and data decide on the number of iterations; give "
                "the loop a number of them, and leave it by `_break()`",
                stmt.loc,
            )
        size = sum(array.nbytes for array, _ in carried)
        if size > MOST_BYTES:
            raise self.refusal(
                f"its gradient needs {names} of all {count_of(stmt)} iterations, {size} bytes for each thread and more than "
                f"{MOST_BYTES}; make the loop a `gp.iterate` of an operator",
                stmt.loc,
            )

    # --- arrays -------------------------------------------------------------------------------------------------

    def check_arrays(self, stmt: ir.If | ir.For) -> None:
        """Refuse memory in a block that is run again: it may hold something else by then."""
        for each in walk((stmt,)):
            loads = (e for value in values(each) for e in walk_expr(value) if isinstance(e, ir.Load))
            memories = [e.memory for e in loads] + ([each.memory] if isinstance(each, ir.Store) else [])
            written = [m for m in memories if isinstance(m, ir.Array) and m.space == "private"]
            depends = not self.varied.isdisjoint(bound((stmt,))) or not self.varied.isdisjoint(written)
            if written and depends:
                raise self.refusal(
                    f"the array `{written[0].hint}` is used in a branch, or in a loop that is not unrolled",
                    getattr(each, "loc", None),
                )

    def adjoint_of(self, array: ir.Array) -> ir.Array:
        if array.space != "private":
            raise self.refusal(f"`{array.hint}` is shared by threads, which is not differentiated yet")
        return self.arrays.setdefault(array, replace(array, hint=f"{array.hint}_bar"))

    def load(self, load: ir.Load, memory: ir.Array, bar: Share, b: Builder) -> None:
        """A load adds its cotangent to that of the element."""
        array = self.adjoint_of(memory)
        before = b.bind(ir.Load(array, load.index, load.type))
        total = b.apply("add", before, masked(b, bar.value, bar.guard))
        self.out.append(ir.Store(array, load.index, total, self.line))

    def store(self, store: ir.Store, memory: ir.Array, bars: Cotangents, b: Builder) -> None:
        """A store takes the cotangent of the element, which is then that of what was there before: 0."""
        array = self.adjoint_of(memory)
        value = b.bind(ir.Load(array, store.index, store.value.type))
        self.out.append(ir.Store(array, store.index, b.cast(zero(value.type), value.type), self.line))
        self.add(store.value, Share(value), bars)


WITHOUT: dict[type, str] = {
    ir.While: "a `_while` has any number of iterations; give them a bound, by `_for`, or use `gp.jvp`",
    ir.Atomic: "atomic updates are not differentiated yet",
    ir.Collective: "collective operations of threads are not differentiated yet",
    ir.Store: "what threads share is not differentiated yet",
}


def _refs(expr: ir.Expr) -> list[ir.Ref]:
    return [expr] if isinstance(expr, ir.Ref) else [ref for e in operands(expr) for ref in _refs(e)]


def _hint(key: Key) -> str:
    return key.hint if isinstance(key, ir.Var) else key.field.hint


def _whole(site: Site) -> Site:
    """The place with its whole tensor, where kernels have the elements of that as lanes."""
    small = isinstance(site.element, int) and site.field.type.planes <= SMALL_TENSOR
    return replace(site, element=None) if small else site


def _type_of(site: Site) -> Type:
    return Type(site.field.type.storage, site.field.type.planes if site.element is None else 1)


def varied(body: ir.Block, wanted: frozenset[ir.FieldParam]) -> set[ir.Var | ir.Array]:
    """The floating variables and arrays that depend on wanted inputs, and the integers that have bits of them."""
    result: set[ir.Var | ir.Array] = set()

    def depends(expr: ir.Expr) -> bool:
        if isinstance(expr, ir.Ref):
            return expr.var in result
        if isinstance(expr, ir.Read):
            return expr.field in wanted
        return (isinstance(expr, ir.Load) and expr.memory in result) or any(map(depends, operands(expr)))

    def has_bits(expr: ir.Expr) -> bool:
        if isinstance(expr, ir.Ref):
            return expr.type.integer and expr.var in result
        return (isinstance(expr, ir.Bits) and depends(expr.arg)) or any(map(has_bits, operands(expr)))

    before = -1
    while before != len(result):  # loops carry values from the end of their bodies to the start
        before = len(result)
        for stmt in walk(body):
            symbol = stmt.memory if isinstance(stmt, (ir.Store, ir.Atomic)) else getattr(stmt, "var", None)
            if symbol is None or isinstance(symbol, ir.FieldParam) or symbol.type.kind == "b":
                continue
            if any(map(has_bits if symbol.type.integer else depends, values(stmt))):
                result.add(symbol)
    return result
