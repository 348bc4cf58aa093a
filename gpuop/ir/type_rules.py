"""Type rules of the operator table: operand types in, converted operand types and the result type out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpuop.base.errors import SemanticError
from gpuop.ir.types import BOOL, DTYPES, FLOAT, INT, DType, Type, promote

Signature = tuple[tuple[Type, ...], Type]
Rule = Callable[[str, Sequence[Type]], Signature]


def lanes(name: str, types: Sequence[Type]) -> int:
    """The common vector length; scalars spread."""
    lengths = {t.lanes for t in types} - {1}
    if len(lengths) > 1:
        raise SemanticError(
            f"{name}: vectors of different lengths, {' and '.join(str(t) for t in types if t.lanes > 1)}; take "
            "components (`v.xy`) or use scalars"
        )
    return lengths.pop() if lengths else 1


def common(types: Sequence[Type]) -> DType:
    dtype = types[0].dtype
    for t in types[1:]:
        dtype = promote(dtype, t.dtype)
    return dtype


def uniform(types: Sequence[Type], operand: Type, result: Type | None = None) -> Signature:
    return (operand,) * len(types), result or operand


def arithmetic(name: str, types: Sequence[Type]) -> Signature:
    dtype = common(types)
    return uniform(types, Type(INT if dtype is BOOL else dtype, lanes(name, types)))


def compare(name: str, types: Sequence[Type]) -> Signature:
    operand = Type(common(types), lanes(name, types))
    return uniform(types, operand, operand.of(BOOL))


def bitwise(name: str, types: Sequence[Type]) -> Signature:
    operand = Type(common(types), lanes(name, types))
    if operand.kind == "f":
        raise SemanticError(
            f"{name} wants integers or bools, not {' and '.join(map(str, types))}; it binds more closely than comparisons "
            "do, so write `(x > a) & (x < b)`; `_convert_int(x)` converts"
        )
    return uniform(types, operand)


def shift(name: str, types: Sequence[Type]) -> Signature:
    for t in types:
        if not t.integer:
            raise SemanticError(
                f"{name} wants integers, not {' and '.join(map(str, types))}; convert first, as in `_convert_int(x)`"
            )
    return uniform(types, Type(types[0].dtype, lanes(name, types)))


OF_FLOATS = {"_abs": "of floats it is `_fabs(x)`, or `abs(x)`, of complex numbers `_complexAbs(z)`; or "}


def integer(name: str, types: Sequence[Type]) -> Signature:
    """The rule of the integer functions; bools count as int."""
    operand = arithmetic(name, types)[1]
    if operand.kind == "f":
        raise SemanticError(
            f"{name} wants integers, not {' and '.join(map(str, types))}; {OF_FLOATS.get(name, '')}convert first, as in "
            "`_convert_int(x)`"
        )
    return uniform(types, operand)


def logical(name: str, types: Sequence[Type]) -> Signature:
    return uniform(types, Type(BOOL, lanes(name, types)))


def floating(name: str, types: Sequence[Type]) -> Signature:
    dtype = common(types)
    return uniform(types, Type(dtype if dtype.kind == "f" else FLOAT, lanes(name, types)))


def floating_integer(name: str, types: Sequence[Type]) -> Signature:
    """(floating, integer): the exponent of pown, ldexp, rootn."""
    base, exponent = types
    if not exponent.integer:
        raise SemanticError(
            f"{name} wants an integer as its second argument, not {exponent}; convert with `_convert_int(x)`"
        )
    n = lanes(name, types)
    operand = Type(base.dtype if base.kind == "f" else FLOAT, n)
    return (operand, Type(INT, n)), operand


def floating_to_int(name: str, types: Sequence[Type]) -> Signature:
    operand = floating(name, types)[1]
    return uniform(types, operand, operand.of(INT))


def nan_code(name: str, types: Sequence[Type]) -> Signature:
    (code,) = types
    width = {d.bits: d for d in DTYPES.values() if d.kind == "f"}.get(code.dtype.bits)
    if not code.integer or width is None:
        raise SemanticError(f"{name} wants a ushort, uint or ulong code, not {code}; write `_convert_uint(x)`")
    return (code,), code.of(width)


def choice(name: str, types: Sequence[Type]) -> Signature:
    """(condition, a, b): a where the condition holds, else b."""
    n = lanes(name, types)
    value = Type(common(types[1:]), n)
    return (Type(BOOL, n), value, value), value
