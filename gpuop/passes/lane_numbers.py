"""Integers of lanes at constant distances from the first lane's: consecutive ones, or those of a table of constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from gpuop.base.records import dataclass
from gpuop.ir.build import constant
from gpuop.ir.nodes import Apply, Array, Cast, Const, Expr, Load, Ref, Stride, Var
from gpuop.ir.types import INT, LONG, Type
from gpuop.passes.simplify import identity


@dataclass(frozen=True)
class LaneNumbers:
    """The values of an integer in the lanes of a loop; no `Affine`, because `first` and the limits are printed.

    Attributes:
        first: the value in the first lane, an expression that is the same in all lanes.
        ahead: the difference of each lane from the first one.
        least, last: the limits of the values; None where there are none. If they cross, `last` counts.
        base, beyond: where `first` is a constant behind another value, that value and the constant.
    """

    first: Expr
    ahead: tuple[int, ...]
    least: Expr | None = None
    last: Expr | None = None
    base: Expr | None = None
    beyond: int = 0

    @property
    def are_neighbours(self) -> bool:
        return self.ahead == tuple(range(len(self.ahead)))

    @property
    def are_limited(self) -> bool:
        return self.least is not None or self.last is not None

    @property
    def start(self) -> Expr:
        """The value that is `beyond` before that of the first lane."""
        return self.first if self.base is None else self.base

    def moved(self, by: Callable[[Expr], Expr]) -> LaneNumbers:
        """The values after an operation that keeps their distances."""
        least, last = (limit and by(limit) for limit in (self.least, self.last))
        return LaneNumbers(by(self.first), self.ahead, least, last)

    def bound(self, by: Callable[[Expr], Expr]) -> LaneNumbers:
        """The same values, whose `first` has a name."""
        return replace(self.moved(by), base=self.base, beyond=self.beyond)

    def limited(self, op: str, limit: Expr) -> LaneNumbers:
        """The minima, or the maxima, of the values and a limit."""
        least, last = (each and Apply(op, (each, limit), limit.type) for each in (self.least, self.last))
        if op == "min":
            return replace(self, last=last or limit)
        return replace(self, least=least or limit, last=last)

    def in_lane(self, lane: int) -> Expr:
        first, ahead = self.first, self.ahead[lane]
        assert not self.are_limited, "a number that has limits is no place of a lane's own"
        if isinstance(first, Const):
            return Const(int(first.value) + ahead, first.type)
        return identity(Apply("add", (first, Const(ahead, first.type)), first.type))


class LaneAnalysis:
    """Analysis of the integers of lanes.

    Attributes:
        of: the values of variables that are no vectors yet.
        vectors: the vectors of other variables that differ between lanes.
    """

    def __init__(self, vectors: Mapping[Var, Ref]) -> None:
        self.of: dict[Var, LaneNumbers] = {}
        self.vectors = vectors

    def find(self, expr: Expr) -> LaneNumbers | None:
        """The values of an integer; None where it is the same in all lanes, or differs otherwise."""
        match expr:
            case Ref(var=var):
                return self.of.get(var)
            case Apply(op="add", args=(x, y)):
                return self.plus(self.find(x), y) or self.plus(self.find(y), x)
            case Apply(op="sub", args=(x, y), type=type_):
                numbers = self.find(x)
                return numbers.moved(lambda e: Apply("sub", (e, y), type_)) if numbers and self.same(y) else None
            case Apply(op="mul", args=(x, Stride() as y), type=type_):
                return self.times(self.find(x), y, type_)
            case Apply(op="min" | "max" as op, args=(x, y)):
                return self.limited(op, self.find(x), y) or self.limited(op, self.find(y), x)
            case Cast(arg=arg, type=type_) if type_ == Type(LONG) and arg.type == Type(INT):
                numbers = self.find(arg)
                return numbers.moved(lambda e: Cast(e, type_, saturate=False)) if numbers else None
            case Load(memory=Array(space="constant", values=values), index=(at,)):
                numbers = self.find(at)
                if numbers is not None and not numbers.are_limited and isinstance(numbers.first, Const):
                    entries = [int(values[int(numbers.first.value) + k]) for k in numbers.ahead]
                    return LaneNumbers(constant(entries[0], INT), tuple(entry - entries[0] for entry in entries))
        return None

    def plus(self, numbers: LaneNumbers | None, other: Expr) -> LaneNumbers | None:
        if numbers is None or not self.same(other):
            return None

        def added(e: Expr) -> Expr:
            if isinstance(e, Const) and isinstance(other, Const):
                return Const(int(e.value) + int(other.value), e.type)
            return identity(Apply("add", (other, e), other.type))

        moved = numbers.moved(added)
        if isinstance(other, Const) and not isinstance(numbers.first, Const):
            return replace(moved, base=numbers.base or numbers.first, beyond=numbers.beyond + int(other.value))
        return moved

    def times(self, numbers: LaneNumbers | None, by: Stride, type_: Type) -> LaneNumbers | None:
        if numbers is None or numbers.are_limited:
            return None
        return LaneNumbers(Apply("mul", (numbers.first, by), type_), tuple(k * by.value for k in numbers.ahead))

    def limited(self, op: str, numbers: LaneNumbers | None, limit: Expr) -> LaneNumbers | None:
        return numbers.limited(op, limit) if numbers and numbers.are_neighbours and self.same(limit) else None

    def same(self, atom: Expr) -> bool:
        """Return whether an atom is the same in all lanes."""
        return not isinstance(atom, Ref) or (atom.var not in self.vectors and atom.var not in self.of)
