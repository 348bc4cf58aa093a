"""Conditionals: `with _if(c):`, `_elseif`, `_else`."""

from __future__ import annotations

from typing import Any

from gpuop.base.errors import SemanticError, described
from gpuop.dsl.recorder.control_flow import BlockContext, condition
from gpuop.dsl.recorder.frames import inside
from gpuop.dsl.recorder.recorder import Recorder, caller, current
from gpuop.dsl.recorder.target_facts import TargetExpression
from gpuop.dsl.recorder.value import Operand, Value
from gpuop.ir.nodes import If, Stmt
from gpuop.ir.target_expressions import TargetConst, kind_of
from gpuop.ir.types import BOOL, Type


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


# --- conditional compilation: all branches are recorded, code for a target has one ------------------------------------


def _condition(test: Any, name: str) -> TargetConst:
    if isinstance(test, TargetExpression):
        if kind_of(test.fact) is str:
            raise SemanticError(f"`{name}` wants a condition, and `{test!r}` is a text; compare it with another one")
        return TargetConst(test.fact, Type(BOOL))
    if isinstance(test, Value):
        raise SemanticError(
            f"`{name}` decides when code is generated, and a recorded value is known only on the device; "
            f"use `with {name.replace('_codegenIf', '_if').replace('_codegenElseif', '_elseif')}(c):`"
        )
    what = f"the Python bool {test}" if isinstance(test, bool) else described(test)
    raise SemanticError(
        f"`{name}` wants an expression of `_target`, not {what}, which is known while recording; use Python's `if`"
    )


class _codegenIf(BlockContext):
    """`with _codegenIf(c):` records a block for the targets where c holds, an expression of `_target`."""

    def __init__(self, c: Any) -> None:
        self.cond = _condition(c, "_codegenIf")
        super().__init__("_codegenIf")

    def closes(self, body: list[Stmt]) -> None:
        set_chain(self.recorder, If(self.cond, tuple(body), (), self.loc), new=True)


class _codegenElseif(BlockContext):
    """`with _codegenElseif(c):` after `_codegenIf`: for the targets that have none of the blocks before it."""

    def __init__(self, c: Any) -> None:
        self.cond = _condition(c, "_codegenElseif")
        self.chain = open_chain(current("`_codegenElseif`"), "_codegenElseif")
        super().__init__("_codegenElseif")

    def closes(self, body: list[Stmt]) -> None:
        set_chain(self.recorder, extended(self.chain, (If(self.cond, tuple(body), (), self.loc),)))


class _codegenElse(BlockContext):
    """`with _codegenElse():` after `_codegenIf` or `_codegenElseif`: for the remaining targets."""

    def __init__(self) -> None:
        self.chain = open_chain(current("`_codegenElse`"), "_codegenElse")
        super().__init__("_codegenElse")

    def closes(self, body: list[Stmt]) -> None:
        self.recorder.scope.statements[-1] = extended(self.chain, tuple(body))
