"""Integer functions of the guide, for every integer type: operands convert to their common type, which is that of the result.

Most are the identities of H. S. Warren, Hacker's Delight (2nd edition, 2013), chapters 2 and 8, which hold for every width.
"""

from __future__ import annotations

from gpuop.base.errors import SemanticError
from gpuop.ir.build import Builder
from gpuop.ir.expansions.registry import define, expand, integers, same
from gpuop.ir.nodes import Expr
from gpuop.ir.types import DTYPES, INT, LONG, UINT, ULONG, DType, Type


def _unsigned(type_: Type) -> Type:
    return type_ if type_.kind == "u" else type_.of(DTYPES[f"u{type_.dtype.c}"])


def _as_unsigned(b: Builder, x: Expr) -> Expr:
    """The same bits as an unsigned integer."""
    return b.cast(x, _unsigned(x.type), saturate=False)


def _limit(type_: Type) -> Expr:
    """The greatest value of a type's components."""
    return same(2 ** (type_.dtype.bits - (type_.kind == "i")) - 1, type_)


def _limit_beyond(b: Builder, x: Expr) -> Expr:
    """The greatest value, or the least where a signed x is negative."""
    return b.apply("xor", b.apply("shr", x, x.type.dtype.bits - 1), _limit(x.type))


def _double(type_: Type) -> Type:
    """A type of at least 32 bits that holds x · y + z of a type of at most 32."""
    narrow, wide = (INT, LONG) if type_.kind == "i" else (UINT, ULONG)
    return type_.of(wide if type_.dtype.bits == 32 else narrow)


@define("integer", 1, "abs", "|x| as an unsigned integer")
def abs_(b: Builder, x: Expr) -> Expr:
    (x,) = integers(b, "abs", x)
    size = _as_unsigned(b, x)
    return x if x.type.kind == "u" else b.apply("choose", b.apply("lt", x, 0), b.apply("sub", 0, size), size)


@define("integer", 2, "abs_diff", "|x - y| as an unsigned integer, without overflow")
def abs_diff(b: Builder, x: Expr, y: Expr) -> Expr:
    x, y = integers(b, "abs_diff", x, y)
    p, q = _as_unsigned(b, x), _as_unsigned(b, y)
    return b.apply("choose", b.apply("gt", x, y), b.apply("sub", p, q), b.apply("sub", q, p))


@define("integer", 2, "add_sat", "x + y, saturated")
def add_sat(b: Builder, x: Expr, y: Expr) -> Expr:
    x, y = integers(b, "add_sat", x, y)
    total = b.apply("add", x, y)
    if x.type.kind == "u":
        return b.apply("choose", b.apply("lt", total, x), _limit(x.type), total)
    flipped = b.apply("and", b.apply("xor", x, total), b.apply("xor", y, total))  # the sum has neither's sign
    return b.apply("choose", b.apply("lt", flipped, 0), _limit_beyond(b, x), total)


@define("integer", 2, "sub_sat", "x - y, saturated")
def sub_sat(b: Builder, x: Expr, y: Expr) -> Expr:
    x, y = integers(b, "sub_sat", x, y)
    rest = b.apply("sub", x, y)
    if x.type.kind == "u":
        return b.apply("choose", b.apply("lt", x, y), 0, rest)
    flipped = b.apply("and", b.apply("xor", x, y), b.apply("xor", x, rest))
    return b.apply("choose", b.apply("lt", flipped, 0), _limit_beyond(b, x), rest)


@define("integer", 2, "hadd", "(x + y) >> 1 without overflow")
def hadd(b: Builder, x: Expr, y: Expr) -> Expr:
    x, y = integers(b, "hadd", x, y)
    return b.apply("add", b.apply("and", x, y), b.apply("shr", b.apply("xor", x, y), 1))


@define("integer", 2, "rhadd", "(x + y + 1) >> 1 without overflow")
def rhadd(b: Builder, x: Expr, y: Expr) -> Expr:
    x, y = integers(b, "rhadd", x, y)
    return b.apply("sub", b.apply("or", x, y), b.apply("shr", b.apply("xor", x, y), 1))


@define(
    "integer",
    2,
    "rotate",
    "x with its bits shifted left by n, those shifted out coming in again; of x's type",
    alone=(1,),
)
def rotate(b: Builder, x: Expr, n: Expr) -> Expr:
    """The amount counts modulo the width, so a negative one rotates to the right."""
    (x,), (n,) = integers(b, "rotate", x), integers(b, "rotate", n)
    bits, amount = _as_unsigned(b, x), b.cast(n, n.type.of(_unsigned(x.type).dtype), saturate=False)
    last = x.type.dtype.bits - 1
    left = b.apply("shl", bits, b.apply("and", amount, last))
    right = b.apply("shr", bits, b.apply("and", b.apply("sub", 0, amount), last))
    turned = b.apply("or", left, right)
    return b.cast(turned, turned.type.of(x.type.dtype), saturate=False)


@define("integer", 2, "mul_hi", "the high half of x · y")
def mul_hi(b: Builder, x: Expr, y: Expr) -> Expr:
    x, y = integers(b, "mul_hi", x, y)
    bits = x.type.dtype.bits
    if bits == 64:
        return b.apply("mul_hi", x, y)
    wide = _double(x.type)
    return b.cast(b.apply("shr", b.apply("mul", b.cast(x, wide), b.cast(y, wide)), bits), x.type, saturate=False)


@define("integer", 3, "mad_hi", "mul_hi(x, y) + z")
def mad_hi(b: Builder, x: Expr, y: Expr, z: Expr) -> Expr:
    x, y, z = integers(b, "mad_hi", x, y, z)
    return b.apply("add", expand(b, "mul_hi", x, y), z)


@define("integer", 3, "mad_sat", "x · y + z, saturated")
def mad_sat(b: Builder, x: Expr, y: Expr, z: Expr) -> Expr:
    x, y, z = integers(b, "mad_sat", x, y, z)
    if x.type.dtype.bits == 64:
        return _mad_sat_long(b, x, y, z)
    x_, y_, z_ = (b.cast(v, _double(x.type)) for v in (x, y, z))
    return b.cast(b.apply("add", b.apply("mul", x_, y_), z_), x.type)


def _mad_sat_long(b: Builder, x: Expr, y: Expr, z: Expr) -> Expr:
    """Saturate a 128-bit sum: it fits if its high half is the sign extension of the low half."""
    low, high = b.apply("mul", x, y), b.apply("mul_hi", x, y)
    total = b.apply("add", low, z)
    carry = b.cast(b.apply("lt", _as_unsigned(b, total), _as_unsigned(b, low)), x.type)
    high = b.apply("add", high, carry)
    if x.type.kind == "u":
        return b.apply("choose", b.apply("ne", high, 0), _limit(x.type), total)
    high = b.apply("add", high, b.apply("shr", z, 63))
    fits = b.apply("eq", high, b.apply("shr", total, 63))
    return b.apply("choose", fits, total, _limit_beyond(b, high))


def _of_24_bits(b: Builder, name: str, *args: Expr) -> list[Expr]:
    types: tuple[DType, ...] = (INT, UINT)
    converted = integers(b, name, *args)
    if converted[0].type.dtype not in types:
        raise SemanticError(
            f"_{name} wants ints or uints, not {' and '.join(str(a.type) for a in args)}; "
            "convert first, as in `_convert_int(x)`, or write `x * y`"
        )
    return converted


@define("integer", 2, "mul24", "x · y of int or uint values of 24 bits; greater ones multiply as 32-bit integers")
def mul24(b: Builder, x: Expr, y: Expr) -> Expr:
    return b.apply("mul", *_of_24_bits(b, "mul24", x, y))


@define("integer", 3, "mad24", "mul24(x, y) + z")
def mad24(b: Builder, x: Expr, y: Expr, z: Expr) -> Expr:
    x, y, z = _of_24_bits(b, "mad24", x, y, z)
    return b.apply("add", b.apply("mul", x, y), z)
