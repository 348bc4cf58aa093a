"""Children of nodes. The field types of a dataclass alone decide which fields hold expressions, blocks and symbols.

Each class is examined once. A class that is no node, or holds nodes in an unknown way, is a TypeError.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter, is_
from types import NoneType, UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

from gpuop.base.records import dataclass
from gpuop.ir.nodes import Array, Block, Const, Expr, FieldParam, Stmt, Var

Names: TypeAlias = tuple[str, ...]
NODES = (*get_args(Expr), *get_args(Stmt))
SYMBOLS = {Var, Array, FieldParam}


@dataclass(frozen=True, slots=True)
class Children:
    """Accessors of the children of a node class; mapping returns the same node if nothing changed.

    Attributes:
        values: direct expressions of a node, in the order of its fields.
        blocks: its blocks.
        map_values, map_blocks, map_symbols: functions of a node and of a replacement of its expressions, blocks or symbols.
    """

    values: Callable[[Any], tuple[Expr, ...]]
    blocks: Callable[[Any], tuple[Block, ...]]
    map_values: Callable[[Any, Callable[[Any], Any]], Any]
    map_blocks: Callable[[Any, Callable[[Any], Any]], Any]
    map_symbols: Callable[[Any, Callable[[Any], Any]], Any]


def children_of(cls: type) -> Children:
    """The children of a class of nodes, from the types of its fields.

    Raises:
        TypeError: a field holds nodes in another way than as an expression, a tuple of expressions or a block.
    """
    names_of_kind: dict[str, list[str]] = {"expr": [], "exprs": [], "block": [], "symbol": []}
    maybe = set()  # fields that may be None
    hints = get_type_hints(cls)
    for field in fields(cls):
        options = _options(hints[field.name])
        kind = _kind(options - {NoneType})
        if kind:
            names_of_kind[kind].append(field.name)
        elif _holds_nodes(hints[field.name]):
            raise TypeError(f"{cls.__name__}.{field.name}: nodes in a {hints[field.name]} would not be visited")
        if NoneType in options:
            maybe.add(field.name)
    exprs, many, blocks, symbols = (tuple(names) for names in names_of_kind.values())
    order = tuple(field.name for field in fields(cls) if field.name in (*exprs, *many))
    return Children(
        _taking(order, many, maybe),
        _taking(blocks),
        _mapping(cls, order, many),
        _mapping(cls, blocks),
        _mapping(cls, symbols),
    )


def _options(hint: Any) -> set[Any]:
    return set(get_args(hint)) if get_origin(hint) in (Union, UnionType) else {hint}


def _kind(options: set[Any]) -> str:
    """Kind of child in a field of these types, "" for no child."""
    if options == set(get_args(Expr)):
        return "expr"
    if options == {tuple[Expr, ...]}:
        return "exprs"
    if options == {Block}:
        return "block"
    return "symbol" if options <= SYMBOLS else ""


def _holds_nodes(hint: Any) -> bool:
    """True if a type mentions nodes or symbols; a constant that a node has as a fact is no child."""
    return (hint in NODES and hint is not Const) or hint in SYMBOLS or any(map(_holds_nodes, get_args(hint)))


def none(node: Any) -> tuple[Any, ...]:
    """The children of a node that never has any."""
    return ()


def _taking(names: Names, many: Names = (), maybe: set[str] | frozenset[str] = frozenset()) -> Callable[[Any], Any]:
    """A function that gives the children in some fields of a node: the fastest one that these fields allow."""
    if not names:
        return none
    take = attrgetter(*names)
    if maybe.isdisjoint(names) and not many:
        return take if len(names) > 1 else lambda node: (take(node),)
    if names == many and len(names) == 1:
        return (lambda node: take(node) or ()) if maybe else take
    takers = [(attrgetter(name), name in many) for name in names]

    def taken(node: Any) -> tuple[Any, ...]:
        result: list[Any] = []
        for get, several in takers:
            value = get(node)
            if value is not None:
                result += value if several else (value,)
        return tuple(result)

    return taken


def _mapping(cls: type, names: Names, many: Names = ()) -> Callable[[Any, Callable[[Any], Any]], Any]:
    """A function that replaces the children in some fields of a node. It is called for every node of every pass."""
    if not names:
        return lambda node, f: node
    positions = [field.name for field in fields(cls) if field.init]
    takers = [(positions.index(name), attrgetter(name), name in many) for name in names]
    take = attrgetter(*positions) if len(positions) > 1 else lambda node: (getattr(node, positions[0]),)
    if len(names) == 1:
        return _mapping_one(cls, *takers[0], take)

    def mapped(node: Any, f: Callable[[Any], Any]) -> Any:
        fresh: list[Any] | None = None
        for position, get, several in takers:
            value = get(node)
            if value is None:
                continue
            moved = tuple(map(f, value)) if several else f(value)
            if moved is not value and not (several and all(map(is_, value, moved))):
                fresh = fresh or list(take(node))
                fresh[position] = moved
        return cls(*fresh) if fresh else node

    return mapped


def _mapping_one(
    cls: type, position: int, get: Callable[[Any], Any], several: bool, take: Callable[[Any], Any]
) -> Callable[[Any, Callable[[Any], Any]], Any]:
    """The same of one field, as most nodes have."""

    def mapped_many(node: Any, f: Callable[[Any], Any]) -> Any:
        value = get(node)
        moved = value and tuple(map(f, value))
        if not value or all(map(is_, value, moved)):
            return node
        fresh = list(take(node))
        fresh[position] = moved
        return cls(*fresh)

    def mapped_one(node: Any, f: Callable[[Any], Any]) -> Any:
        value = get(node)
        if value is None or (moved := f(value)) is value:
            return node
        fresh = list(take(node))
        fresh[position] = moved
        return cls(*fresh)

    return mapped_many if several else mapped_one


class _Table(dict[type, Children]):
    """The children of each class of nodes."""

    def __missing__(self, cls: type) -> Children:
        raise TypeError(f"{cls.__name__} is no class of nodes: it is not in the unions Expr and Stmt")


CHILDREN = _Table((cls, children_of(cls)) for cls in NODES)
