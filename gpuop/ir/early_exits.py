"""Early exits as conditions: statements after a possible exit run only for threads that have not taken it."""

from __future__ import annotations

from collections.abc import Iterator

from gpuop.ir.build import collector
from gpuop.ir.nodes import Block, If, Ref, Stmt, Var
from gpuop.ir.visit import map_blocks


class EarlyExits:
    """Rewriter of the exits of one kind in a block.

    Attributes:
        over: flag of threads that have taken an exit.
    """

    def __init__(self, over: Var) -> None:
        self.over = over

    def exits(self, block: Block) -> Iterator[Stmt]:
        """The exits in a block, in order."""
        raise NotImplementedError

    def ending(self, exit: Stmt) -> Block:
        """The statements in the place of an exit: they set the flag."""
        raise NotImplementedError

    def inner(self, stmt: Stmt) -> Stmt:
        """A statement whose blocks have exits, rewritten."""
        return map_blocks(stmt, self.block)

    def block(self, block: Block) -> Block:
        """The rewritten statements."""
        out: list[Stmt] = []
        for k, stmt in enumerate(block):
            exit = next(self.exits((stmt,)), None)
            if exit is None:
                out.append(stmt)
            elif exit is stmt:
                return (*out, *self.ending(exit))
            else:
                return (*out, *self.partial(stmt, block[k + 1 :], exit))
        return tuple(out)

    def partial(self, stmt: Stmt, rest: Block, exit: Stmt) -> Block:
        """A statement that has an exit for some threads, and the rest of its block under a condition."""
        out = [self.inner(stmt)]
        after = self.block(rest)
        if after:
            test = collector(out, exit.loc).apply("not", Ref(self.over))
            out.append(If(test, after, (), exit.loc))
        return tuple(out)
