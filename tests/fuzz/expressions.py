"""Random well-typed expressions, as tuples: (form, type, …). What they may name is in a `Scope`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hypothesis import strategies as st

from . import functions
from .kinds import BITS, FLOATS, INTEGERS, RANKED, STORED, below, common, join, numbers, plain_numbers, split

BORDERS = ("clamp", "zero", "wrap", "reflect", "symmetric", "number")
ARITHMETIC = ("+", "-", "*", "/", "%", "//")
BITWISE = ("&", "|", "^")
SHIFTS = ("<<", ">>")
COMPARE = ("<", "<=", ">", ">=", "==", "!=")
AXES = ("layer", "row", "column")
_below = cache(lambda n: st.integers(0, n - 1))


@dataclass
class Scope:
    """What an expression may name.

    Attributes:
        fields: (name, dtype, tensor shape, grid, whether it is the threads' grid).
        uniform_only: only what is the same for all threads of a group.
        phase: "write" (a thread sees its own slot of local arrays) or "read" (all).
    """

    fields: Sequence[tuple] = ()
    dims: int = 2
    element: bool = False
    variables: list[tuple] = field(default_factory=list)
    uniform: list[tuple] = field(default_factory=list)
    arrays: list[tuple] = field(default_factory=list)
    locals: Sequence[tuple] = ()
    shared: Sequence[tuple] = ()
    bins: Sequence[tuple] = ()
    tables: Sequence[tuple] = ()
    counters: list[tuple] = field(default_factory=list)
    phase: str = "write"
    uniform_only: bool = False
    grouped: bool = False


class Expressions:
    """Makes expressions of wanted types; `draw` decides."""

    def __init__(self, draw: Callable[..., Any]) -> None:
        self.draw = draw
        self.scope = Scope()
        self.budget = 120
        self.locally: set[str] = set()  # fields that are read at the thread's own point only

    def below(self, n: int) -> int:
        return self.draw(_below(n)) if n > 1 else 0

    def pick(self, choices: Sequence) -> Any:
        return choices[self.below(len(choices))]

    def chance(self, percent: int) -> bool:
        return self.below(100) >= 100 - percent

    def kind(self, dtypes: Sequence[str] = RANKED) -> str:
        """A type; scalars more often."""
        dtype = self.pick(dtypes)
        return join(dtype, 1 if dtype == "bool" else self.pick((1, 1, 1, 2, 3, 4)))

    # --- leaves -------------------------------------------------------------------------------------------------

    def leaf(self, kind: str) -> tuple:
        dtype, lanes = split(kind)
        if dtype == "bool" and lanes > 1:
            of = join(self.pick(RANKED[1:]), lanes)
            return ("binary", kind, self.pick(COMPARE), self.leaf(of), self.leaf(of))
        sources = self._sources()
        choice = self.below(len(sources) + 2)
        if choice < 2:
            return self._number(kind)
        return self.adapted(sources[choice - 2](), kind)

    def _number(self, kind: str) -> tuple:
        dtype, lanes = split(kind)
        return ("number", kind, tuple(self.pick(numbers(dtype)) for _ in range(lanes)))

    def _sources(self) -> list[Callable[[], tuple]]:
        s = self.scope
        names = [*s.uniform, *s.counters] if s.uniform_only else [*s.variables, *s.variables, *s.uniform, *s.counters]
        found = [lambda n=n: ("variable", n[1], n[0]) for n in names]
        found.append(self._thread)
        if self.budget < -20:  # what follows has indices, which are expressions too
            return found
        found += [lambda f=f: self.read(f) for f in s.fields if not s.uniform_only or not f[3]]
        if s.uniform_only:
            return found
        found += [lambda a=a: ("array", a[1], a[0], self.places(a[2])) for a in s.arrays]
        found += [lambda t=t: ("table", t[1], t[0], self.places(t[2])) for t in s.tables]
        found += [self._slot(a) for a in s.locals for _ in (0, 1)]
        if s.phase == "read":
            found += [lambda a=a: ("shared", a[1], a[0]) for a in s.shared for _ in (0, 1, 2)]
            found += [lambda a=a: ("bin", a[1], a[0], self.places((a[2],))[0]) for a in s.bins for _ in (0, 1, 2)]
        return found

    def _slot(self, array: tuple) -> Callable[[], tuple]:
        """An element of a local array: the thread's own, or one that another thread has written."""
        if self.scope.phase == "write":
            return lambda: ("slot", array[1], array[0], None)
        return lambda: ("slot", array[1], array[0], tuple(self.index() for _ in range(self.scope.dims)))

    def _thread(self) -> tuple:
        axis = self.pick(AXES[::-1])
        names = [f"_{axis}", f"_{axis}s"] if not self.scope.uniform_only else [f"_{axis}s"]
        if self.scope.grouped:
            names += [f"_group{axis.capitalize()}", f"_local{axis.capitalize()}s"]
            names += [] if self.scope.uniform_only else [f"_local{axis.capitalize()}"]
        if self.scope.element and not self.scope.uniform_only:
            names += ["_tensorElement", "_tensorElements"]
        return ("thread", "int", self.pick(names))

    def index(self) -> tuple:
        """Any integer, small ones more often."""
        self.budget -= 1
        return self.value(self.pick(("int", "int", "int", "uchar", "long", "short", "uint")), 1)

    def places(self, dims: Sequence[int]) -> tuple:
        """Indices inside an array, written as numbers or computed."""
        return tuple(("at", "int", self.below(n)) if self.chance(30) else ("within", "int", self.index(), n) for n in dims)

    # --- reading fields -----------------------------------------------------------------------------------------

    def read(self, found: tuple) -> tuple:
        name, dtype, tensor, grid, near = found
        element, each = STORED.get(dtype, (dtype, 1))
        lanes = each
        for n in tensor:
            lanes *= n
        own = (near or not grid) and (name in self.locally or self.chance(40))
        point = None if own else self._point(grid, near)
        border = self.pick(BORDERS) if point else "clamp"
        if lanes > 4 or self.chance(20):
            at = ("at", "int", self.below(lanes)) if name in self.locally else self._element(lanes)
            return ("readElement", element, name, point, at, border)
        if point and self.chance(10):
            at = tuple(self.value(self.pick(("float", "int", "half", "double")), 1) for _ in grid)
            kind = join(element if element in FLOATS else "float", lanes)
            return ("sample", kind, name, at, border)
        return ("read", join(element, lanes), name, point, border)

    def _element(self, lanes: int) -> tuple:
        if self.scope.element and self.chance(50):
            return ("within", "int", ("thread", "int", "_tensorElement"), lanes)
        return self.places((lanes,))[0]

    def _point(self, grid: Sequence[int], near: bool) -> tuple:
        """Around the thread's own point, or anywhere."""
        if not grid:
            return ()
        if near and self.chance(60):
            axes = AXES[3 - len(grid) :]
            return tuple(("offset", "int", axis, self.pick((0, 1, -1, 2, -2, 40))) for axis in axes)
        return tuple(self.index() for _ in grid)

    # --- conversions --------------------------------------------------------------------------------------------

    def adapted(self, expr: tuple, kind: str) -> tuple:
        """The expression as a value of another type."""
        (dtype, lanes), (_wanted, length) = split(expr[1]), split(kind)
        if lanes != length:
            if length == 1 and self.chance(50):
                expr = ("component", dtype, expr, self.below(lanes))
            elif lanes == 1:
                return ("spread", kind, expr)
            else:
                letters = "".join("xyzw"[self.below(lanes)] for _ in range(length))
                expr = ("swizzle", join(dtype, length), expr, letters)
        return expr if expr[1] == kind else ("convert", kind, expr)

    def operands(self, kind: str, count: int, depth: int, exactly: bool = False) -> tuple:
        """Operands whose common type is the wanted one: one has it, the others have it or turn into it."""
        dtype, lanes = split(kind)
        have = self.below(count)
        whole = self.below(count)
        found = []
        for n in range(count):
            of = dtype if n == have or exactly or self.chance(60) else self.pick(below(dtype)[::-1])
            length = lanes if n == whole or self.chance(70) else 1
            found.append(self.value(join(of, length), depth))
        return tuple(found)

    # --- values -------------------------------------------------------------------------------------------------

    def value(self, kind: str, depth: int) -> tuple:
        self.budget -= 1
        if depth <= 0 or self.budget < 0:
            return self.leaf(kind)
        forms = self._forms(kind)
        choice = self.below(len(forms) + 2)
        return self.leaf(kind) if choice < 2 else forms[choice - 2](kind, depth - 1)

    def _forms(self, kind: str) -> list[Callable[[str, int], tuple]]:
        dtype, lanes = split(kind)
        forms = [self._where, self._convert]
        if dtype == "bool":
            return [*forms, self._compare, self._compare, self._compare, self._logic, self._bitwise, self._test_literal]
        forms += [self._binary, self._binary, self._binary, self._literal, self._unary, self._call, self._call, self._call]
        forms += [self._power, self._bits]
        if dtype in INTEGERS:
            forms += [self._bitwise, self._bitwise, self._shift]
        if dtype == "int":
            forms.append(self._of_bools)
        if lanes > 1:
            forms += [self._vector, self._vector]
        return forms

    def _where(self, kind: str, depth: int) -> tuple:
        lanes = split(kind)[1]
        return ("where", kind, self.value(join("bool", self.pick((1, lanes))), depth), *self.operands(kind, 2, depth))

    def _convert(self, kind: str, depth: int) -> tuple:
        dtype, lanes = split(kind)
        if dtype == "bool" and lanes > 1:
            return self._compare(kind, depth)
        return ("convert", kind, self.value(join(self.pick(RANKED), lanes), depth))

    def _binary(self, kind: str, depth: int) -> tuple:
        return ("binary", kind, self.pick(ARITHMETIC), *self.operands(kind, 2, depth))

    def _of_bools(self, kind: str, depth: int) -> tuple:
        of = join("bool", split(kind)[1])
        return ("binary", kind, self.pick(ARITHMETIC[:3]), self.value(of, depth), self.value(of, depth))

    def _literal(self, kind: str, depth: int) -> tuple:
        dtype, lanes = split(kind)
        if dtype == "float" and self.chance(30):  # a floating number beside an integer
            a, n = self.value(join(self.pick(INTEGERS), lanes), depth), self.pick((0.5, -3.25))
        else:
            a, n = self.value(kind, depth), self.pick(plain_numbers(dtype))
        return ("literal", kind, self.pick(ARITHMETIC), a, n, self.chance(30))

    def _unary(self, kind: str, depth: int) -> tuple:
        ops = ("neg", "abs", "pos") if split(kind)[0] in FLOATS else ("neg", "abs", "invert")
        return ("unary", kind, self.pick(ops), self.value(kind, depth))

    def _call(self, kind: str, depth: int) -> tuple:
        return functions.call(self, kind, self.pick(functions.names_for(kind)), depth)

    def _power(self, kind: str, depth: int) -> tuple:
        most = 3 if split(kind)[0] in FLOATS else 8
        return ("power", kind, self.value(kind, depth), self.below(most))

    def _bits(self, kind: str, depth: int) -> tuple:
        dtype, lanes = split(kind)
        of = join(self.pick([d for d in RANKED[1:] if BITS[d] == BITS[dtype] and d != dtype]), lanes)
        given = self.value(of, depth)
        return ("bits", kind, ("real", of, given) if split(of)[0] in FLOATS else given)

    def _bitwise(self, kind: str, depth: int) -> tuple:
        return ("binary", kind, self.pick(BITWISE), *self.operands(kind, 2, depth))

    def _shift(self, kind: str, depth: int) -> tuple:
        _dtype, lanes = split(kind)
        if self.chance(30):
            return ("literal", kind, self.pick(SHIFTS), self.value(kind, depth), self.below(70), False)
        by = join(self.pick(INTEGERS), self.pick((1, lanes)))
        return ("binary", kind, self.pick(SHIFTS), self.value(kind, depth), self.value(by, depth))

    def _vector(self, kind: str, depth: int) -> tuple:
        """Side by side; `_vector` takes the common type."""
        dtype, lanes = split(kind)
        parts = []
        while lanes:
            length = 1 + self.below(lanes)
            parts.append(self.value(join(self.pick((dtype, *below(dtype)[1:])), length), depth))
            lanes -= length
        if common(*(split(p[1])[0] for p in parts)) == dtype and self.chance(50):
            return ("vector", kind, *parts)
        return ("pack", kind, *parts) if len(parts) > 1 else self.adapted(parts[0], kind)

    def _compare(self, kind: str, depth: int) -> tuple:
        of = join(self.pick(RANKED), split(kind)[1])
        return ("binary", kind, self.pick(COMPARE), *self.operands(of, 2, depth))

    def _test_literal(self, kind: str, depth: int) -> tuple:
        dtype = self.pick(RANKED)
        a = self.value(join(dtype, split(kind)[1]), depth)
        return ("literal", kind, self.pick(COMPARE), a, self.pick(plain_numbers(dtype)), False)

    def _logic(self, kind: str, depth: int) -> tuple:
        lanes = split(kind)[1]
        name = self.pick(("_and", "_or", "_not", "~"))
        if name in ("_not", "~"):
            of = kind if name == "~" else join(self.pick(RANKED), lanes)
            return ("call", kind, name, self.value(of, depth))
        a, b = (self.value(join(self.pick(RANKED), n), depth) for n in (lanes, self.pick((1, lanes))))
        return ("call", kind, name, a, b)
