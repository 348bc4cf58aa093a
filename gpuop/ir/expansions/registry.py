"""Registry of the expansions, and helpers that several of them use."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpuop.base.records import dataclass
from gpuop.ir import type_rules
from gpuop.ir.build import Builder, constant
from gpuop.ir.nodes import Expr
from gpuop.ir.types import INT, Type

Expansion = Callable[..., Expr | tuple[Expr, ...]]


@dataclass(frozen=True, slots=True)
class Function:
    """A function made of others.

    Attributes:
        arity: operands.
        expand: takes a builder and operands, gives the result or a tuple of results.
        group: the guide's table; empty for those that users do not call by name.
        ulp, double: as `Row`'s.
        alone: operands whose numbers do not take the type of the others.
    """

    name: str
    arity: int
    expand: Expansion
    doc: str
    group: str = ""
    ulp: float = 0.0
    double: float | None = None
    alone: tuple[int, ...] = ()


EXPANSIONS: dict[str, Function] = {}


def define(
    group: str,
    arity: int,
    name: str,
    doc: str,
    ulp: float = 0.0,
    double: float | None = None,
    alone: tuple[int, ...] = (),
) -> Callable[[Expansion], Expansion]:
    """Enter the function below under a name."""

    def register(expand: Expansion) -> Expansion:
        EXPANSIONS[name] = Function(name, arity, expand, doc, group, ulp, double, alone)
        return expand

    return register


def expand(b: Builder, name: str, *args: Expr) -> Expr:
    """An expansion that has one result, by name."""
    result = EXPANSIONS[name].expand(b, *args)
    assert not isinstance(result, tuple)
    return result


def floats(b: Builder, name: str, *args: Expr) -> list[Expr]:
    """The operands converted to one floating type."""
    return _converted(b, type_rules.floating(f"_{name}", [a.type for a in args]), args)


def integers(b: Builder, name: str, *args: Expr) -> list[Expr]:
    """The operands converted to one integer type."""
    return _converted(b, type_rules.integer(f"_{name}", [a.type for a in args]), args)


def _converted(b: Builder, signature: type_rules.Signature, args: Iterable[Expr]) -> list[Expr]:
    return [b.cast(a, t, saturate=False) for a, t in zip(args, signature[0], strict=True)]


def same(number: float, like: Type) -> Expr:
    """A scalar constant of a type's components."""
    return constant(number, like.dtype)


def flag(b: Builder, truth: Expr) -> Expr:
    """A scalar bool as int 0 or 1."""
    return b.cast(truth, Type(INT))
