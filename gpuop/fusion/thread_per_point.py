"""Kernels on elements that share much work as kernels on points: a thread computes the shared part once."""

from __future__ import annotations

from dataclasses import replace

from gpuop.fusion.cost import work
from gpuop.fusion.thread_per_element import is_plain
from gpuop.ir import nodes as ir
from gpuop.ir.build import constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.target_expressions import TargetConst
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import INT, Type
from gpuop.ir.visit import Copier, bound, changed, expressions
from gpuop.passes.scalarize import ELEMENT


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
    taken = [{_symbol(e) for e in expressions((stmt,))} for stmt in body]
    symbols: set[object] = {ELEMENT}
    found: set[int] = set()
    while True:
        fresh = {
            n
            for n, stmt in enumerate(body)
            if n not in found and (isinstance(stmt, ir.Write) or symbols & taken[n] or symbols & touched[n])
        }
        if not fresh:
            return found
        found |= fresh
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


def _part(body: ir.Block, kept: list[bool]) -> ir.Block:
    """Some of the statements, with the names of their operators."""
    out: list[ir.Stmt] = []
    name: ir.Comment | None = None
    for stmt, keep in zip(body, kept, strict=True):
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
