"""Typed constructors: the only place that applies operators, inserts conversions and folds constants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from gpuop.base.errors import Loc, SemanticError, article, written_out
from gpuop.ir import numpy_semantics
from gpuop.ir.nodes import ATOMS, Apply, Bits, Cast, Const, Expr, Index, Lane, Let, Pack, Ref, Stmt, Var
from gpuop.ir.ops import OPS, Row
from gpuop.ir.type_rules import Signature
from gpuop.ir.types import BOOL, FLOAT, INT, DType, Type

Number = bool | int | float
NUMBERS = (int, float)  # bools are integers


def number(value: Any) -> Number | None:
    """Python value of a Python or NumPy number; None for anything else."""
    if isinstance(value, (np.bool_, np.integer, np.floating)) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    return value if isinstance(value, (bool, int, float)) else None


def conversion(target: Type, lanes: int) -> str:
    """The conversion of a value with this number of lanes to a type, as users write it."""
    return f"_convert_{Type(target.dtype, lanes)}(x)"


def constant(value: Any, dtype: DType) -> Const:
    """A scalar constant of a type, rounded to it."""
    if type(value) is int and dtype is INT and -(2**31) <= value < 2**31:
        return Const(value, Type(INT))
    with np.errstate(over="ignore"):
        return Const(dtype.values(value).item(), Type(dtype))


def literal(value: Number, others: Sequence[Type] = ()) -> Const:
    """A number in a kernel takes the type of the other operands; alone it is int or float.

    Raises:
        SemanticError: the number does not fit that type.
    """
    kinds = {t.kind for t in others}
    if isinstance(value, bool):
        dtype = BOOL if not others else _widest(others)
    elif isinstance(value, int):
        dtype = _widest(others) if kinds & set("iuf") else INT
    else:
        dtype = _widest([t for t in others if t.kind == "f"]) if "f" in kinds else FLOAT
    if dtype is not BOOL and not dtype.holds(value):
        bits = bits_of(value, dtype.numpy)
        raise SemanticError(
            f"{written_out(value)} does not fit {dtype.c}; convert the other side first, or "
            + (f"write {bits} if its bits are meant" if bits else "give the number a type with `_convert(x, dtype)`")
        )
    return constant(value, dtype)


def bits_of(value: Number, dtype: Any) -> str:
    """Hint for an unsigned dtype with the bits of a negative integer, such as `~1`; empty if it is narrower, or for other
    dtypes.
    """
    kind = np.dtype(dtype)
    width = 8 * kind.itemsize
    if kind.kind != "u" or not isinstance(value, int) or not -(1 << (width - 1)) <= value < 0:
        return ""
    return f"0x{value & ((1 << width) - 1):X}"


def _widest(types: Sequence[Type]) -> DType:
    return max((t.dtype for t in types), key=lambda d: (d.kind == "f", d.kind != "b", d.bits, d.kind == "u"))


class Builder:
    """Builds expressions in A-normal form: `bind` names an expression and returns the atom that stands for it."""

    def __init__(self, bind: Callable[[Expr], Expr]) -> None:
        self._bind = bind

    def bind(self, expr: Expr) -> Expr:
        return expr if isinstance(expr, ATOMS) else self._bind(expr)

    def copy(self, expr: Expr) -> Expr:
        """An atom's value of now."""
        return self._bind(expr)

    def apply(self, op: str, *args: Expr | Number) -> Expr:
        """Apply a row of the table; operands convert to the types its rule wants."""
        row = OPS[op]
        operands = self.literals(row.alone, args)
        types, result = signature(row, tuple([a.type for a in operands]))
        folded = fold(row, operands, types, result)
        if folded is not None:
            return folded
        if op == "mod" and result.kind == "f":
            op = "fmod"
        converted = [
            a if a.type is t else self.cast(a, t, saturate=False) for a, t in zip(operands, types, strict=True)
        ]
        return self.bind(Apply(op, tuple(converted), result))

    def all_of(self, tests: Iterable[Expr | None]) -> Expr | None:
        """The conjunction of the tests that are not None, each bound before the next one is made; None without any."""
        result: Expr | None = None
        for test in tests:
            if test is not None:
                result = test if result is None else self.apply("and", result, test)
        return result

    def literals(self, alone: Sequence[int], args: Sequence[Expr | Number]) -> list[Expr]:
        """Numbers among operands take the type of the others, those at positions `alone` only of one another."""
        if not any(isinstance(a, NUMBERS) for a in args):
            return list(args)  # type: ignore[arg-type]
        types = [(i, a.type) for i, a in enumerate(args) if not isinstance(a, NUMBERS)]
        return [
            literal(a, [t for j, t in types if (j in alone) == (i in alone)]) if isinstance(a, NUMBERS) else a
            for i, a in enumerate(args)
        ]

    def cast(self, arg: Expr, target: Type, saturate: bool = True) -> Expr:
        """Convert; a scalar spreads over lanes."""
        if arg.type == target:
            return arg
        if arg.type.lanes not in (1, target.lanes):
            advice = (
                f"components (`v.xy`) or build {article(str(target))} with `_{target}(…)`"
                if target.lanes > 1
                else f"a component (`v.x`), or convert all of them with `{conversion(target, arg.type.lanes)}`"
            )
            raise SemanticError(
                f"{article(str(arg.type))} does not convert to {target}: the lengths differ; take {advice}"
            )
        if isinstance(arg, Const) and target.lanes == 1:
            return fold_cast(arg, target, saturate)
        if target.kind == "b" and arg.type.lanes == target.lanes:
            return self.apply("ne", arg, 0)
        return self.bind(Cast(arg, target, saturate))

    def bits(self, arg: Expr, target: Type) -> Expr:
        if (arg.type.dtype.bits, arg.type.lanes) != (target.dtype.bits, target.lanes):
            raise SemanticError(
                f"{article(str(arg.type))} has not as many bits as {article(str(target))}: reinterpretation keeps "
                f"the size of every component; `_convert_{target}(x)` converts"
            )
        return arg if arg.type == target else self.bind(Bits(arg, target))

    def lane(self, arg: Expr, lane: int) -> Expr:
        return arg if arg.type.lanes == 1 else self.bind(Lane(arg, lane, arg.type.scalar))

    def lanes(self, arg: Expr) -> list[Expr]:
        return [self.lane(arg, i) for i in range(arg.type.lanes)]

    def pack(self, args: Sequence[Expr]) -> Expr:
        """Scalars of one type side by side; one scalar stays a scalar."""
        return args[0] if len(args) == 1 else self.bind(Pack(tuple(args), Type(args[0].type.dtype, len(args))))


@lru_cache(maxsize=4096)
def signature(row: Row, types: tuple[Type, ...]) -> Signature:
    """The types that a row's operands convert to, and that of the result."""
    return row.rule(row.shown, types)


def collector(out: list[Stmt], loc: Loc | None = None, hint: str = "t", temporary: bool = True) -> Builder:
    """A builder that appends its bindings to a list."""

    def bind(expr: Expr) -> Expr:
        var = Var(hint, expr.type, temporary=temporary)
        out.append(Let(var, expr, loc))
        return Ref(var)

    return Builder(bind)


def fold(row: Row, args: Sequence[Expr], types: Sequence[Type], result: Type) -> Expr | None:
    """Constants through exact operators, `_row + 1` into the index itself."""
    if Const not in map(type, args):
        return None
    if row.name in ("add", "sub") and result == Type(INT):
        shifted = _shift_index(row.name, args[0], args[1])
        if shifted is not None:
            return shifted
    constants = tuple([a for a in args if isinstance(a, Const)])
    if not row.exact or result.lanes > 1 or len(constants) < len(args):
        return None
    return _folded(row, constants, tuple(types), result)


@lru_cache(maxsize=4096)
def _folded(row: Row, args: tuple[Const, ...], types: tuple[Type, ...], result: Type) -> Const:
    with np.errstate(all="ignore"):
        arrays = [
            numpy_semantics.convert(np.asarray(a.value, a.type.dtype.numpy), t.dtype.numpy, False)
            for a, t in zip(args, types, strict=True)
        ]
        return Const(result.dtype.values(row.numpy(*arrays)).item(), result)


def _shift_index(op: str, a: Expr, b: Expr) -> Index | None:
    if op == "add" and isinstance(a, Const):
        a, b = b, a
    if not (isinstance(a, Index) and a.kind == "global" and isinstance(b, Const) and b.type.integer):
        return None
    offset = a.offset + (int(b.value) if op == "add" else -int(b.value))
    return Index(a.kind, a.axis, offset) if abs(offset) < 2**30 else None


def fold_cast(arg: Const, target: Type, saturate: bool) -> Const:
    with np.errstate(all="ignore"):
        value = numpy_semantics.convert(np.asarray(arg.value, arg.type.dtype.numpy), target.dtype.numpy, saturate)
    return Const(target.dtype.values(value).item(), target)
