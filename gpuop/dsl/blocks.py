"""`with _if(c):`, `_elseif`, `_else`."""

from __future__ import annotations

from gpuop.dsl.guard import Guard, condition, inside
from gpuop.dsl.record import Recorder, caller, current
from gpuop.dsl.value import Operand
from gpuop.errors import SemanticError
from gpuop.ir.nodes import If, Stmt


class _if(Guard):
    """`with _if(c):` records a block for the threads where c holds."""

    def __init__(self, c: Operand) -> None:
        self.cond = condition(c, "_if")
        super().__init__("_if")

    def closes(self, body: list[Stmt]) -> None:
        _set_chain(self.recorder, If(self.cond, tuple(body), (), self.loc), new=True)


def _set_chain(recorder: Recorder, chain: If, new: bool = False) -> None:
    """Record an `_if` chain that may still grow."""
    if new:
        recorder.emit(chain)
    recorder.scope.statements[-1] = recorder.scope.chain = chain


def _open_if(recorder: Recorder, name: str) -> If:
    """The `_if` chain that the next branch belongs to: the last statement of the open block."""
    scope = recorder.scope
    if scope.chain is None or not scope.statements or scope.statements[-1] is not scope.chain:
        raise SemanticError(f"`{name}` does not follow an `_if` or `_elseif` block; nothing may stand between them")
    return scope.chain


def _extended(chain: If, branch: tuple[Stmt, ...]) -> If:
    """The chain with a branch at its end."""
    if not chain.orelse:
        return If(chain.cond, chain.then, branch, chain.loc)
    *head, last = chain.orelse
    assert isinstance(last, If)
    return If(chain.cond, chain.then, (*head, _extended(last, branch)), chain.loc)


class _elseif(Guard):
    """`with _elseif(c):` after `_if`: its condition is computed only when it is reached."""

    def __init__(self, c: Operand) -> None:
        self.cond = condition(c, "_elseif")
        recorder = current("`_elseif`")
        self.head = recorder.take_since(0, inside(caller(), "_elseif"))
        self.chain = _open_if(recorder, "_elseif")
        super().__init__("_elseif")

    def closes(self, body: list[Stmt]) -> None:
        branch = (*(stmt for stmt, _ in self.head), If(self.cond, tuple(body), (), self.loc))
        _set_chain(self.recorder, _extended(self.chain, branch))


class _else(Guard):
    """`with _else():` after `_if` or `_elseif`."""

    def __init__(self) -> None:
        self.chain = _open_if(current("`_else`"), "_else")
        super().__init__("_else")

    def closes(self, body: list[Stmt]) -> None:
        self.recorder.scope.statements[-1] = _extended(self.chain, tuple(body))
