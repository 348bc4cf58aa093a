"""The leaves of random expressions: what a `Scope` lets them name, and reads of fields, brought to the wanted type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hypothesis import strategies as st

from tests.borders import CHECKED

from .kinds import FLOATS, RANKED, STORED, join, numbers, split

BORDERS = (*CHECKED, "number")
COMPARE = ("<", "<=", ">", ">=", "==", "!=")
AXES = ("layer", "row", "column")
_below = cache(lambda n: st.integers(0, n - 1))


@dataclass
class Scope:
    """The names that an expression may use.

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


class Leaves:
    """Makes leaves of wanted types; `draw` decides."""

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
        results = [lambda n=n: ("variable", n[1], n[0]) for n in names]
        results.append(self._thread)
        if self.budget < -20:  # what follows has indices, which are expressions too
            return results
        results += [lambda f=f: self.read(f) for f in s.fields if not s.uniform_only or not f[3]]
        if s.uniform_only:
            return results
        results += [lambda a=a: ("array", a[1], a[0], self.places(a[2])) for a in s.arrays]
        results += [lambda t=t: ("table", t[1], t[0], self.places(t[2])) for t in s.tables]
        results += [self._slot(a) for a in s.locals for _ in (0, 1)]
        if s.phase == "read":
            results += [lambda a=a: ("shared", a[1], a[0]) for a in s.shared for _ in (0, 1, 2)]
            results += [lambda a=a: ("bin", a[1], a[0], self.places((a[2],))[0]) for a in s.bins for _ in (0, 1, 2)]
        return results

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
        return tuple(
            ("at", "int", self.below(n)) if self.chance(30) else ("within", "int", self.index(), n) for n in dims
        )

    # --- reading fields -----------------------------------------------------------------------------------------

    def read(self, results: tuple) -> tuple:
        name, dtype, tensor, grid, near = results
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

    def value(self, kind: str, depth: int) -> tuple:
        raise NotImplementedError

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
