"""Definite assignment: the parts of an output that every path writes at the own point of a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from gpuop.base.records import dataclass
from gpuop.ir import nodes as ir
from gpuop.ir.build import constant
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import BOOL
from gpuop.ir.visit import loop_values, walk

Elements = frozenset[int | ir.Var]  # element numbers of a tensor; a loop counter represents the element of an iteration
NONE: Elements = frozenset()


def covers(block: ir.Block, field: ir.FieldParam, domain: Domain) -> bool:
    """Return whether every path through the block writes every element of the own tensor."""
    whole = _whole(field, domain)
    return any(
        _Paths(field, domain, flag).block(block, Reached(NONE), _Leaving()).on_all_paths >= whole
        for flag in (None, *_flags(block))
    )


def has_static_elements(block: ir.Block, field: ir.FieldParam) -> bool:
    """Return whether an output is only written at own points, and at elements that are constant or counters of loops with
    known iterations.
    """
    counters = {stmt.var for stmt in walk(block) if isinstance(stmt, ir.For) and loop_values(stmt) is not None}
    return all(
        stmt.point is None and (stmt.element is None or _element(stmt.element, counters))
        for stmt in walk(block)
        if isinstance(stmt, ir.Write) and stmt.field is field
    )


def _element(element: ir.Expr, counters: set[ir.Var]) -> bool:
    return isinstance(element, (ir.Const, ir.Index)) or (isinstance(element, ir.Ref) and element.var in counters)


def _whole(field: ir.FieldParam, domain: Domain) -> Elements:
    """All elements; number 0 where threads have one each."""
    return frozenset(range(field.type.planes if domain.elements == 1 else 1))


@dataclass(frozen=True, slots=True)
class Reached:
    """Elements written on every path to a statement: on paths with the flag down, and on those with it up.

    None if there is no such path.
    """

    down: Elements | None = None
    up: Elements | None = None

    def map(self, change: Callable[[Elements], Elements]) -> Reached:
        return Reached(*(None if written is None else change(written) for written in (self.down, self.up)))

    def __and__(self, other: Reached) -> Reached:
        """Elements written on these paths and on others."""
        return Reached(_both(self.down, other.down), _both(self.up, other.up))

    @property
    def on_all_paths(self) -> Elements:
        """Elements written on all paths."""
        common = _both(self.down, self.up)
        return NONE if common is None else common


def _both(left: Elements | None, right: Elements | None) -> Elements | None:
    return right if left is None else left if right is None else left & right


def _flags(block: ir.Block) -> Iterator[ir.Var]:
    """The variables that are False at first and only ever become True, as the one of `_return()`."""
    raised: dict[ir.Var, bool] = {}
    for stmt in walk(block):
        if isinstance(stmt, ir.Assign):
            true = isinstance(stmt.value, ir.Const) and bool(stmt.value.value)
            raised[stmt.var] = true and raised.get(stmt.var, True)
    for stmt in block:
        if (
            isinstance(stmt, ir.Let)
            and stmt.var.mutable
            and stmt.value == constant(False, BOOL)
            and raised.get(stmt.var)
        ):
            yield stmt.var


@dataclass(slots=True)
class _Leaving:
    """Elements written where an iteration of a loop is left."""

    breaks: Reached = Reached()
    continues: Reached = Reached()


@dataclass(frozen=True, slots=True)
class _Paths:
    """Follows the paths through a body.

    Attributes:
        flag: the variable that distinguishes paths; None: none.
    """

    field: ir.FieldParam
    domain: Domain
    flag: ir.Var | None

    def block(self, block: Iterable[ir.Stmt], at: Reached, leaving: _Leaving) -> Reached:
        """Elements written at the end of a block; statements of any other kind count as writing nothing."""
        negated: set[ir.Var] = set()  # names that still equal `not flag`
        for stmt in block:
            match stmt:
                case ir.Write(field=written, point=None) if written is self.field:
                    new = _elements_of(stmt, self.domain)
                    at = at.map(lambda done, new=new: done | new)  # type: ignore[misc]
                case ir.Assign(var=var) if var is self.flag:
                    at = Reached(None, _both(at.down, at.up))
                case ir.Let(var=var, value=ir.Apply(op="not", args=(ir.Ref(var=source),))) if source is self.flag:
                    negated.add(var)
                    continue
                case ir.If():
                    at = self._branches(stmt, at, leaving, negated)
                case ir.For() | ir.While():
                    at = self._loop(stmt, at)
                case ir.Break():
                    leaving.breaks &= at
                    return Reached()
                case ir.Continue():
                    leaving.continues &= at
                    return Reached()
            if negated and any(isinstance(s, ir.Assign) and s.var is self.flag for s in walk((stmt,))):
                negated.clear()
        return at

    def _branches(self, stmt: ir.If, at: Reached, leaving: _Leaving, negated: set[ir.Var]) -> Reached:
        up, down = Reached(None, at.up), Reached(at.down, None)
        match stmt.cond:
            case ir.Ref(var=var) if var is self.flag:
                then, orelse = up, down
            case ir.Ref(var=var) if var in negated:
                then, orelse = down, up
            case ir.Apply(op="not", args=(ir.Ref(var=var),)) if var is self.flag:
                then, orelse = down, up
            case _:
                then, orelse = at, at
        return self.block(stmt.then, then, leaving) & self.block(stmt.orelse, orelse, leaving)

    def _loop(self, loop: ir.For | ir.While, at: Reached) -> Reached:
        """Elements written after a loop, whose iterations begin as the first does or as one ends."""
        begin = at
        while True:
            leaving = _Leaving()
            end = self.block(loop.body, begin, leaving) & leaving.continues
            after = begin & end.map(lambda done: done - {getattr(loop, "var", None)})
            if after == begin:
                break
            begin = after
        breaks = leaving.breaks
        if isinstance(loop, ir.While):
            return breaks if isinstance(loop.cond, ir.Const) and loop.cond.value else breaks & begin
        var, values = loop.var, loop_values(loop)
        breaks = breaks.map(lambda done: done - {var})
        if not values:
            return begin & breaks
        return breaks & end.map(lambda done: done - {var} | frozenset(values if var in done else ()))


def _elements_of(write: ir.Write, domain: Domain) -> Elements:
    field, element = write.field, write.element
    if domain.elements > 1:
        own = element == ir.Index("global", "element") and field.type.planes <= domain.elements
        return frozenset({0}) if own else NONE
    match element:
        case None:
            return _whole(field, domain)
        case ir.Const(value=value):
            return frozenset({int(value)})
        case ir.Ref(var=var):
            return frozenset({var})
    return NONE
