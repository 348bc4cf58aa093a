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
    """The statements of a body that was recorded."""
    body = tuple(recorder.scopes[0].statements)
    if recorder.returned is None:
        return body
    done = _Returning(recorder.returned).block(body)
    if any(e == Ref(recorder.returned) for e in expressions(done)):
        return (Let(recorder.returned, constant(False, BOOL)), *done)
    return _without(done, recorder.returned)


def _without(block: Iterable[Stmt], var: Var) -> Block:
    """The statements but for assignments to a variable that is never read, and without branches that have nothing else."""
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
    """Attributes:
    returned: the variable that says that a thread has nothing more to do; `_return()` is an assignment to it, and leaves a loop.
    """

    def __init__(self, returned: Var) -> None:
        self.returned = returned

    def block(self, block: Block) -> Block:
        """Statements outside of loops, in which those that come after a return depend on it."""
        out: list[Stmt] = []
        for k, stmt in enumerate(block):
            found = next(self.returns((stmt,)), None)
            if found is None:
                out.append(stmt)
                continue
            if found is stmt:  # what comes behind it was put there for paths that do not return here
                out.append(stmt)
                break
            rest = block[k + 1 :]
            if isinstance(stmt, If) and (self.ends(stmt.then) or self.ends(stmt.orelse)):
                out.append(self.apart(stmt, rest))
            else:
                out.append(map_blocks(stmt, self.turn if isinstance(stmt, (For, While)) else self.block))
                if rest:
                    test = collector(out, found.loc).apply("not", Ref(self.returned))
                    out.append(If(test, self.block(rest), (), found.loc))
            break
        return tuple(out)

    def apart(self, stmt: If, rest: Block) -> If:
        """A condition of which one branch ends by a return: what follows belongs to the other one."""
        if self.ends(stmt.then):
            return replace(stmt, orelse=self.block((*stmt.orelse, *rest)))
        return replace(stmt, then=self.block((*stmt.then, *rest)))

    def turn(self, block: Block) -> Block:
        """Statements of a loop, which a return leaves; it leaves the loops around it too."""
        out: list[Stmt] = []
        for stmt in block:
            out.append(map_blocks(stmt, self.turn))
            found = next(self.returns((stmt,)), None)
            if isinstance(stmt, (For, While)) and found is not None:
                out.append(If(Ref(self.returned), (Break(found.loc),), (), found.loc))
        return tuple(out)

    def ends(self, block: Block) -> bool:
        """Whether a block ends by a return, and has no other."""
        return bool(block) and [*self.returns(block)] == [block[-1]]

    def returns(self, block: Block) -> Iterator[Stmt]:
        return (stmt for stmt in walk(block) if isinstance(stmt, Assign) and stmt.var is self.returned)
