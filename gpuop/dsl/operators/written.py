"""What every path through a body writes of an output, at the thread's own point."""

from __future__ import annotations

from collections.abc import Iterable

from gpuop.ir.nodes import Block, Break, Const, Continue, Expr, FieldParam, For, If, Index, Ref, Stmt, Var, While, Write
from gpuop.ir.thread_grid import Domain
from gpuop.ir.visit import leaving, loop_values, walk

Elements = frozenset[int | Var]  # of a tensor, by number; a loop's counter stands for the element that a turn writes
NONE: Elements = frozenset()


def covers(block: Block, field: FieldParam, domain: Domain) -> bool:
    """Whether every path through the block writes every element of the thread's own tensor."""
    whole = _whole(field, domain)
    return _written(block, field, domain) >= whole


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


def _written(block: Iterable[Stmt], field: FieldParam, domain: Domain) -> Elements:
    """The elements that a block writes for sure; a statement of any other kind is taken to write none."""
    done = NONE
    for stmt in block:
        match stmt:
            case Write(field=written, point=None) if written is field:
                done |= _of_write(stmt, domain)
            case If(then=then, orelse=orelse):
                done |= _written(then, field, domain) & _written(orelse, field, domain)
            case For(var=var, body=body) if not any(True for _ in leaving(body)):
                values = loop_values(stmt)
                inner = _written(body, field, domain) if values else NONE
                done |= inner - {var} | frozenset(values or () if var in inner else ())
            case While(cond=Const(value=True), body=body):
                # it is left by its breaks, in the first turn at the earliest
                _, breaks = _ends(body, field, domain)
                done |= frozenset.intersection(*breaks) if breaks else NONE
    return done


def _ends(
    block: Block, field: FieldParam, domain: Domain, done: Elements = NONE
) -> tuple[Elements | None, list[Elements]]:
    """What a turn of a loop has written at the end of a block, None if it never comes there, and at each break."""
    breaks: list[Elements] = []
    for stmt in block:
        match stmt:
            case Break():
                return None, [*breaks, done]
            case Continue():
                return None, breaks
            case If(then=then, orelse=orelse):
                branches = [_ends(branch, field, domain, done) for branch in (then, orelse)]
                breaks += [written for _, found in branches for written in found]
                through = [end for end, _ in branches if end is not None]
                if not through:
                    return None, breaks
                done = frozenset.intersection(*through)
            case _:
                done |= _written((stmt,), field, domain)
    return done, breaks


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
