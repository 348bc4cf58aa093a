"""Conditional compilation: `with _codegenIf(c):`, `_codegenElseif`, `_codegenElse`. All branches are recorded, code for a
target has one.
"""

from __future__ import annotations

from typing import Any

from gpuop.base.errors import SemanticError, described
from gpuop.dsl.builtins.conditionals import extended, open_chain, set_chain
from gpuop.dsl.recorder.control_flow import BlockContext
from gpuop.dsl.recorder.recorder import current
from gpuop.dsl.recorder.target_facts import TargetExpression
from gpuop.dsl.recorder.value import Value
from gpuop.ir.nodes import If, Stmt
from gpuop.ir.target_expressions import TargetConst, kind_of
from gpuop.ir.types import BOOL, Type


def _condition(given: Any, name: str) -> TargetConst:
    if isinstance(given, TargetExpression):
        if kind_of(given.known) is str:
            raise SemanticError(f"`{name}` wants a condition, and `{given!r}` is a text; compare it with another one")
        return TargetConst(given.known, Type(BOOL))
    if isinstance(given, Value):
        raise SemanticError(
            f"`{name}` decides when code is generated, and a recorded value is known only on the device; "
            f"use `with {name.replace('_codegenIf', '_if').replace('_codegenElseif', '_elseif')}(c):`"
        )
    what = f"the Python bool {given}" if isinstance(given, bool) else described(given)
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
