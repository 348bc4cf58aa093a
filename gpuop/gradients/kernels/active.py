"""Activity: the symbols of a kernel that carry derivatives from its active inputs to its outputs.

A value depends smoothly on another one unless its type is no floating one, or a row of the operator table is constant in it.
Conditions, indices and integers that are computed from active values are constants: their derivatives are 0 almost everywhere.
The bits of an active value are not: integers that hold them are followed, and may not become floating values again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from gpuop.base.errors import Loc, SemanticError
from gpuop.base.lru import BoundedCache
from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.build import collector
from gpuop.ir.derivatives import ZERO, partial
from gpuop.ir.kernel import Kernel
from gpuop.ir.visit import Symbol, operands, walk

MOST_KERNELS = 1024
Numbers = frozenset[int]
_flows_of: BoundedCache[tuple[Kernel, Numbers, Numbers], tuple[Numbers, Numbers]] = BoundedCache(MOST_KERNELS)


class Way(Enum):
    """The way in which a value carries another one: smoothly, or as bits in an integer."""

    SMOOTH = "smooth"
    INTO_BITS = "into bits"
    BITS = "bits"
    OUT_OF_BITS = "out of bits"


@dataclass(frozen=True, slots=True)
class Dependence:
    """A symbol whose value depends on that of another one."""

    source: Symbol
    target: Symbol
    way: Way
    loc: Loc | None


@dataclass(frozen=True)
class Activity:
    """The symbols that have tangents, and those whose integers hold bits of active values."""

    smooth: frozenset[Symbol]
    bits: frozenset[Symbol]


def activity(kernel: Kernel, active: Iterable[ir.FieldParam], bits: Iterable[ir.FieldParam] = ()) -> Activity:
    """The activity of a kernel whose outputs are all wanted.

    Args:
        active: the inputs that have tangents.
        bits: the inputs whose integers hold bits of active values.

    Raises:
        SemanticError: bits of an active value become a floating value that an output depends on.
    """
    edges = list(_edges(kernel))
    smooth = _reached(edges, set[Symbol](active), {Way.SMOOTH})
    opened = {edge.target for edge in edges if edge.way is Way.INTO_BITS and edge.source in smooth}
    in_bits = _reached(edges, opened.union(bits), {Way.BITS})
    wanted = _reached([Dependence(e.target, e.source, e.way, e.loc) for e in edges], set(kernel.written), {Way.SMOOTH})
    for edge in edges:
        if edge.way is Way.OUT_OF_BITS and edge.source in in_bits and edge.target in wanted:
            raise SemanticError(
                f"`{kernel.name}` makes a floating value of the bits of one that is differentiated, and bits have no derivative; "
                "write the function that is meant, or give the operator a rule with `defjvp` or `defvjp`; `gp.stop_gradient` of "
                "the argument makes it a constant",
                edge.loc or kernel.loc,
            )
    return Activity(frozenset(smooth & wanted), frozenset(in_bits))


def flow(kernel: Kernel, active: Numbers, bits: Numbers) -> tuple[Numbers, Numbers]:
    """The outputs that are active, and those whose integers hold bits of active values, by numbers, from those of the inputs.

    Raises:
        SemanticError: as of `activity`.
    """
    key = kernel, active, bits
    result = _flows_of.get(key)
    if result is None:
        facts = activity(kernel, (kernel.inputs[n] for n in active), (kernel.inputs[n] for n in bits))
        smooth, opened = (
            frozenset(n for n, param in enumerate(kernel.written) if param in symbols)
            for symbols in (facts.smooth, facts.bits)
        )
        result = _flows_of[key] = smooth, opened
    return result


def _reached(edges: list[Dependence], begin: set[Symbol], ways: set[Way]) -> set[Symbol]:
    targets: dict[Symbol, list[Symbol]] = {}
    for edge in edges:
        if edge.way in ways:
            targets.setdefault(edge.source, []).append(edge.target)
    reached, waiting = set(begin), list(begin)
    while waiting:
        for target in targets.get(waiting.pop(), ()):
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    return reached


def _edges(kernel: Kernel) -> Iterator[Dependence]:
    for output in kernel.outputs:
        if output.initial is not None:
            yield Dependence(output.initial, output.param, _between(output.initial, output.param), kernel.loc)
    for stmt in walk(kernel.body):
        for value, target in _flows(stmt):
            for source, way in sources(value):
                if way is not None:
                    yield Dependence(source, target, way, stmt.loc)
        if isinstance(stmt, ir.Wide):
            source, target = (stmt.field, stmt.array) if stmt.loads else (stmt.array, stmt.field)
            yield Dependence(source, target, _between(stmt.field, stmt.field), stmt.loc)


def _between(source: ir.FieldParam, target: ir.FieldParam) -> Way:
    return Way.SMOOTH if is_smooth(source) and is_smooth(target) else Way.BITS


def _flows(stmt: ir.Stmt) -> Iterator[tuple[ir.Expr, Symbol]]:
    """The values that a statement passes on, each with its target."""
    match stmt:
        case ir.Let(var=target, value=value) | ir.Assign(var=target, value=value):
            yield value, target
        case ir.Write(field=target, value=value) | ir.Store(memory=target, value=value):
            yield value, target
        case ir.Atomic(memory=memory, args=args, var=var):
            for arg in args:
                yield arg, memory
            if var is not None:
                yield ir.Load(memory, (), var.type), var
        case ir.Collective(var=var, value=value, outside=outside):
            yield value, var
            if outside is not None:
                yield outside, var


def is_smooth(param: ir.FieldParam) -> bool:
    """Return whether a field can have tangents: its numbers are floating, in memory too."""
    return param.type.storage.kind == "f"


def sources(expr: ir.Expr) -> list[tuple[Symbol, Way | None]]:
    """The symbols whose values an expression uses, each with the way; None: it is constant in that one."""
    match expr:
        case ir.Ref(var=symbol) | ir.Read(field=symbol) | ir.Load(memory=symbol):
            return [(symbol, Way.SMOOTH if expr.type.kind == "f" else None if expr.type.kind == "b" else Way.BITS)]
    return [
        (source, _through(expr, number, way))
        for number, arg in enumerate(operands(expr))
        for source, way in sources(arg)
    ]


def _through(expr: ir.Expr, number: int, way: Way | None) -> Way | None:
    """The way of an operand's source to the expression, from its way to the operand."""
    floating, integer = expr.type.kind == "f", expr.type.integer
    if way is None or not (floating or integer) or _is_constant_in(expr, number):
        return None
    if way is Way.SMOOTH:
        return Way.SMOOTH if floating else Way.INTO_BITS if isinstance(expr, ir.Bits) else None
    if way is Way.BITS:
        return Way.OUT_OF_BITS if floating else Way.BITS
    return way


def _is_constant_in(expr: ir.Expr, number: int) -> bool:
    """Return whether a row has derivative 0 by an operand."""
    if not isinstance(expr, ir.Apply) or expr.type.kind != "f":
        return False
    if expr.op in ("ldexp", "pown", "rootn") and number == 1:
        return False  # an integer that may hold bits
    result = ir.Ref(ir.Var("result", expr.type))
    return partial(collector([]), expr.op, expr.args, result, number) is ZERO
