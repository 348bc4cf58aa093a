"""Conditionals: `with _if(c):`, `_elseif`, `_else`."""

from __future__ import annotations

from gpuop.base.errors import SemanticError
from gpuop.dsl.recorder.control_flow import BlockContext, condition
from gpuop.dsl.recorder.frames import inside
from gpuop.dsl.recorder.recorder import Recorder, caller, current
from gpuop.dsl.recorder.value import Operand
from gpuop.ir.nodes import If, Stmt
from gpuop.ir.target_expressions import TargetConst


class _if(BlockContext):
    """`with _if(c):` records a block for the threads where c holds."""

    def __init__(self, c: Operand) -> None:
        self.cond = condition(c, "_if")
        super().__init__("_if")

    def closes(self, body: list[Stmt]) -> None:
        set_chain(self.recorder, If(self.cond, tuple(body), (), self.loc), new=True)


def set_chain(recorder: Recorder, chain: If, new: bool = False) -> None:
    """Record a chain that may still grow."""
    if new:
        recorder.emit(chain)
    recorder.scope.statements[-1] = recorder.scope.chain = chain


def open_chain(recorder: Recorder, name: str) -> If:
    """The chain that the next branch belongs to: the last statement of the open block."""
    scope, codegen = recorder.scope, name.startswith("_codegen")
    chain = scope.chain if scope.statements and scope.statements[-1] is scope.chain else None
    if chain is None or isinstance(chain.cond, TargetConst) != codegen:
        before = "a `_codegenIf` or `_codegenElseif`" if codegen else "an `_if` or `_elseif`"
        raise SemanticError(f"`{name}` does not follow {before} block; nothing may stand between them")
    return chain


def extended(chain: If, branch: tuple[Stmt, ...]) -> If:
    """The chain with a branch at its end."""
    links: list[If] = []
    while chain.orelse:
        links.append(chain)
        last = chain.orelse[-1]
        assert isinstance(last, If)
        chain = last
    chain = If(chain.cond, chain.then, branch, chain.loc)
    for link in reversed(links):
        chain = If(link.cond, link.then, (*link.orelse[:-1], chain), link.loc)
    return chain


class _elseif(BlockContext):
    """`with _elseif(c):` after `_if`: its condition is computed only when it is reached."""

    def __init__(self, c: Operand) -> None:
        self.cond = condition(c, "_elseif")
        recorder = current("`_elseif`")
        self.head = recorder.take_since(0, inside(caller(), "_elseif"))
        self.chain = open_chain(recorder, "_elseif")
        super().__init__("_elseif")

    def closes(self, body: list[Stmt]) -> None:
        branch = (*(stmt for stmt, _ in self.head), If(self.cond, tuple(body), (), self.loc))
        set_chain(self.recorder, extended(self.chain, branch))


class _else(BlockContext):
    """`with _else():` after `_if` or `_elseif`."""

    def __init__(self) -> None:
        self.chain = open_chain(current("`_else`"), "_else")
        super().__init__("_else")

    def closes(self, body: list[Stmt]) -> None:
        self.recorder.scope.statements[-1] = extended(self.chain, tuple(body))
