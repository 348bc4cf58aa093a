"""Control flow: `with _if(c):` and its relatives, each a guard object that records a block."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, NoReturn

from gpuop.dsl.frames import Position, assigned_name, check_called, inside_call, stored_line
from gpuop.dsl.record import Recorder, Scope, caller, current
from gpuop.dsl.value import Operand, Value, atom, integer
from gpuop.dsl.variable import Variable
from gpuop.errors import Loc, SemanticError, article, here
from gpuop.ir.build import constant
from gpuop.ir.nodes import Break, Const, Continue, Expr, For, If, Ref, Stmt, Var, While
from gpuop.ir.types import BOOL, INT, SMALL_TENSOR, Shape, ShapeLike, Type
from gpuop.ir.visit import Copier


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
        self.entered = 0
        self.held: dict[str, Any] = {}

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
        check_called(self.frame.f_code)
        self.entered = self.frame.f_lasti
        held = {name: value for name, value in self.frame.f_locals.items() if isinstance(value, Value)}
        self.held = {name: value for name, value in held.items() if self.recorder.alive(value)}
        self.recorder.push(Scope(self.name, self.loc))
        return self.opens()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        frame, self.frame = self.frame, None
        if kind is not None:
            self.recorder.pop()
            return
        self.recorder.check_pending()
        body = self.recorder.pop()
        assert frame is not None
        self._check_rebound(frame)
        self.closes(body)

    def _check_rebound(self, frame: FrameType) -> None:
        now = frame.f_locals
        for name, value in self.held.items():
            if isinstance(now.get(name), Value) and now[name] is not value:
                advice = (
                    f"`{name}` is a variable: assign with `{name} @= …`"
                    if isinstance(value, Variable)
                    else f"declare `{name} = _var(…)` before the block and assign `{name} @= …` inside"
                )
                line = stored_line(frame, name, self.entered)
                raise SemanticError(
                    f"`{name}` is bound to another value inside this `{self.name}` block, which the device cannot see; {advice}",
                    Loc(frame.f_code.co_filename, line) if line is not None else self.loc,
                )


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


# --- if -------------------------------------------------------------------------------------------------------------


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
        self.head = recorder.take_since(0, _inside(caller(), "_elseif"))
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


# --- loops ----------------------------------------------------------------------------------------------------------


def _inside(frame: FrameType, name: str) -> Callable[[tuple[Position, ...]], bool]:
    """A test of marks: was the statement recorded while the frame evaluated `name(…)`?"""
    owner, start, stop = inside_call(frame, name)
    return lambda mark: any(f == owner and start <= offset <= stop for f, offset in mark)


class _while(Guard):
    """`with _while(c):` or `_while(lambda: c)`; the condition is computed anew before every turn."""

    def __init__(self, c: Operand) -> None:
        recorder = current("`_while`")
        if callable(c) and not isinstance(c, Value):
            first = len(recorder.scope.statements)
            self.cond = condition(c(), "_while")
            self.head = recorder.take_since(first, lambda mark: True)
        else:
            self.cond = condition(c, "_while")
            self.head = recorder.take_since(0, _inside(caller(), "_while"))
        computed = (
            any(getattr(stmt, "var", None) is self.cond.var for stmt, _ in self.head)
            if isinstance(self.cond, Ref)
            else True
        )
        if isinstance(self.cond, Ref) and not computed and not self.cond.var.mutable:
            raise SemanticError(
                "the condition was computed before the loop and never changes; write the expression inside the `_while(…)` itself"
            )
        super().__init__("_while")

    def opens(self) -> None:
        self.recorder.put(self.head)
        self.split = len(self.recorder.scope.statements)

    def closes(self, body: list[Stmt]) -> None:
        self.recorder.emit(While(tuple(body[: self.split]), self.cond, tuple(body[self.split :]), self.loc))


def _bound(value: Operand) -> Expr:
    """A bound of `_for` as it is at entry, whatever the loop assigns to the variable behind it."""
    expr = integer(value, "a bound of `_for`")
    if isinstance(expr, Ref) and expr.var.mutable:
        return current().declare(Var(expr.var.hint, expr.type), expr)
    return expr


class _for(Guard):
    """`with _for(stop) as i:` or `with _for(start, stop, step=1) as i:`; bounds bind at entry, i is read-only.

    Args:
        unroll: True, or a factor; a hint, or the loop's full expansion where its bounds are constants.
    """

    def __init__(self, *bounds: Operand, step: Operand = 1, unroll: bool | int = 1) -> None:
        if not 1 <= len(bounds) <= 3:
            raise SemanticError("`_for` takes (stop), (start, stop) or (start, stop, step)")
        start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
        step = bounds[2] if len(bounds) == 3 else step
        self.bounds = tuple(map(_bound, (start, stop, step)))
        if isinstance(self.bounds[2], Const) and self.bounds[2].value == 0:
            raise SemanticError("a `_for` with step 0 never ends")
        self.unroll = 0 if unroll is True else int(unroll)
        super().__init__("_for")

    def opens(self) -> Variable:
        self.var = Var(assigned_name(self.frame) or "i", Type(INT))
        self.recorder.scope_of[self.var] = self.recorder.scope
        return Variable(Ref(self.var))

    def closes(self, body: list[Stmt]) -> None:
        start, stop, step = self.bounds
        self.recorder.emit(For(self.var, start, stop, step, tuple(body), self.unroll, self.loc))


class _forEachTensorElement(Guard):
    """`with _forEachTensorElement(shape):` records its block for every element of a tensor; `_tensorElement` counts them."""

    def __init__(self, shape: ShapeLike) -> None:
        if isinstance(shape, Value):
            raise SemanticError(
                "`_forEachTensorElement` takes a tensor's shape, as `f.tensor_shape`; count with `_for`"
            )
        self.count = (Shape(shape) if not isinstance(shape, int) else Shape((shape,))).points
        super().__init__("_forEachTensorElement")

    def opens(self) -> None:
        self.var = Var("tensorElement", Type(INT))
        self.recorder.scope_of[self.var] = self.recorder.scope
        self.recorder.elements.append((Ref(self.var), self.count))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.recorder.elements.pop()
        super().__exit__(kind, error, trace)

    def closes(self, body: list[Stmt]) -> None:
        if self.count <= SMALL_TENSOR:
            for element in range(self.count):
                for stmt in Copier(tuple(body), {self.var: constant(element, INT)}).copy():
                    self.recorder.emit(stmt)
            return
        zero, one = constant(0, INT), constant(1, INT)
        loop = For(self.var, zero, constant(self.count, INT), one, tuple(body), 1, self.loc)
        self.recorder.element_loop = loop
        self.recorder.emit(loop)


def _leave(name: str, stmt: Break | Continue) -> None:
    recorder = current(f"`{name}`")
    kinds = [scope.kind for scope in recorder.scopes if scope.kind in ("_for", "_while", "_forEachTensorElement")]
    if not kinds:
        raise SemanticError(f"`{name}()` stands outside a loop")
    if kinds[-1] == "_forEachTensorElement":
        raise SemanticError(
            f"`{name}()` cannot leave `_forEachTensorElement`: its elements are handled independently; use `_if`"
        )
    recorder.emit(stmt)


def _break() -> None:
    """Leave the innermost loop."""
    _leave("_break", Break(here()))


def _continue() -> None:
    """Start the next turn of the innermost loop."""
    _leave("_continue", Continue(here()))
