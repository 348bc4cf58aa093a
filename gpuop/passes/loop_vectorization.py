"""Loop vectorization on CPUs, for threads that are alone in their work-groups.

Compilers make vectors of the threads of a group, so loops of a single thread would stay scalar. A loop whose iterations use
consecutive elements of rows, and nothing that another iteration of the same vector has stored, runs in vectors, with a scalar
remainder. Operations keep their order, so bits are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpuop.base.config import config
from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.types import FLOAT, INT, Type
from gpuop.ir.visit import Copier, expressions, loop_values, map_blocks, operands, walk
from gpuop.passes.loops import counted
from gpuop.passes.schedules.cpu.vector_lengths import is_operator
from gpuop.passes.schedules.methods import PLAIN
from gpuop.passes.vectorization_legality import doubles, halves


@dataclass(frozen=True)
class Next:
    """An index that grows by one with each iteration: the loop counter plus a common `base` plus `offset`.

    It is no `Affine`: `base` is any variable that iterations share, and two indices differ by numbers only if it is the same.

    Attributes:
        picked: whether an entry of a constant table takes the place of the loop counter.
    """

    base: ir.Var | None = None
    offset: int = 0
    picked: bool = False


COMMON = "common"
Where = Next | str | None  # COMMON to all iterations; None where it differs otherwise


def loop_lanes(kernel: Kernel) -> Kernel:
    """The kernel with such loops in vectors, unless a schedule has made vectors or the plain one is pinned."""
    target = kernel.target
    if target is None or target.vector_length == 1 or target.device != "cpu" or kernel.intermediates:
        return kernel
    if (
        kernel.group is None
        or max(kernel.work_group) > 1
        or PLAIN in (config.schedule, kernel.pin and kernel.pin.method)
    ):
        return kernel
    if any(isinstance(stmt, ir.Wide) or (isinstance(stmt, ir.For) and stmt.lanes) for stmt in walk(kernel.body)):
        return kernel
    if halves(kernel) or (target.widening == "functions" and doubles(kernel.body)):
        return kernel
    return replace(kernel, body=_in_vectors(kernel.body, target.vector_length))


def _in_vectors(block: ir.Block, lanes: int) -> ir.Block:
    out: list[ir.Stmt] = []
    for stmt in block:
        count = lanes_of(stmt, lanes) if isinstance(stmt, ir.For) else 0
        if isinstance(stmt, ir.For) and count:
            out += _split(stmt, count)
        else:
            out.append(map_blocks(stmt, lambda inner: _in_vectors(inner, lanes)))
    return tuple(out)


def _split(loop: ir.For, lanes: int) -> Iterator[ir.Stmt]:
    """Split a loop into vectors of iterations and a scalar remainder."""
    values = loop_values(loop)
    assert values is not None
    first, lane, body = ir.Var("first", Type(INT)), ir.Var("lane", Type(INT)), list[ir.Stmt]()
    end = values.start + len(values) // lanes * lanes
    place = collector(body).apply("add", ir.Ref(first), ir.Ref(lane))
    body += Copier(loop.body, {loop.var: place}).copy()
    if len(values) == lanes:
        yield replace(loop, lanes=True)
        return
    yield counted(first, values.start, end, [counted(lane, 0, lanes, body, lanes=True)], lanes)
    if end < values.stop:
        yield replace(loop, start=constant(end, INT))


def lanes_of(loop: ir.For, length: int) -> int:
    """The iterations of a loop in one vector; 0 where it cannot be vectorized.

    Args:
        length: the lanes of a vector of floats.
    """
    values, accesses = loop_values(loop), _LoopAccesses(loop)
    if values is None or values.step != 1 or len(values) < length or not accesses.is_simple:
        return 0
    lanes = length
    if accesses.operators:
        most = length * FLOAT.bits // max(FLOAT.bits // 4, *accesses.bits)
        while lanes < most and 2 * lanes <= len(values):
            lanes *= 2
    return lanes if accesses.apart(lanes) and not (accesses.picked and len(values) > lanes) else 0


class _LoopAccesses:
    """The memory accesses and the operations of the iterations of a loop.

    Attributes:
        is_simple: whether they only compute, and access consecutive elements.
        operators: whether they call no functions.
        bits: the sizes of the types that they compute, load and store.
        loads, stores: the indices of accesses to arrays.
    """

    def __init__(self, loop: ir.For) -> None:
        self.places: dict[ir.Var, Where] = {loop.var: Next()}
        self.bits: list[int] = [0]
        self.loads: list[tuple[ir.Array, Where]] = []
        self.stores: list[tuple[ir.Array, Where]] = []
        self.operators, self.picked = True, False
        self.is_simple = not loop.lanes and loop.unroll == 1 and all(map(self.takes, loop.body))
        fields = {e.field for e in expressions(loop.body) if isinstance(e, ir.Read)}
        written_fields = [stmt.field for stmt in loop.body if isinstance(stmt, ir.Write)]
        self.is_simple &= (
            fields.isdisjoint(written_fields)
            and len({*written_fields}) == len(written_fields)
            and bool(written_fields or self.stores)
        )

    def takes(self, stmt: ir.Stmt) -> bool:
        match stmt:
            case ir.Let(var=var, value=value) if not var.mutable and var.type.lanes == 1:
                where = self.places[var] = self.where(value)
                self.note([value.type] if where is None else [])
                return isinstance(where, Next | str) or all(map(self.computes, _parts(value)))
            case ir.Store(memory=ir.Array(space="private") as array, index=index):
                self.stores.append((array, self.at(index)))
                self.note([array.type])
                return self.is_next(index)
            case ir.Write(field=field, point=point, element=element) if point is not None and field.type.planes == 1:
                self.note([Type(field.type.storage)])
                return element is None and self.is_next(point)
        return isinstance(stmt, ir.Comment)

    def is_next(self, index: tuple[ir.Expr, ...]) -> bool:
        where = self.at(index)
        return isinstance(where, Next) and not where.picked

    def note(self, types: list[Type]) -> None:
        self.bits += [type_.dtype.bits for type_ in types if type_.kind != "b"]

    def computes(self, expr: ir.Expr) -> bool:
        """Return whether an expression is computed from common values and consecutive elements."""
        match expr:
            case ir.Read(field=field, point=point, element=element, border=border):
                self.note([Type(field.type.storage)])
                return point is not None and element is None and border == "unchecked" and self.at(point) is not None
            case ir.Load(memory=ir.Array(space="private") as array, index=index):
                self.loads.append((array, self.at(index)))
                return self.loads[-1][1] is not None
        self.operators &= is_operator(expr)
        return isinstance(expr, ir.Apply | ir.Const | ir.Ref | ir.Index) or is_operator(expr)

    def at(self, index: tuple[ir.Expr, ...]) -> Where:
        """The last index of an access, if the others are common; else None."""
        *others, last = map(self.where, index) if index else [None]
        return last if all(each == COMMON for each in others) else None

    def where(self, expr: ir.Expr) -> Where:
        match expr:
            case ir.Ref(var=var):
                return self.places.get(var, COMMON)
            case ir.Apply(op="add" | "sub" as op, args=(x, y)) if expr.type == Type(INT):
                return self.moved(self.where(x), y, op) or (self.moved(self.where(y), x, op) if op == "add" else None)
            case ir.Load(memory=ir.Array(space="constant"), index=(at,)) if self.where(at) == Next():
                self.picked = True
                return Next(picked=True) if expr.type == Type(INT) else None
            case ir.Load(memory=memory) if isinstance(memory, ir.FieldParam) or memory.space != "constant":
                return None
            case ir.Read():
                return None
        return COMMON if all(self.where(e) == COMMON for e in operands(expr)) else None

    def moved(self, where: Where, by: ir.Expr, op: str) -> Where:
        if where == COMMON and self.where(by) == COMMON:
            return COMMON
        if not isinstance(where, Next):
            return None
        if isinstance(by, ir.Const):
            return replace(where, offset=where.offset + int(by.value) * (1 if op == "add" else -1))
        fits = op == "add" and where.base is None and isinstance(by, ir.Ref) and self.where(by) == COMMON
        return replace(where, base=by.var) if fits and isinstance(by, ir.Ref) else None

    def apart(self, lanes: int) -> bool:
        """Return whether no iteration of a vector uses an element that another one of it stores."""
        pairs = (
            (here, there)
            for array, here in self.stores
            for other, there in (*self.loads, *self.stores)
            if other is array and isinstance(here, Next)
        )
        return all(
            isinstance(there, Next)
            and not there.picked
            and there.base == here.base
            and not 0 < abs(there.offset - here.offset) < lanes
            for here, there in pairs
        )


def _parts(expr: ir.Expr) -> Iterator[ir.Expr]:
    """An expression and its operands, without the indices of reads and loads."""
    yield expr
    if not isinstance(expr, ir.Read | ir.Load):
        for part in operands(expr):
            yield from _parts(part)
