"""Random bodies of kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from tests.borders import CHECKED

from . import machine as m
from .choose import Maker
from .kernels import Kernel, Out
from .nodes import BOOL, INT, Node, Type, constant
from .statements import Array, Assign, Bind, Body, Each, For, If, Leave, Stmt, Store, While, Write
from .values import DTYPES, FLOATS, INTEGERS, numbers

INTS, REALS = tuple(m.BITS), tuple(m.REAL)


@dataclass
class Writer:
    """Writes a body, knowing what is in scope.

    Attributes:
        values: names of values, with their types; variables are those that may be assigned.
        arrays: names of arrays, with element types and sizes (powers of two).
        deep: how deep expressions may be.
    """

    maker: Maker
    grid: tuple[int, ...]
    fields: dict[str, Any]
    values: list[dict[str, Type]] = field(default_factory=lambda: [{}])
    variables: list[dict[str, Type]] = field(default_factory=lambda: [{}])
    arrays: list[dict[str, tuple[Type, int]]] = field(default_factory=lambda: [{}])
    loops: int = 0
    depth: int = 0
    count: int = 0

    # --- choosing -------------------------------------------------------------------------------------------------------

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}_"

    def dtype(self) -> str:
        draw = self.maker.rng.random()
        if draw < 0.35:
            return self.maker.one_of(("int", "int", "float", "float", "uint", "uchar"))
        return self.maker.one_of(INTS) if draw < 0.85 else self.maker.one_of(REALS)

    def type(self) -> Type:
        return self.dtype(), self.maker.one_of((1, 1, 1, 2, 3, 4))

    def in_scope(self, scopes: list[dict[str, Any]]) -> dict[str, Any]:
        return {name: t for scope in scopes for name, t in scope.items()}

    # --- expressions ----------------------------------------------------------------------------------------------------

    def leaf(self, t: Type) -> Node:
        """A value, a read, an element, sometimes a constant."""
        maker = self.maker
        if maker.chance(0.1):
            return self.constant(t)
        nodes = [Node("name", kind, (), n) for n, kind in self.in_scope(self.values).items()]
        same = [n for n in nodes if n.type == t]
        if same and maker.chance(0.5):
            return maker.one_of(same)
        draw = maker.rng.random()
        if nodes and draw < 0.4:
            return self.adapted(maker.one_of(nodes), t)
        arrays = self.in_scope(self.arrays)
        if arrays and draw < 0.6:
            name = maker.one_of(list(arrays))
            return self.adapted(Node("element", arrays[name][0], (self.index(arrays[name][1]),), name), t)
        if draw > 0.9 or not self.fields:
            names = ("_row", "_column", "_column", "_columns", "_layer", "_rows")
            return self.adapted(Node("place", INT, (), maker.one_of(names)), t)
        return self.adapted(self.read(maker.one_of(list(self.fields))), t)

    def adapted(self, node: Node, t: Type) -> Node:
        """A value as one of another type."""
        kind, lanes = node.type
        if lanes > 1 and lanes != t[1]:
            letters = "".join(self.maker.one_of("xyzw"[:lanes]) for _ in range(t[1]))
            node = Node("swizzle", (kind, t[1]), (node,), letters)
        if t[0] == "bool":
            zero = Node("number", (node.type[0], 1), (), 0)
            return node if node.type == t else Node("compare", ("bool", t[1]), (self.wide(node, t[1]), zero), "!=")
        return node if node.type == t else Node("convert", t, (node,))

    def wide(self, node: Node, lanes: int) -> Node:
        kind = "int" if node.type[0] == "bool" else node.type[0]
        return node if node.type[1] == lanes else Node("convert", (kind, lanes), (node,))

    def constant(self, t: Type) -> Node:
        if t[0] == "bool":
            return constant(bool(self.maker.rng.integers(2)), t)
        return constant(numbers(self.maker.rng, m.NUMPY[t[0]], 1, self.maker.wild)[0], t)

    def where(self, v: Any) -> tuple[Node, ...]:
        """Coordinates for a read; none for the thread's own point."""
        if not v.grid or (v.grid == self.grid and self.maker.chance(0.5)):
            return ()
        return tuple(self.coordinate(name) for name in ("_layer", "_row", "_column")[3 - len(v.grid) :])

    def coordinate(self, name: str) -> Node:
        place, offset = Node("place", INT, (), name), int(self.maker.rng.integers(-4, 5))
        if self.maker.chance(0.25):
            return self.expression(INT, 1)
        return Node("+", INT, (place, Node("number", INT, (), offset)))

    def read(self, name: str) -> Node:
        """A tensor of a field, or an element."""
        v, border = self.fields[name], self.maker.one_of(CHECKED)
        kind, count = m.OF_NUMPY[v.dtype], math.prod(v.tensor)
        if count > 4 or (count > 1 and self.maker.chance(0.2)):
            return Node("read", (kind, 1), self.where(v), (name, border, int(self.maker.rng.integers(count))))
        return Node("read", (kind, count), self.where(v), (name, border, None))

    def index(self, size: int) -> Node:
        return Node("&", INT, (self.expression(INT, 1), Node("number", INT, (), size - 1)))

    def expression(self, t: Type, depth: int = 3) -> Node:
        if depth <= 0 or self.maker.chance(0.12):
            return self.leaf(t)
        if t[0] == "bool":
            return self.condition(depth, t[1])
        choices = [self.arithmetic, self.arithmetic, self.arithmetic, self.function, self.chosen, self.cast, self.built]
        choices += [self.bits, self.shifted] if t[0] in INTS else []
        return self.maker.one_of(choices)(t, depth - 1)

    def part(self, t: Type, depth: int) -> Node:
        """An operand of a type's arithmetic: of the type, of a lower rank, or a number."""
        maker = self.maker
        if maker.chance(0.12):
            value = numbers(maker.rng, m.NUMPY[t[0]], 1, 0.1)[0]
            if not isinstance(value, float) or math.isfinite(value):
                return Node("number", (t[0], 1), (), value)
        lower = m.RANKS[1 : m.RANKS.index(t[0]) + 1]
        own = t[0] if maker.chance(0.75) else maker.one_of(lower)
        return self.expression((own, t[1] if maker.chance(0.8) else 1), depth)

    def pair(self, t: Type, depth: int) -> tuple[Node, ...]:
        """Two operands whose common type this is."""
        whole = self.expression(t, depth)
        other = self.part(t, depth)
        return (whole, other) if self.maker.chance(0.6) else (other, whole)

    def arithmetic(self, t: Type, depth: int) -> Node:
        maker = self.maker
        if maker.chance(0.15):
            return Node(maker.one_of(("-", "abs")), t, (self.expression(t, depth),))
        if maker.chance(0.06):
            return Node("power", t, (self.expression(t, depth),), 2 if t[0] in REALS else maker.one_of((2, 3, 5)))
        ops = ("+", "-", "*", "/", "%") if t[0] in REALS else ("+", "-", "*", "/", "%", "//")
        return Node(maker.one_of(ops), t, self.pair(t, depth))

    def bits(self, t: Type, depth: int) -> Node:
        if self.maker.chance(0.3):
            return Node("~", t, (self.expression(t, depth),))
        return Node(self.maker.one_of(("&", "|", "^")), t, self.pair(t, depth))

    def shifted(self, t: Type, depth: int) -> Node:
        maker = self.maker
        by: Node = Node("number", INT, (), int(maker.rng.integers(0, 70)))
        if maker.chance(0.6):
            by = self.expression((maker.one_of(INTS), t[1] if maker.chance(0.7) else 1), depth)
        return Node(maker.one_of(("<<", ">>")), t, (self.expression(t, depth), by))

    def function(self, t: Type, depth: int) -> Node:
        maker = self.maker
        table = m.REALS if t[0] in REALS else m.INTEGERS
        names = [n for n in table if n not in m.UNSIGNED or t[0].startswith("u")]
        name = maker.one_of(names)
        own = t
        if name in m.UNSIGNED and maker.chance(0.5):
            own = (t[0][1:], t[1])
        args = tuple(self.expression(own, depth) for _ in range(table[name][0]))
        return Node("call", t, args, name)

    def chosen(self, t: Type, depth: int) -> Node:
        lanes = t[1] if self.maker.chance(0.5) else 1
        return Node("where", t, (self.expression(("bool", lanes), depth), *self.pair(t, depth)))

    def cast(self, t: Type, depth: int) -> Node:
        maker = self.maker
        if maker.chance(0.3):
            same = [d for d in (*INTS, *REALS) if _bits(d) == _bits(t[0]) and d != t[0]]
            return Node("as", t, (self.expression((maker.one_of(same), t[1]), depth),))
        return Node("convert", t, (self.expression((self.dtype(), t[1]), depth),))

    def built(self, t: Type, depth: int) -> Node:
        maker = self.maker
        if maker.chance(0.5):
            lanes = int(maker.rng.integers(2, 5))
            letters = "".join(maker.one_of("xyzw"[:lanes]) for _ in range(t[1]))
            return Node("swizzle", t, (self.expression((t[0], lanes), depth),), letters)
        if t[1] == 1:
            return self.expression(t, depth)
        first = int(maker.rng.integers(1, t[1])) if maker.chance(0.3) else 1
        args = [
            self.expression((t[0], first), depth),
            *(self.expression((t[0], 1), depth - 1) for _ in range(t[1] - first)),
        ]
        return Node("vector", t, tuple(args))

    def condition(self, depth: int, lanes: int = 1) -> Node:
        maker = self.maker
        if lanes == 1 and maker.chance(0.3):
            word = maker.one_of(("_and", "_or", "_not", "&", "|", "^", "~"))
            args = [self.expression(BOOL, depth - 1) for _ in range(1 if word in ("_not", "~") else 2)]
            return Node(word, BOOL, tuple(args))
        a = self.expression((self.dtype(), lanes), depth - 1)
        b = self.expression((self.dtype() if maker.chance(0.4) else a.type[0], lanes), depth - 1)
        return Node("compare", ("bool", lanes), (a, b), maker.one_of(tuple(m.COMPARE)))

    # --- statements -----------------------------------------------------------------------------------------------------

    def block(self, size: int) -> Body:
        """Statements with a scope of their own."""
        for scopes in (self.values, self.variables, self.arrays):
            scopes.append({})
        self.depth += 1
        result = self.statements(size)
        self.depth -= 1
        for scopes in (self.values, self.variables, self.arrays):
            scopes.pop()
        return result

    def statements(self, size: int) -> Body:
        results: list[Stmt] = []
        for _ in range(size):
            results += self.statement()
        return tuple(results)

    def statement(self) -> list[Stmt]:
        maker = self.maker
        draw = maker.rng.random()
        variables = self.in_scope(self.variables)
        if variables and draw < 0.35:
            return [self.assignment(maker.one_of(list(variables)), variables)]
        if draw < 0.5 and self.depth < 2:
            return maker.one_of((self.branch, self.loop, self.turns))()
        if self.loops and draw < 0.58:
            return [Leave(maker.one_of(("_break", "_continue")), self.condition(2))]
        arrays = self.in_scope(self.arrays)
        if arrays and draw < 0.7:
            name = maker.one_of(list(arrays))
            (kind, size) = arrays[name]
            return [Store(name, self.index(size), self.expression(self.near(kind), 2))]
        if draw < 0.76:
            return [self.array()]
        return [self.binding()]

    def near(self, t: Type) -> Type:
        """A type that converts to this one."""
        return (self.dtype(), t[1]) if self.maker.chance(0.3) else t

    def binding(self) -> Stmt:
        maker, t = self.maker, self.type()
        if maker.chance(0.45):
            name = self.name("x")
            value = self.expression(t)
            if value.op != "name":
                self.values[-1][name] = t
                return Bind(name, t, value)
        name = self.name("v")
        how, value = (
            ("_var", self.expression(t)) if maker.chance(0.6) else (f"_{_shown(t)}Var", self.expression(self.near(t)))
        )
        self.values[-1][name] = self.variables[-1][name] = t
        return Bind(name, t, value, how)

    def array(self) -> Stmt:
        name, t, size = self.name("a"), (self.dtype(), 1), self.maker.one_of((2, 4, 8))
        self.arrays[-1][name] = (t, size)
        return Array(name, t, size)

    def assignment(self, name: str, variables: dict[str, Type]) -> Stmt:
        maker, t = self.maker, variables[name]
        if t[1] > 1 and maker.chance(0.3):
            return Assign(name, self.expression(self.near((t[0], 1)), 2), part=maker.one_of("xyzw"[: t[1]]))
        if maker.chance(0.5):
            return Assign(name, self.expression(self.near(t)))
        ops = ("+", "-", "*", "/", "%") if t[0] in REALS else ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")
        op = maker.one_of(ops)
        if op in ("<<", ">>"):
            return Assign(name, self.expression(INT if t[1] == 1 else ("int", t[1]), 1), op)
        other = self.near(t) if op in "+-*" else t
        if other[0] in REALS and t[0] not in REALS:  # of which gpuop warns
            other = t
        return Assign(name, self.expression(other, 2), op)

    def branch(self) -> list[Stmt]:
        maker = self.maker
        cases: list[Any] = [(self.condition(2), self.block(int(maker.rng.integers(1, 3))))]
        while len(cases) < 3 and maker.chance(0.3):
            cases.append((self.condition(2), self.block(1)))
        if maker.chance(0.5):
            cases.append((None, self.block(1)))
        return [If(tuple(cases))]

    def loop(self) -> list[Stmt]:
        maker, name = self.maker, self.name("i")
        step = maker.one_of((1, 1, 1, 2, -1, -2))
        start, stop = (int(n) for n in maker.rng.integers(-2, 4, 2))
        ends = [Node("number", INT, (), n) for n in (start, stop)]
        if maker.chance(0.4):
            ends[1] = Node("&", INT, (self.expression(INT, 1), Node("number", INT, (), 3)))
        bounds = tuple(ends) if step != 1 or maker.chance(0.5) else (ends[1],)
        return [For(name, bounds, step, self.inside({name: INT}), maker.one_of((1, 1, 1, 2, 3)))]

    def turns(self) -> list[Stmt]:
        name = self.name("n")
        more = self.condition(2) if self.maker.chance(0.4) else None
        return [While(name, int(self.maker.rng.integers(0, 5)), more, self.inside({name: INT}))]

    def inside(self, more: dict[str, Type]) -> Body:
        """The body of a loop, which may read its counter."""
        self.values.append(more)
        self.loops += 1
        body = self.block(int(self.maker.rng.integers(1, 3)))
        self.loops -= 1
        self.values.pop()
        return body


def _shown(t: Type) -> str:
    return t[0] + (str(t[1]) if t[1] > 1 else "")


def _bits(t: str) -> int:
    return m.BITS.get(t) or {"half": 16, "float": 32, "double": 64}[t]


# --- kernels --------------------------------------------------------------------------------------------------------------


def a_kernel(maker: Maker, size: int = 5) -> bool:
    """A kernel of fields that are there and new ones."""
    names = [_input(maker) for _ in range(int(maker.rng.integers(1, 4)))]
    old = [n for n in maker.usable() if n not in names and math.prod(maker.value(n).tensor) <= 9]
    names += [maker.one_of(old)] if old and maker.chance(0.5) else []
    fields = {n: maker.value(n) for n in names if not _empty(maker.value(n).grid, maker.grid)}
    writer = Writer(maker, maker.grid, fields)
    body = [writer.binding() for _ in range(2)]
    body += writer.statements(int(maker.rng.integers(2, size + 1)))
    outs: list[Out] = []
    for k in range(int(maker.rng.integers(1, 4))):
        out, writes = _output(writer, k)
        outs.append(out)
        body += writes
    results = tuple(maker.name() for _ in outs)
    if len(outs) > 1 and all(o.default is None for o in outs) is False:
        outs = [o if o.default is not None else Out(o.dtype, o.tensor, 0) for o in outs]
    return maker.add(Kernel(results, tuple(fields), maker.grid, tuple(outs), tuple(body)))


def _empty(grid: tuple[int, ...], threads: tuple[int, ...]) -> bool:
    return 0 in grid and 0 not in threads


def _input(maker: Maker) -> str:
    dtype = maker.one_of((*DTYPES, *INTEGERS, *FLOATS[1:]))
    tensor = maker.one_of(((), (), (), (2,), (3,), (4,), (2, 2), (5,)))
    grid = maker.one_of((maker.grid, maker.grid, maker.grid, (), (3,), (2, 5)))
    return maker.input(dtype, tensor, grid)


def _output(writer: Writer, k: int) -> tuple[Out, list[Stmt]]:
    maker = writer.maker
    dtype = maker.one_of((*DTYPES, *INTEGERS))
    tensor = maker.one_of(((), (), (), (2,), (3,), (4,), (2, 2), (6,)))
    count, t = math.prod(tensor), m.OF_NUMPY[dtype]
    where, partial = _place(writer) if maker.chance(0.25) else ((), False)
    if count > 4:
        return Out(dtype, tensor, 0 if where else None), [_each(writer, k, t, tensor, where)]
    kind: Type = (t, count) if maker.chance(0.7) else ((t if t == "bool" else writer.dtype()), maker.one_of((1, count)))
    if dtype == "bool" and count > 1:
        kind = ("int", count)
    value = writer.expression(kind, 3)
    first = Write(k, value, where)
    if maker.chance(0.25):
        again = If(((writer.condition(2), (Write(k, writer.expression(kind, 2), where),)),))
        return Out(dtype, tensor, 0 if partial or where else None), [first, again]
    return Out(dtype, tensor, maker.one_of((0, 1)) if where else None), [first]


def _each(writer: Writer, k: int, t: str, tensor: tuple[int, ...], where: tuple[Node, ...]) -> Stmt:
    """Every element by itself."""
    maker = writer.maker
    fit = [n for n, v in writer.fields.items() if v.tensor == tensor and (v.grid == writer.grid or not v.grid)]
    value = writer.expression((t if t != "bool" else "int", 1), 2)
    if fit:
        name = maker.one_of(fit)
        own = m.OF_NUMPY[writer.fields[name].dtype]
        read = Node("read", (own, 1), (), (name, "clamp", "_tensorElement"))
        if own != "bool":
            value = Node("+", (m.promoted(value.type[0], own), 1), (value, read))
    element = Node("convert", value.type, (Node("place", INT, (), "_tensorElement"),))
    value = Node("*", value.type, (value, element))
    return Each(tensor, (Write(k, value, where, "_tensorElement"),))


def _place(writer: Writer) -> tuple[tuple[Node, ...], bool]:
    """Coordinates that no two threads share: mirrored, turned round, or shifted, partly outside."""
    results, partial = [], False
    for axis in ("layer", "row", "column")[3 - len(writer.grid) :]:
        own, extent = Node("place", INT, (), f"_{axis}"), Node("place", INT, (), f"_{axis}s")
        offset = Node("number", INT, (), int(writer.maker.rng.integers(0, 4)))
        how = writer.maker.one_of(("own", "mirror", "turn", "shift"))
        shifted = Node("+", INT, (own, offset))
        if how == "mirror":
            one = Node("number", INT, (), 1)
            results.append(Node("-", INT, (Node("-", INT, (extent, one)), own)))
        else:
            results.append({"own": own, "turn": Node("%", INT, (shifted, extent)), "shift": shifted}[how])
        partial = partial or how == "shift"
    return tuple(results), partial
