"""Expressions of kernels: their text, and their values for one thread."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from . import machine as m
from .stencils import read
from .values import Rejected, Val

Type = tuple[str, int]  # C's name of the scalar, and how many
INT, BOOL = ("int", 1), ("bool", 1)


def named(t: Type) -> str:
    return t[0] + (str(t[1]) if t[1] > 1 else "")


@dataclass(frozen=True)
class Node:
    """An expression.

    Attributes:
        op: what it is: a key of `TEXT` and `VALUE`, or an operator.
        data: what else there is to know: a number, a name, a field and its border.
    """

    op: str
    type: Type
    args: tuple[Node, ...] = ()
    data: Any = None

    def text(self) -> str:
        return TEXT.get(self.op, _operator)(self, *(a.text() for a in self.args))

    def value(self, thread: Thread) -> Any:
        return VALUE[self.op](self, thread)

    def names(self) -> set[str]:
        own = {self.data} if self.op in ("name", "element") else set()
        return own.union(*(a.names() for a in self.args))

    def smaller(self) -> Iterator[Node]:
        """Parts of the same type, a constant, the same of simpler parts."""
        for a in self.args:
            if a.type == self.type and a.op != "number":
                yield a
        if self.args:
            yield constant(1, self.type)
        for k, a in enumerate(self.args):
            for b in a.smaller():
                yield replace(self, args=(*self.args[:k], b, *self.args[k + 1 :]))


@dataclass
class Thread:
    """The values of one thread."""

    at: dict[str, int]
    fields: dict[str, Val]
    values: dict[str, Any] = field(default_factory=dict)
    types: dict[str, Type] = field(default_factory=dict)
    arrays: dict[str, list[Any]] = field(default_factory=dict)


def constant(value: Any, t: Type) -> Node:
    return Node("constant", t, (), value)


def typed(value: Any, t: str) -> Any:
    return m.REAL[t](value) if t in m.REAL else bool(value) if t == "bool" else int(value)


def lanes(value: Any, n: int) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,) * n


def spread(function: Callable[..., Any], n: int, *values: Any) -> Any:
    """Component by component."""
    if n == 1:
        return function(*values)
    return tuple(function(*parts) for parts in zip(*(lanes(v, n) for v in values), strict=True))


def converted(value: Any, source: Type, target: Type, saturating: bool = True) -> Any:
    """A value of a type as another one; a scalar spreads."""
    return spread(lambda x: m.convert(x, source[0], target[0], saturating), target[1], value)


# --- text -----------------------------------------------------------------------------------------------------------------


def _operator(node: Node, *args: str) -> str:
    return f"({node.op}{args[0]})" if len(args) == 1 else f"({args[0]} {node.op} {args[1]})"


def _constant(node: Node) -> str:
    if node.type[0] == "bool":
        return f"(_convert_int({int(node.data)}) != 0)"
    return f"_convert_{named(node.type)}({node.data!r})"


def _read(node: Node, *args: str) -> str:
    name, border, element = node.data
    places = [*args, *([str(element)] if element is not None else [])]
    more = f", border={border!r}" if args else ""
    function = "_readTensor" if element is None else "_readTensorElement"
    return f"{function}({', '.join([name, *places])}{more})"


TEXT: dict[str, Callable[..., str]] = {
    "constant": lambda n: _constant(n), "number": lambda n: repr(n.data), "name": lambda n: n.data, "place": lambda n: n.data,
    "swizzle": lambda n, a: f"{a}.{n.data}", "vector": lambda n, *a: f"_{named(n.type)}({', '.join(a)})",
    "element": lambda n, *i: f"{n.data}[{', '.join(i)}]", "where": lambda n, *a: f"_where({', '.join(a)})",
    "convert": lambda n, a: f"_convert_{named(n.type)}({a})", "as": lambda n, a: f"_as_{named(n.type)}({a})",
    "call": lambda n, *a: f"{n.data}({', '.join(a)})", "compare": lambda n, a, b: f"({a} {n.data} {b})",
    "abs": lambda n, a: f"abs({a})", "power": lambda n, a: f"({a} ** {n.data})", "read": _read,
    "_and": lambda n, a, b: f"_and({a}, {b})", "_or": lambda n, a, b: f"_or({a}, {b})", "_not": lambda n, a: f"_not({a})",
}  # fmt: skip

# --- values ---------------------------------------------------------------------------------------------------------------


def _operands(node: Node, thread: Thread, t: str) -> list[Any]:
    return [converted(a.value(thread), a.type, (t, node.type[1]), False) for a in node.args]


def _binary(node: Node, thread: Thread) -> Any:
    t = node.type[0]
    return spread(lambda x, y: m.binary(node.op, x, y, t), node.type[1], *_operands(node, thread, t))


def _shift(node: Node, thread: Thread) -> Any:
    x, by = (a.value(thread) for a in node.args)
    return spread(lambda x, by: m.shift(node.op, x, by, node.type[0]), node.type[1], x, by)


def _minus(node: Node, thread: Thread) -> Any:
    return _binary(node, thread) if len(node.args) == 2 else _unary(node, thread)


def _unary(node: Node, thread: Thread) -> Any:
    (x,) = _operands(node, thread, node.type[0])
    return spread(lambda x: m.unary(node.op, x, node.type[0]), node.type[1], x)


def _compare(node: Node, thread: Thread) -> Any:
    a, b = node.args
    common = m.promoted(a.type[0], b.type[0])
    return spread(lambda x, y: bool(m.COMPARE[node.data](x, y)), node.type[1], *_operands(node, thread, common))


def _where(node: Node, thread: Thread) -> Any:
    c = converted(node.args[0].value(thread), node.args[0].type, ("bool", node.args[0].type[1]))
    a, b = (converted(x.value(thread), x.type, node.type, False) for x in node.args[1:])
    return spread(lambda c, a, b: a if c else b, node.type[1], c, a, b)


def _call(node: Node, thread: Thread) -> Any:
    t = node.args[0].type[0]
    table = m.REALS if t in m.REAL else m.INTEGERS
    args = [lanes(a.value(thread), node.type[1]) for a in node.args]
    function = table[node.data][1]
    return spread(lambda *x: function(*x, t), node.type[1], *(a if node.type[1] > 1 else a[0] for a in args))


def _power(node: Node, thread: Thread) -> Any:
    (x,) = (a.value(thread) for a in node.args)
    t = node.type[0]
    return spread(lambda x: x * x if t in m.REAL else m.wrap(x**node.data, t), node.type[1], x)


def _swizzle(node: Node, thread: Thread) -> Any:
    parts = node.args[0].value(thread)
    chosen = tuple(parts["xyzw".index(letter)] for letter in node.data)
    return chosen if len(chosen) > 1 else chosen[0]


def _element(node: Node, thread: Thread) -> Any:
    return thread.arrays[node.data][node.args[0].value(thread)]


def _field(node: Node, thread: Thread) -> Any:
    name, border, element = node.data
    arrays = thread.fields[name]
    at = tuple(a.value(thread) for a in node.args)
    if not at and arrays.grid:
        at = tuple(thread.at[n] for n in ("_layer", "_row", "_column")[3 - len(arrays.grid) :])
    result = read(arrays.number, len(arrays.grid), at, border).ravel()
    t = m.OF_NUMPY[arrays.dtype]
    if element is not None:
        place = thread.at["_tensorElement"] if element == "_tensorElement" else element
        return typed(result[place], t)
    values = tuple(typed(x, t) for x in result)
    return values if len(values) > 1 else values[0]


def _vector(node: Node, thread: Thread) -> Any:
    results: list[Any] = []
    for a in node.args:
        results += lanes(a.value(thread), 1)
    return tuple(results)


def _named(node: Node, thread: Thread) -> Any:
    if node.data not in thread.values:
        raise Rejected(node.data)
    return thread.values[node.data]


VALUE: dict[str, Callable[[Node, Thread], Any]] = {
    "constant": lambda n, t: spread(lambda x: typed(x, n.type[0]), n.type[1], n.data),
    "number": lambda n, t: typed(n.data, n.type[0]), "name": _named, "place": lambda n, t: t.at[n.data],
    "swizzle": _swizzle, "vector": _vector, "element": _element, "where": _where, "call": _call, "compare": _compare,
    "convert": lambda n, t: converted(n.args[0].value(t), n.args[0].type, n.type),
    "as": lambda n, t: spread(lambda x: m.reinterpret(x, n.args[0].type[0], n.type[0]), n.type[1], n.args[0].value(t)),
    "abs": _unary, "~": lambda n, t: _invert(n, t), "-": _minus, "power": _power, "read": _field, "<<": _shift, ">>": _shift,
    "_and": lambda n, t: bool(n.args[0].value(t)) and bool(n.args[1].value(t)),
    "_or": lambda n, t: bool(n.args[0].value(t)) or bool(n.args[1].value(t)), "_not": lambda n, t: not n.args[0].value(t),
    **dict.fromkeys(("+", "*", "/", "%", "//", "&", "|", "^"), _binary),
}  # fmt: skip


def _invert(node: Node, thread: Thread) -> Any:
    (x,) = (a.value(thread) for a in node.args)
    return spread(lambda x: (not x) if node.type[0] == "bool" else m.wrap(~x, node.type[0]), node.type[1], x)


def is_finite(x: Any) -> bool:
    return not isinstance(x, np.floating) or math.isfinite(x)
