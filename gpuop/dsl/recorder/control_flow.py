"""Blocks of control flow: entering one opens a block, leaving it records the statement."""

from __future__ import annotations

from types import FrameType, TracebackType
from typing import Any, NoReturn

from gpuop.base.errors import SemanticError, article, here
from gpuop.dsl.recorder.frames import check_frame
from gpuop.dsl.recorder.rebinding import Held
from gpuop.dsl.recorder.recorder import Scope, caller, current
from gpuop.dsl.recorder.source_checks import check_returns
from gpuop.dsl.recorder.value import Operand, atom
from gpuop.ir.build import constant
from gpuop.ir.nodes import Expr, Stmt
from gpuop.ir.types import BOOL, Type


class Uncalled(type):
    """The class of the guards' classes: `with _else:` is not a block."""

    def __enter__(cls) -> NoReturn:
        raise SemanticError(f"`{cls.__name__}` opens a block when it is called; write `with {cls.__name__}(…):`")

    def __exit__(cls, *exc: object) -> None:
        """Python looks for it before it enters."""


class Guard(metaclass=Uncalled):
    """What `_if(…)` and its like return; entering it opens the block, leaving it records the statement."""

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
        """Called with the block open; what `as` binds."""

    def closes(self, body: list[Stmt]) -> None:
        """Called with the block closed, to record the statement."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        self.recorder.pending = None
        self.frame = caller()
        check_frame(self.frame)
        check_returns(self.frame.f_code)
        self.held = Held(self.frame, self.recorder)
        self.recorder.push(Scope(self.name, self.loc))
        self.made = self.opens()
        return self.made

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        held, made, self.frame = self.held, self.made, None
        del self.held, self.made  # they know the frame, and the recorder
        if kind is not None:
            self.recorder.pop()
            return
        self.recorder.check_pending()
        body = self.recorder.pop()
        held.check(self.name, self.loc, made)
        self.closes(body)


def condition(value: Operand, name: str) -> Expr:
    """A scalar truth value; integers and floating values count as `!= 0`."""
    given = atom(value)
    if not isinstance(given, (bool, int, float)):
        if given.type.lanes > 1:
            raise SemanticError(
                f"`{name}` wants a scalar condition, not {article(str(given.type))}; combine the components, as in `c.x & c.y`"
            )
        return current().build.cast(given, Type(BOOL))
    return constant(bool(given), BOOL)
