"""Target expressions: values computed from facts of the target when code is generated for it.

They follow the rules of Python; a zero divisor gives 0, as in kernels.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import field as facts
from typing import Any, TypeAlias

from gpuop.base.errors import Loc, SemanticError
from gpuop.base.records import dataclass
from gpuop.ir.target import Target
from gpuop.ir.types import Type

Plain = bool | int | float | str
ATTRIBUTES: dict[str, type] = {
    "backend": str, "architecture": int, "device": str, "simd_width": int, "local_memory_bytes": int, "has_fp16": bool,
    "has_fp64": bool, "has_arrays": bool,
}  # fmt: skip
GENERIC = Target("opencl", simd_width=32)  # estimates are made for it; of a table it may take the first entry
KEY = re.compile(r"opencl|cuda(:sm_\d{2,3})?|reference")
ARCHITECTURES = (  # current NVIDIA GPUs
    20, 21, 30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 107, 110, 120, 121,
)  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class Fact:
    """An attribute of the target."""

    name: str

    def __repr__(self) -> str:
        return f"_target.{self.name}"


@dataclass(frozen=True, slots=True, repr=False)
class Formula:
    """An operation of OPERATIONS on target expressions and plain values."""

    op: str
    args: tuple[Known, ...]
    loc: Loc | None = facts(default=None, compare=False)

    def __repr__(self) -> str:
        sign, args = OPERATIONS[self.op].sign, [f"({a!r})" if isinstance(a, Formula) else repr(a) for a in self.args]
        if sign.isalpha():
            return f"{sign}({', '.join(map(repr, self.args))})"
        return f" {sign} ".join(args) if len(args) > 1 else f"{sign}{args[0]}"


@dataclass(frozen=True, slots=True, repr=False)
class Choice:
    """The entry of a table that fits the target best: its own architecture's, or the greatest below it."""

    entries: tuple[tuple[str, Plain], ...]
    otherwise: Plain | None = None
    loc: Loc | None = facts(default=None, compare=False)

    def __repr__(self) -> str:
        default = "" if self.otherwise is None else f", default={self.otherwise!r}"
        return f"_target.choose({dict(self.entries)!r}{default})"


Known: TypeAlias = Plain | Fact | Formula | Choice
Extent: TypeAlias = (
    int | Fact | Formula | Choice
)  # an extent of a work-group or an array; a number once the target is known
SYMBOLIC = (Fact, Formula, Choice)


def numbers(extents: Iterable[Extent]) -> tuple[int, ...]:
    """Extents as they are once the target is known."""
    result = tuple(extents)
    assert all(isinstance(n, int) for n in result), f"{result} is asked for before the target is known"
    return result  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class TargetConst:
    """A target expression as an operand of a kernel, until the target is known."""

    fact: Known
    type: Type


# --- evaluation -----------------------------------------------------------------------------------------------------


def evaluate(fact: Known, target: Target) -> Plain:
    """The value of a target expression.

    Raises:
        SemanticError: a table has no entry for the target.
    """
    match fact:
        case Fact(name=name):
            value: Plain = getattr(target, name)
            return value
        case Formula(op=op, args=args):
            result: Plain = OPERATIONS[op].compute(*(evaluate(a, target) for a in args))
            return result
        case Choice():
            return _chosen(fact, target)
    return fact


def _chosen(table: Choice, target: Target) -> Plain:
    fitting = [(architecture_of(key), value) for key, value in table.entries if key.split(":")[0] == target.backend]
    fitting = [entry for entry in fitting if entry[0] <= target.architecture]
    if fitting:
        return max(fitting, key=lambda entry: entry[0])[1]
    if table.otherwise is None and target is GENERIC:
        return table.entries[0][1]
    if table.otherwise is None:
        keys = ", ".join(key for key, _ in table.entries)
        name = target if target.architecture else target.backend
        raise SemanticError(
            f"the table has no entry for {name}: it has {keys}; add one, or give the table a `default=`", table.loc
        )
    return table.otherwise


def architecture_of(key: str) -> int:
    """The least architecture that an entry is for: 0 for any."""
    return int(key.partition(":sm_")[2] or 0)


# --- operations -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Operation:
    """Row of an operation: sign, function, and result type given the operand types (None: invalid)."""

    sign: str
    compute: Callable[..., Any]
    kind: Callable[..., type | None]


def kind_of(fact: Known) -> type:
    """bool, int, float or str."""
    match fact:
        case Fact(name=name):
            return ATTRIBUTES[name]
        case Formula(op=op, args=args):
            return OPERATIONS[op].kind(*map(kind_of, args)) or float
        case Choice(entries=entries):
            return kind_of(entries[0][1])
    return type(fact)


def _number(*kinds: type) -> type | None:
    return None if str in kinds else float if float in kinds else int


def _integer(*kinds: type) -> type | None:
    return int if _number(*kinds) is int else None


def _bits(*kinds: type) -> type | None:
    return bool if set(kinds) == {bool} else _integer(*kinds)


def _truth(*kinds: type) -> type | None:
    return None if str in kinds else bool


def _equality(a: type, b: type) -> type | None:
    return bool if (a is str) == (b is str) else None


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0


def _inverted(a: bool | int) -> bool | int:
    return not a if isinstance(a, bool) else ~a


OPERATIONS = {
    "add": Operation("+", operator.add, _number),
    "sub": Operation("-", operator.sub, _number),
    "mul": Operation("*", operator.mul, _number),
    "neg": Operation("-", operator.neg, _number),
    "floordiv": Operation("//", lambda a, b: a // b if b else 0, _number),
    "mod": Operation("%", lambda a, b: a % b if b else 0, _number),
    "div": Operation("/", _truncated, _integer),  # C division, for extents of work-groups
    "rem": Operation("rem", lambda a, b: a - b * _truncated(a, b) if b else 0, _integer),
    "min": Operation("min", min, _number),
    "max": Operation("max", max, _number),
    "and": Operation("&", operator.and_, _bits),
    "or": Operation("|", operator.or_, _bits),
    "invert": Operation("~", _inverted, _bits),
    "both": Operation("and", lambda a, b: bool(a and b), _truth),
    "either": Operation("or", lambda a, b: bool(a or b), _truth),
    "not": Operation("not", operator.not_, _truth),
    "lt": Operation("<", operator.lt, _truth),
    "le": Operation("<=", operator.le, _truth),
    "gt": Operation(">", operator.gt, _truth),
    "ge": Operation(">=", operator.ge, _truth),
    "eq": Operation("==", operator.eq, _equality),
    "ne": Operation("!=", operator.ne, _equality),
}
