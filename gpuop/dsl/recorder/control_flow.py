"""Blocks of control flow: entering one opens a block, leaving it records the statement."""

from __future__ import annotations

from types import FrameType, TracebackType
from typing import Any, NoReturn

from gpuop.base.errors import SemanticError, article, here
from gpuop.dsl.recorder.frames import check_frame
from gpuop.dsl.recorder.rebinding import NameBindings
from gpuop.dsl.recorder.recorder import Scope, caller, current
from gpuop.dsl.recorder.source_checks import check_returns
from gpuop.dsl.recorder.value import Operand, atom
from gpuop.ir.build import constant
from gpuop.ir.nodes import Expr, Stmt
from gpuop.ir.types import BOOL, Type


class Uncalled(type):
    """Metaclass of block classes: `with _else:` without parentheses is an error."""

    def __enter__(cls) -> NoReturn:
        raise SemanticError(f"`{cls.__name__}` opens a block when it is called; write `with {cls.__name__}(…):`")

    def __exit__(cls, *exc: object) -> None:
        """Python looks it up before it enters."""


class BlockContext(metaclass=Uncalled):
    """Result of `_if(…)` and its like; entering it opens the block, leaving it records the statement."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.loc = here()
        self.recorder = current(f"`{name}`")
        self.recorder.check_pending()
        self.recorder.pending = (name, self.loc)
        self.frame: FrameType | None = None

    def __bool__(self) -> NoReturn:
        raise SemanticError(f"`{self.name}(…)` opens a block; write `with {self.name}(…):`", self.loc)

    def __iter__(self) -> NoReturn:
        raise SemanticError(f"`{self.name}(…)` opens a block; write `with {self.name}(…) as i:`", self.loc)

    def opens(self) -> Any:
        """Hook in the open block; returns the value of `as`."""

    def closes(self, body: list[Stmt]) -> None:
        """Hook after the block, which records the statement."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        self.recorder.pending = None
        self.frame = caller()
        check_frame(self.frame)
        check_returns(self.frame.f_code)
        self.bindings = NameBindings(self.frame, self.recorder)
        self.recorder.push(Scope(self.name, self.loc))
        self.target = self.opens()
        return self.target

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        bindings, target, self.frame = self.bindings, self.target, None
        del self.bindings, self.target  # they refer to the frame and the recorder
        if kind is not None:
            self.recorder.pop()
            return
        self.recorder.check_pending()
        body = self.recorder.pop()
        bindings.check(self.name, self.loc, target)
        self.closes(body)


def condition(value: Operand, name: str) -> Expr:
    """A scalar truth value; integers and floating values count as `!= 0`."""
    source = atom(value)
    if not isinstance(source, (bool, int, float)):
        if source.type.lanes > 1:
            raise SemanticError(
                f"`{name}` wants a scalar condition, not {article(str(source.type))}; combine the components, as in `c.x & c.y`"
            )
        return current().build.cast(source, Type(BOOL))
    return constant(bool(source), BOOL)
