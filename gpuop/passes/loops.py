"""Loops of kernels that passes build."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpuop.ir.build import constant
from gpuop.ir.nodes import Block, Expr, For, Ref, Stmt, Var
from gpuop.ir.target_expressions import Extent
from gpuop.ir.types import INT, Type

Number = Expr | int
Body = Callable[[Expr, list[Stmt]], None]  # appends the statements for a value of the counter


def counter(hint: str) -> Var:
    return Var(hint, Type(INT))


def counted(
    var: Var,
    start: Number,
    stop: Number,
    body: Iterable[Stmt],
    step: Number = 1,
    unroll: Extent = 1,
    lanes: bool = False,
) -> For:
    """A loop over these statements."""
    first, end, by = (constant(n, INT) if isinstance(n, int) else n for n in (start, stop, step))
    return For(var, first, end, by, tuple(body), unroll, lanes=lanes)


def looped(hint: str, start: Number, stop: Number, body: Body, unroll: Extent = 1, lanes: bool = False) -> For:
    """A loop over the statements for a value of its counter."""
    var, out = counter(hint), list[Stmt]()
    body(Ref(var), out)
    return counted(var, start, stop, out, 1, unroll, lanes)


def numbered(hint: str, first: int, count: int, body: Body, unroll: int | None = None, lanes: bool = False) -> Block:
    """Statements for consecutive numbers: a loop, which compilers unroll if nothing else is said; no loop for one number."""
    if count == 1:
        out: list[Stmt] = []
        body(constant(first, INT), out)
        return tuple(out)
    return (looped(hint, first, first + count, body, unroll or count, lanes),) if count else ()
