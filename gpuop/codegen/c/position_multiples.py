"""Multiples of column positions, which a compiler may compute wrongly unless the text says that positions are ints.

Positions are longer than an int in OpenCL. Where the Intel compiler vectorizes threads, the second vector of 3 · position starts
as the first one does if the product could exceed an int, and its store order differs from that of the threads.
"""

from __future__ import annotations

from gpuop.ir.nodes import Apply, Assign, Block, Expr, For, Index, Let, Load, Read, Ref, Var
from gpuop.ir.visit import expressions, operands, walk


def multiplies_columns(body: Block) -> bool:
    """Return whether an integer is a product, or the sum of two values, of a thread's column."""
    made: set[Var] = set()
    before = -1
    while before != (before := len(made)):
        for stmt in walk(body):
            match stmt:
                case Let(var=var, value=value) | Assign(var=var, value=value):
                    sources: tuple[Expr, ...] = (value,)
                case For(var=var, start=start, step=step):
                    sources = (start, step)
                case _:
                    continue
            if any(_depends_on_column(e, made) for e in sources):
                made.add(var)
    return any(_multiplies(e, made) for e in expressions(body))


def _multiplies(expr: Expr, made: set[Var]) -> bool:
    if not isinstance(expr, Apply) or not expr.type.integer:
        return False
    of_column = [_depends_on_column(e, made) for e in expr.args]
    return any(of_column) if expr.op in ("mul", "shl") else all(of_column) and expr.op in ("add", "sub")


def _depends_on_column(expr: Expr, made: set[Var]) -> bool:
    """Return whether it is computed from the column without reading memory."""
    match expr:
        case Index(kind="global" | "local", axis="column"):
            return True
        case Ref(var=var):
            return var in made
        case Load() | Read():
            return False
    return any(_depends_on_column(e, made) for e in operands(expr))
