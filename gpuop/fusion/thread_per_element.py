"""Kernels on points that write big tensors as kernels on elements, to fuse with others that run on elements.

Operators fuse on one grid of threads. A body that computes values and then writes each element, in a loop or one after
another, has the same meaning with a thread for each element. `shared_once` undoes this in the end where
elements share work.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from gpuop.base.lru import BoundedCache
from gpuop.fusion.cost import work
from gpuop.fusion.cross_thread import needs_other_threads
from gpuop.fusion.program import Op, Program
from gpuop.ir import nodes as ir
from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Block, Const, Expr, FieldParam, For, Index, Let, Ref, Stmt, Write
from gpuop.ir.target_expressions import TargetConst
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import INT, SMALL_TENSOR, Type
from gpuop.ir.visit import Copier, bound, changed, effects, expressions, leaving, loop_values, walk
from gpuop.passes.scalarize import ELEMENT

KEPT = 4096
_cache: BoundedCache[str, Kernel | None] = BoundedCache(KEPT)


def with_elements(program: Program) -> tuple[Program, frozenset[int]]:
    """The program with more operators on elements, and their numbers: those that can then share registers with others."""
    ops = {op.number: op for op in program.ops}
    maker = {value: op.number for op in program.ops for value in op.outputs}
    near: dict[int, list[tuple[int, int, int]]] = {}
    for op in program.ops:
        for value in op.inputs:
            if value in maker and program.types[value].planes > SMALL_TENSOR:
                for end in (maker[value], op.number):
                    near.setdefault(end, []).append((maker[value], op.number, value))
    changed: set[int] = set()
    waiting = [number for number in near if ops[number].kernel.grid.elements > 1]
    while waiting:
        at = waiting.pop()
        for producer, consumer, value in near[at]:
            other = producer if at == consumer else consumer
            new = None if ops[other].kernel.grid.elements > 1 else _on_elements(ops[other])
            if new is not None:
                pair = (new, ops[at]) if other == producer else (ops[at], new)
                if needs_other_threads(*pair, value) is None:
                    ops[other] = new
                    changed.add(other)
                    waiting.append(other)
    return (replace(program, ops=tuple(ops.values())) if changed else program), frozenset(changed)


def _on_elements(op: Op) -> Op | None:
    if not isinstance(op.kernel, Kernel):
        return None
    kernel = _cache.find(op.identity, partial(on_elements, op.kernel))
    return None if kernel is None else replace(op, kernel=kernel, identity=f"{op.identity} on elements")


# --- a thread for each element ------------------------------------------------------------------------------------------


def on_elements(kernel: Kernel) -> Kernel | None:
    """The kernel with a thread for each element of its tensors; None unless each point writes every element once."""
    planes = {output.param.type.planes for output in kernel.outputs}
    count = max(planes)
    filled = any(output.fill is not None for output in kernel.outputs)
    if kernel.domain.elements > 1 or len(planes) > 1 or count <= SMALL_TENSOR or filled or not is_plain(kernel):
        return None
    body = _Spread(count).of(kernel)
    return None if body is None else replace(kernel, body=body, domain=Domain(kernel.domain.shape, count))


def is_plain(kernel: Kernel) -> bool:
    """Return whether threads only read, compute and write, without effects and work-groups."""
    return not effects(kernel.body) and kernel.group is None and not kernel.whole


class _Spread:
    """Converts loops over elements, and writes of single elements, to the statements of one thread."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.out: list[Stmt] = []
        self.whole: dict[FieldParam, Write] = {}  # by a loop
        self.single: dict[FieldParam, dict[int, Expr]] = {}

    def of(self, kernel: Kernel) -> Block | None:
        if any(isinstance(e, Index) and e.axis == "element" for e in expressions(kernel.body)):
            return None
        for stmt in kernel.body:
            if not any(isinstance(s, Write) for s in walk((stmt,))):
                self.out.append(stmt)
            elif not (self._one(stmt) if isinstance(stmt, Write) else isinstance(stmt, For) and self._turns(stmt)):
                return None
        if any(written.keys() != set(range(self.count)) for written in self.single.values()):
            return None
        for field, written in self.single.items():
            self.out.append(Write(field, self._chosen(written), None, ELEMENT))
        return (*self.out, *self.whole.values())

    def _one(self, write: Write) -> bool:
        if write.point is not None or not isinstance(write.element, Const) or write.field in self.whole:
            return False
        self.single.setdefault(write.field, {})[int(write.element.value)] = self._value(write)
        return True

    def _value(self, write: Write) -> Expr:
        """The written value, unaffected by later assignments."""
        if not isinstance(write.value, Ref) or not write.value.var.mutable:
            return write.value
        variable = replace(write.value.var, mutable=False)
        self.out.append(Let(variable, write.value, write.loc))
        return Ref(variable)

    def _turns(self, loop: For) -> bool:
        """Convert a loop over all elements whose iterations write their own element and are independent; False for others."""
        writes = [stmt for stmt in walk(loop.body) if isinstance(stmt, Write)]
        own = all(w in loop.body and w.point is None and w.element == Ref(loop.var) for w in writes)
        fields = [w.field for w in writes]
        fresh = len(set(fields)) == len(fields) and not {*self.whole, *self.single} & set(fields)
        outer = changed(loop.body) - bound(loop.body)
        if loop_values(loop) != range(self.count) or not (own and fresh) or outer or any(leaving(loop.body)):
            return False
        for stmt in Copier(loop.body, {loop.var: ELEMENT}).copy():
            if isinstance(stmt, Write):
                self.whole[stmt.field] = replace(stmt, value=self._value(stmt))
            else:
                self.out.append(stmt)
        return True

    def _chosen(self, written: dict[int, Expr]) -> Expr:
        build, value = collector(self.out), written[0]
        for number in range(1, self.count):
            value = build.apply("choose", build.apply("eq", ELEMENT, constant(number, INT)), written[number], value)
        return value


def shared_once(kernel: Kernel) -> Kernel:
    """The kernel with a loop over the elements of a point after their shared statements, if these are more than each one adds.

    If elements only select one of several values, the loop is expanded, and nothing is selected.
    """
    shifted = any(isinstance(e, ir.Index) and e.axis == "element" and e.offset for e in expressions(kernel.body))
    if kernel.domain.elements == 1 or shifted or not is_plain(kernel):
        return kernel
    varying = _varying(kernel.body)
    shared = _part(kernel.body, [n not in varying for n in range(len(kernel.body))])
    own = _part(kernel.body, [n in varying for n in range(len(kernel.body))])
    picks = sum(isinstance(e, ir.Apply) and e.op == "eq" and ELEMENT in e.args for e in expressions(own))
    expanded = picks >= kernel.domain.elements - 1
    if not expanded and work(replace(kernel, body=shared)) <= work(replace(kernel, body=own)):
        return kernel
    turn = ir.Var("tensorElement", Type(INT))
    body = _ElementTurn(own, turn, kernel.domain.elements).copy()
    count = constant(kernel.domain.elements, INT)
    loop = ir.For(turn, constant(0, INT), count, constant(1, INT), body, 0 if expanded else 1)
    return replace(kernel, body=(*shared, loop), domain=Domain(kernel.domain.shape))


def _varying(body: ir.Block) -> set[int]:
    """The positions of the statements that differ between elements."""
    touched = [bound((stmt,)) | changed((stmt,)) for stmt in body]
    symbols_of = [{_symbol(e) for e in expressions((stmt,))} for stmt in body]
    symbols: set[object] = {ELEMENT}
    result: set[int] = set()
    while True:
        fresh = {
            n
            for n, stmt in enumerate(body)
            if n not in result and (isinstance(stmt, ir.Write) or symbols & symbols_of[n] or symbols & touched[n])
        }
        if not fresh:
            return result
        result |= fresh
        symbols |= {symbol for n in fresh for symbol in touched[n]}


def _symbol(expr: ir.Expr) -> object:
    match expr:
        case ir.Ref(var=symbol) | ir.Load(memory=ir.Array() as symbol):
            return symbol
        case ir.Index(kind="global", axis="element"):
            return ELEMENT
        case ir.Const() | TargetConst() | ir.Index() | ir.Stride() | ir.Argument() | ir.Load():
            return None
        case ir.Apply() | ir.Cast() | ir.Bits() | ir.Lane() | ir.Pack() | ir.Read():
            return None  # the walk visits its operands too
        case _:
            ir.assert_never(expr)


def _part(body: ir.Block, choice: list[bool]) -> ir.Block:
    """Some of the statements, with the names of their operators."""
    out: list[ir.Stmt] = []
    name: ir.Comment | None = None
    for stmt, keep in zip(body, choice, strict=True):
        if isinstance(stmt, ir.Comment):
            name = stmt
        elif keep:
            out += [stmt] if name is None else [name, stmt]
            name = None
    return tuple(out)


class _ElementTurn(Copier):
    """Copies the statements of an element as the body of a loop."""

    def __init__(self, block: ir.Block, turn: ir.Var, count: int) -> None:
        super().__init__(block)
        self.turn, self.count = turn, count

    def expr(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Index) and expr.axis == "element":
            return ir.Ref(self.turn) if expr.kind == "global" else constant(self.count, INT)
        return super().expr(expr)
