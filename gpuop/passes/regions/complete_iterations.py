"""Complete iterations of `while` loops with barriers, in OpenCL: the statements after a `continue` run under a condition instead.

The Intel compiler for CPUs, which builds loops over the threads of a work-group between two barriers, miscompiles iterations that
may end before their barriers. All threads of a work-group end an iteration alike, so another barrier does no harm.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpuop.ir.build import constant
from gpuop.ir.early_exits import EarlyExits
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Assign, Barrier, Block, Break, Continue, If, Let, Ref, Stmt, Var, While
from gpuop.ir.types import BOOL, Type
from gpuop.ir.visit import leaving, walk
from gpuop.passes.rewrite import rewrite_statements

FALSE, TRUE = constant(False, BOOL), constant(True, BOOL)


def complete_iterations(kernel: Kernel) -> Kernel:
    opencl = kernel.target is None or kernel.target.backend == "opencl"
    applies = opencl and any(isinstance(stmt, While) and _goes_on(stmt) for stmt in walk(kernel.body))
    return replace(kernel, body=rewrite_statements(kernel.body, _completed)) if applies else kernel


def _completed(stmt: Stmt) -> Block:
    return (_Iteration().of(stmt),) if isinstance(stmt, While) and _goes_on(stmt) else (stmt,)


def _goes_on(loop: While) -> bool:
    """Return whether a loop that waits has a `continue`."""
    waits = any(isinstance(stmt, Barrier) for stmt in walk((loop,)))
    return waits and any(isinstance(stmt, Continue) for stmt in leaving(loop.body))


class _Iteration(EarlyExits):
    """An iteration of a loop: its exits skip the other statements.

    Attributes:
        last: whether it is the last one, after a `break`; the loop ends behind it, outside of all conditions.
    """

    def __init__(self) -> None:
        super().__init__(Var("over", Type(BOOL), mutable=True))
        self.last = Var("last", Type(BOOL), mutable=True)

    def of(self, loop: While) -> While:
        body: Block = (Let(self.over, FALSE), *self.block(loop.body))
        if any(isinstance(stmt, Break) for stmt in leaving(loop.body)):
            body = (Let(self.last, FALSE), *body, If(Ref(self.last), (Break(loop.loc),), loc=loop.loc))
        return replace(loop, body=body)

    def exits(self, block: Block) -> Iterator[Stmt]:
        return leaving(block)

    def ending(self, exit: Stmt) -> Block:
        over = Assign(self.over, TRUE, exit.loc)
        return (Assign(self.last, TRUE, exit.loc), over) if isinstance(exit, Break) else (over,)
