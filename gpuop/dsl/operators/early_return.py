"""`_return()`: the rest of the body becomes conditional, because all threads stay to the end of a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from gpuop.dsl.recorder.recorder import Recorder
from gpuop.ir.build import collector, constant
from gpuop.ir.nodes import Assign, Block, Break, For, If, Let, Ref, Stmt, Var, While
from gpuop.ir.target_expressions import TargetConst
from gpuop.ir.types import BOOL
from gpuop.ir.visit import expressions, map_blocks, walk


def without_returns(recorder: Recorder) -> Block:
    """Statements of a recorded body, with returns replaced by conditions."""
    body = tuple(recorder.scopes[0].statements)
    if recorder.returned is None:
        return body
    done = _Returning(recorder.returned).block(body)
    if any(e == Ref(recorder.returned) for e in expressions(done)):
        return (Let(recorder.returned, constant(False, BOOL)), *done)
    return _without(done, recorder.returned)


def _without(block: Iterable[Stmt], var: Var) -> Block:
    """Statements without assignments to a variable that is never read, and without branches left empty by that."""
    out: list[Stmt] = []
    for stmt in block:
        stmt = map_blocks(stmt, lambda inner: _without(inner, var))
        if isinstance(stmt, If) and not stmt.then and not isinstance(stmt.cond, TargetConst):
            if stmt.orelse:
                fails = collector(out, stmt.loc).apply("not", stmt.cond)
                out.append(If(fails, stmt.orelse, (), stmt.loc))
        elif not (isinstance(stmt, Assign) and stmt.var is var):
            out.append(stmt)
    return tuple(out)


class _Returning:
    """Rewriter of returns.

    Attributes:
        returned: flag of threads that are done; `_return()` assigns it, and leaves a loop.
    """

    def __init__(self, returned: Var) -> None:
        self.returned = returned

    def block(self, block: Block) -> Block:
        """Statements outside of loops; those after a return become conditional."""
        out: list[Stmt] = []
        for k, stmt in enumerate(block):
            first_return = next(self.returns((stmt,)), None)
            if first_return is None:
                out.append(stmt)
                continue
            if first_return is stmt:  # the statements after it were moved there for paths that do not return here
                out.append(stmt)
                break
            rest = block[k + 1 :]
            if isinstance(stmt, If) and (self.ends_by_return(stmt.then) or self.ends_by_return(stmt.orelse)):
                out.append(self.split(stmt, rest))
            else:
                out.append(map_blocks(stmt, self.loop_body if isinstance(stmt, (For, While)) else self.block))
                if rest:
                    test = collector(out, first_return.loc).apply("not", Ref(self.returned))
                    out.append(If(test, self.block(rest), (), first_return.loc))
            break
        return tuple(out)

    def split(self, stmt: If, rest: Block) -> If:
        """Conditional with one branch that ends_by_return by a return: the rest moves into the other branch."""
        if self.ends_by_return(stmt.then):
            return replace(stmt, orelse=self.block((*stmt.orelse, *rest)))
        return replace(stmt, then=self.block((*stmt.then, *rest)))

    def loop_body(self, block: Block) -> Block:
        """Statements of a loop. A return leaves it, and the loops around it."""
        out: list[Stmt] = []
        for stmt in block:
            out.append(map_blocks(stmt, self.loop_body))
            first_return = next(self.returns((stmt,)), None)
            if isinstance(stmt, (For, While)) and first_return is not None:
                out.append(If(Ref(self.returned), (Break(first_return.loc),), (), first_return.loc))
        return tuple(out)

    def ends_by_return(self, block: Block) -> bool:
        """True if a block ends_by_return by a return, and has no other."""
        return bool(block) and [*self.returns(block)] == [block[-1]]

    def returns(self, block: Block) -> Iterator[Stmt]:
        return (stmt for stmt in walk(block) if isinstance(stmt, Assign) and stmt.var is self.returned)
