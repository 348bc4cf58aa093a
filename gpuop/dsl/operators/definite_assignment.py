"""What every path through a body writes of an output, at the thread's own point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from gpuop.ir.build import constant
from gpuop.ir.nodes import (
    Apply,
    Assign,
    Block,
    Break,
    Const,
    Continue,
    Expr,
    FieldParam,
    For,
    If,
    Index,
    Let,
    Ref,
    Stmt,
    Var,
    While,
    Write,
)
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import BOOL
from gpuop.ir.visit import loop_values, walk

Elements = frozenset[int | Var]  # of a tensor, by number; a loop's counter stands for the element that a turn writes
NONE: Elements = frozenset()


def covers(block: Block, field: FieldParam, domain: Domain) -> bool:
    """Whether every path through the block writes every element of the thread's own tensor."""
    whole = _whole(field, domain)
    return any(
        _Paths(field, domain, flag).block(block, Reached(NONE), _Leaving()).surely >= whole
        for flag in (None, *_flags(block))
    )


def counted(block: Block, field: FieldParam) -> bool:
    """Whether an output is only written at own points, and at elements that are known, or counted by loops whose turns are."""
    counters = {stmt.var for stmt in walk(block) if isinstance(stmt, For) and loop_values(stmt) is not None}
    return all(
        stmt.point is None and (stmt.element is None or _element(stmt.element, counters))
        for stmt in walk(block)
        if isinstance(stmt, Write) and stmt.field is field
    )


def _element(element: Expr, counters: set[Var]) -> bool:
    return isinstance(element, (Const, Index)) or (isinstance(element, Ref) and element.var in counters)


def _whole(field: FieldParam, domain: Domain) -> Elements:
    """All elements; where threads have one each, it is number 0."""
    return frozenset(range(field.type.planes if domain.elements == 1 else 1))


@dataclass(frozen=True, slots=True)
class Reached:
    """What every path to a statement has written: paths on which a flag has not been raised, and those on which it has been.

    None where no path comes so.
    """

    down: Elements | None = None
    up: Elements | None = None

    def map(self, change: Callable[[Elements], Elements]) -> Reached:
        return Reached(*(None if written is None else change(written) for written in (self.down, self.up)))

    def __and__(self, other: Reached) -> Reached:
        """What these paths and others have written."""
        return Reached(_both(self.down, other.down), _both(self.up, other.up))

    @property
    def surely(self) -> Elements:
        """What all of the paths have written."""
        found = _both(self.down, self.up)
        return NONE if found is None else found


def _both(left: Elements | None, right: Elements | None) -> Elements | None:
    return right if left is None else left if right is None else left & right


def _flags(block: Block) -> Iterator[Var]:
    """The variables that are False at first and only ever become True, as the one of `_return()`."""
    raised: dict[Var, bool] = {}
    for stmt in walk(block):
        if isinstance(stmt, Assign):
            true = isinstance(stmt.value, Const) and bool(stmt.value.value)
            raised[stmt.var] = true and raised.get(stmt.var, True)
    for stmt in block:
        if isinstance(stmt, Let) and stmt.var.mutable and stmt.value == constant(False, BOOL) and raised.get(stmt.var):
            yield stmt.var


@dataclass(slots=True)
class _Leaving:
    """What has been written where a turn of a loop is left."""

    breaks: Reached = Reached()
    continues: Reached = Reached()


@dataclass(frozen=True, slots=True)
class _Paths:
    """Follows the paths through a body.

    Attributes:
        flag: the one that conditions are told apart by; None: none.
    """

    field: FieldParam
    domain: Domain
    flag: Var | None

    def block(self, block: Iterable[Stmt], at: Reached, leaving: _Leaving) -> Reached:
        """What is written at the end of a block, of which statements of any other kind are taken to write nothing."""
        negated: set[Var] = set()  # names of `not flag` that hold still
        for stmt in block:
            match stmt:
                case Write(field=written, point=None) if written is self.field:
                    new = _of_write(stmt, self.domain)
                    at = at.map(lambda done, new=new: done | new)  # type: ignore[misc]
                case Assign(var=var) if var is self.flag:
                    at = Reached(None, _both(at.down, at.up))
                case Let(var=var, value=Apply(op="not", args=(Ref(var=of),))) if of is self.flag:
                    negated.add(var)
                    continue
                case If():
                    at = self._branches(stmt, at, leaving, negated)
                case For() | While():
                    at = self._loop(stmt, at)
                case Break():
                    leaving.breaks &= at
                    return Reached()
                case Continue():
                    leaving.continues &= at
                    return Reached()
            if negated and any(isinstance(s, Assign) and s.var is self.flag for s in walk((stmt,))):
                negated.clear()
        return at

    def _branches(self, stmt: If, at: Reached, leaving: _Leaving, negated: set[Var]) -> Reached:
        up, down = Reached(None, at.up), Reached(at.down, None)
        match stmt.cond:
            case Ref(var=var) if var is self.flag:
                then, orelse = up, down
            case Ref(var=var) if var in negated:
                then, orelse = down, up
            case Apply(op="not", args=(Ref(var=var),)) if var is self.flag:
                then, orelse = down, up
            case _:
                then, orelse = at, at
        return self.block(stmt.then, then, leaving) & self.block(stmt.orelse, orelse, leaving)

    def _loop(self, loop: For | While, at: Reached) -> Reached:
        """What is written behind a loop, whose turns begin as the first does or as one ends."""
        begin = at
        while True:
            leaving = _Leaving()
            end = self.block(loop.body, begin, leaving) & leaving.continues
            after = begin & end.map(lambda done: done - {getattr(loop, "var", None)})
            if after == begin:
                break
            begin = after
        breaks = leaving.breaks
        if isinstance(loop, While):
            return breaks if isinstance(loop.cond, Const) and loop.cond.value else breaks & begin
        var, values = loop.var, loop_values(loop)
        breaks = breaks.map(lambda done: done - {var})
        if not values:
            return begin & breaks
        return breaks & end.map(lambda done: done - {var} | frozenset(values if var in done else ()))


def _of_write(write: Write, domain: Domain) -> Elements:
    field, element = write.field, write.element
    if domain.elements > 1:
        own = element == Index("global", "element") and field.type.planes <= domain.elements
        return frozenset({0}) if own else NONE
    match element:
        case None:
            return _whole(field, domain)
        case Const(value=value):
            return frozenset({int(value)})
        case Ref(var=var):
            return frozenset({var})
    return NONE
