"""Relational functions of the guide. Truth follows OpenCL: 1 for scalars, -1 (every bit set) in vector components."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import numpy as np

from gpuop.base.errors import SemanticError, article
from gpuop.ir.build import Builder
from gpuop.ir.expansions.registry import define, flag, floats, same
from gpuop.ir.nodes import Expr
from gpuop.ir.types import DTYPES, INT, LONG, SHORT, Type

OF_SIZE = {16: SHORT, 32: INT, 64: LONG}
Test = Callable[..., Expr]


def _truth(b: Builder, holds: Expr, operand: Type) -> Expr:
    """A test's result: int for scalars; for vectors integers of the size of their components."""
    if operand.lanes == 1:
        return flag(b, holds)
    signed = Type(OF_SIZE[operand.dtype.bits])
    return b.apply("choose", holds, same(-1, signed), same(0, signed))


def _test(arity: int, name: str, doc: str) -> Callable[[Test], Test]:
    """Enter a test of floating operands that gives bools."""

    def register(test: Test) -> Test:
        @define("relational", arity, name, doc)
        def relation(b: Builder, *args: Expr) -> Expr:
            operands = floats(b, name, *args)
            return _truth(b, test(b, *operands), operands[0].type)

        return test

    return register


def _comparison(name: str, op: str, doc: str) -> None:
    @_test(2, name, doc)
    def compared(b: Builder, x: Expr, y: Expr) -> Expr:
        return b.apply(op, x, y)


_comparison("isequal", "eq", "x == y")
_comparison("isnotequal", "ne", "x != y, true of NaN")
_comparison("isgreater", "gt", "x > y")
_comparison("isgreaterequal", "ge", "x >= y")
_comparison("isless", "lt", "x < y")
_comparison("islessequal", "le", "x <= y")


@_test(2, "islessgreater", "x < y or x > y")
def islessgreater(b: Builder, x: Expr, y: Expr) -> Expr:
    return b.apply("or", b.apply("lt", x, y), b.apply("gt", x, y))


@_test(2, "isordered", "neither x nor y is NaN")
def isordered(b: Builder, x: Expr, y: Expr) -> Expr:
    return b.apply("and", b.apply("eq", x, x), b.apply("eq", y, y))


@_test(2, "isunordered", "x or y is NaN")
def isunordered(b: Builder, x: Expr, y: Expr) -> Expr:
    return b.apply("or", b.apply("ne", x, x), b.apply("ne", y, y))


@_test(1, "isfinite", "x is neither infinite nor NaN")
def isfinite(b: Builder, x: Expr) -> Expr:
    return b.apply("lt", b.apply("fabs", x), math.inf)


@_test(1, "isinf", "x is ∞ or -∞")
def isinf(b: Builder, x: Expr) -> Expr:
    return b.apply("eq", b.apply("fabs", x), math.inf)


@_test(1, "isnan", "x is NaN")
def isnan(b: Builder, x: Expr) -> Expr:
    return b.apply("ne", x, x)


@_test(1, "isnormal", "x is neither zero, denormal, infinite nor NaN")
def isnormal(b: Builder, x: Expr) -> Expr:
    size = b.apply("fabs", x)
    # the least normal number of x's own type, though half computes in float
    least = float(np.finfo(x.type.dtype.numpy).tiny)
    return b.apply("and", b.apply("ge", size, least), b.apply("lt", size, math.inf))


@_test(1, "signbit", "the sign bit of x is set")
def signbit(b: Builder, x: Expr) -> Expr:
    return b.apply("lt", b.apply("copysign", same(1.0, x.type), x), 0)


def _across(name: str, op: str, doc: str) -> None:
    @define("relational", 1, name, doc)
    def across(b: Builder, x: Expr) -> Expr:
        if x.type.kind not in "ib":
            raise SemanticError(
                f"_{name} wants bools or signed integers, not {article(str(x.type))}; compare first, as in `_{name}(x > 0)`"
            )
        joined = reduce(lambda one, other: b.apply(op, one, other), b.lanes(x))
        return flag(b, joined if x.type.kind == "b" else b.apply("lt", joined, 0))


_across("any", "or", "1 if any component of x is true, or negative if x is an integer; otherwise 0")
_across("all", "and", "1 if all components of x are true, or negative if x is an integer; otherwise 0")


@define("relational", 3, "bitselect", "each bit of y where that of mask is set, otherwise of x; all of one type")
def bitselect(b: Builder, x: Expr, y: Expr, mask: Expr) -> Expr:
    dtypes = {e.type.dtype for e in (x, y, mask)}
    if len(dtypes) > 1 or x.type.kind == "b":
        raise SemanticError(
            f"_bitselect wants three operands of one integer or floating type, not {x.type}, {y.type} and {mask.type}; "
            "reinterpret with `_as_int(x)`"
        )
    p, q, m = (_whole(b, e) for e in (x, y, mask))
    mixed = b.apply("or", b.apply("and", p, b.apply("invert", m)), b.apply("and", q, m))
    return b.bits(mixed, mixed.type.of(x.type.dtype))


def _whole(b: Builder, x: Expr) -> Expr:
    """The bits of a floating value as an integer."""
    return b.bits(x, x.type.of(OF_SIZE[x.type.dtype.bits])) if x.type.kind == "f" else x


@define(
    "relational",
    3,
    "select",
    "y where the condition holds (a vector of integers: is negative), otherwise x; `_select(list, k)` is `_sort(list)[k]`",
    alone=(2,),
)
def select(b: Builder, x: Expr, y: Expr, condition: Expr) -> Expr:
    """Select in the argument order of OpenCL, the reverse of `_where`; for an unsigned vector the most significant bit
    decides.
    """
    kind = condition.type
    if kind.kind == "f":
        raise SemanticError(
            f"the condition of _select is of bools or integers, not {article(str(kind))}; compare, as in `x > 0`"
        )
    if kind.integer and kind.lanes > 1:
        if kind.kind == "u":
            condition = b.cast(condition, kind.of(DTYPES[kind.dtype.c[1:]]), saturate=False)
        condition = b.apply("lt", condition, 0)
    return b.apply("choose", condition, y, x)
