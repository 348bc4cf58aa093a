"""Expressions as C text: precedence and parentheses, literals, conversions, names."""

from __future__ import annotations

import math

import numpy as np

from gpuop.codegen.c.dialect import Dialect
from gpuop.codegen.c.identifiers import Names, index_name
from gpuop.codegen.c.integer_minmax import is_clamp
from gpuop.ir import nodes as ir
from gpuop.ir.ops import CALL, CHOICE, OPS
from gpuop.ir.target_expressions import TargetConst
from gpuop.ir.types import BOOL, DTYPES, HALF, DType, Type

PREFIX, SUM, SHIFT, GUARDED = 14, 12, 11, 5
BITWISE = (6, 7, 8)
COMPARISONS = (9, 10)
WRAPS = {"add", "sub", "mul", "neg", "invert", "shl"}  # C computes them in int, so narrow types cut the result
# Operands below these are in parentheses where C wants none: compilers warn, as comparisons in `&` look like slips.
CLEAR = {CHOICE: 9, GUARDED: 9, 6: SHIFT, 7: SHIFT, 8: SHIFT, 9: SHIFT, 10: SHIFT, SHIFT: SUM + 1}


class Expressions:
    """Prints the expressions of one kernel."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.calls = dialect.calls
        self.names = Names(dialect)
        self.doubles = False
        self.types: set[str] = set()  # distinct from those of the language
        self.threads: dict[str, str] = {}  # names of axes whose threads are not points
        self.flat: set[ir.FieldParam] = set()  # fields whose points are counted along one axis
        self.structures: frozenset[ir.FieldParam] = frozenset()  # tables that are passed by value
        self.streamed: set[ir.FieldParam] = set()  # outputs whose vectors are written past the caches

    def stored(self, store: ir.Store) -> str:
        """A store of a vector, where the language has them."""
        raise TypeError(f"{self.dialect.name} has no vectors: {store}")

    @property
    def nearest_half(self) -> str:
        """The function that rounds floats to halves."""
        return "round_half"

    def type(self, type_: Type) -> str:
        """The C type of a private value; half is float there."""
        self.doubles |= type_.dtype.c == "double"
        return self.dialect.type("float" if type_.dtype is HALF else type_.dtype.c)

    def text(self, expr: ir.Expr, context: int = 0) -> str:
        """The text of an expression, in parentheses where its precedence is below the context's."""
        text, prec = self.render(expr)
        return f"({text})" if prec < context else text

    def render(self, expr: ir.Expr) -> tuple[str, int]:  # noqa: C901 - a case for each kind of node
        """The text and its precedence."""
        match expr:
            case ir.Const():
                text = self.literal(expr)
                return text, CALL if not text.startswith("-") else PREFIX
            case ir.Ref(var=var):
                return self.names.of(var), CALL
            case ir.Index(offset=0):
                return index_name(expr, self.threads), CALL
            case ir.Index(offset=offset):
                return f"{index_name(expr, self.threads)} {'+' if offset > 0 else '-'} {abs(offset)}", SUM
            case ir.Stride(field=field, what="columns" as what):
                return f"{self.names.of(field)}_{'points' if field in self.flat else what}", CALL
            case ir.Stride(field=field, what=what):
                return f"{self.names.of(field)}_{what}", CALL
            case ir.Argument(field=field, plane=plane):
                return self.argument(field, plane), CALL
            case ir.Apply():
                return self.apply(expr)
            case ir.Cast():
                return self.cast(expr)
            case ir.Bits():
                return self.bits(expr), CALL
            case ir.Load():
                return self.load(expr)
            case ir.Lane() | ir.Pack() | ir.Read() | TargetConst():
                raise AssertionError(f"a {type(expr).__name__} has no C text")
            case _:
                ir.assert_never(expr)

    def argument(self, field: ir.FieldParam, plane: int) -> str:
        return self.names.of(field) + (f"_{'xyzw'[plane]}" if field.type.planes > 1 else "")

    def apply(self, expr: ir.Apply) -> tuple[str, int]:
        row = OPS[expr.op]
        calls = self.dialect.calls if is_clamp(expr) else self.calls
        special = calls.get(f"{expr.op} {expr.args[0].type}", calls.get(expr.op))
        if special is not None:
            args = map(self.bit_pattern if expr.op == "bytes_of" else self.text, expr.args)
            return special.format(*args, ints=list(map(self.as_int, expr.args))), CALL
        if not row.text:
            return f"{expr.op}({', '.join(map(self.passed, expr.args))})", CALL
        chosen = expr.op == "choose"
        first = self.operand(expr.args[0], row.prec, 1 if chosen else 0)
        rest = [self.operand(a, row.prec, 0 if chosen else 1) for a in expr.args[1:]]
        if row.prec == PREFIX:
            first = f"({first})" if first.startswith(("-", "~", "!")) else first
        text = row.text.format(first, *rest)
        if expr.op in WRAPS and expr.type.integer and expr.type.dtype.bits < 32:
            return f"({self.type(expr.type)})({text})", PREFIX
        return text, row.prec

    def operand(self, arg: ir.Expr, prec: int, right: int = 0) -> str:
        """The text of an operand of an operator of a precedence; 1 on the side where equal ones need parentheses."""
        if prec in BITWISE and isinstance(arg, ir.Const):
            return self.bit_pattern(arg)
        text, own = self.render(arg)
        alike = own == prec and prec not in COMPARISONS
        least = prec + right if alike else CLEAR.get(prec, prec + right)
        return f"({text})" if own < least else text

    def bit_pattern(self, arg: ir.Expr) -> str:
        """An operand of an operation on bits."""
        return self.literal(arg, bits=True) if isinstance(arg, ir.Const) and arg.type.integer else self.text(arg)

    def as_int(self, arg: ir.Expr) -> str:
        """An argument of a function of ints."""
        return self.text(arg) if isinstance(arg, ir.Const) else f"(int){self.text(arg, PREFIX)}"

    def passed(self, arg: ir.Expr) -> str:
        """An argument whose size matters, as of an overloaded function: what C computes in int gets its narrow type back."""
        narrow = arg.type.integer and arg.type.dtype.bits < 32
        if narrow and isinstance(arg, (ir.Const, ir.Apply)) and getattr(arg, "op", "") not in WRAPS:
            return f"({self.type(arg.type)}){self.text(arg, PREFIX)}"
        return self.text(arg)

    def cast(self, cast: ir.Cast) -> tuple[str, int]:
        arg, result = cast.arg.type.dtype, cast.type.dtype
        if cast.fits:
            return f"({self.type(cast.type)}){self.text(cast.arg, PREFIX)}", PREFIX
        wraps = "" if cast.saturate or result.bits >= arg.bits else "wrap "
        special = self.dialect.conversions.get(f"{wraps}{'float' if arg is HALF else arg.c} {result.c}")
        if special is not None:
            return special.format(x=self.text(cast.arg)), CALL
        if result is HALF:
            wide = self.text(cast.arg) if arg.kind == "f" else f"(float){self.text(cast.arg, PREFIX)}"
            return f"{self.nearest_half}({wide})", CALL
        if arg is HALF and result.c == "float":
            return self.render(cast.arg)
        if result.kind in "iu" and (arg.kind == "f" or (cast.saturate and not contains(result, arg))):
            return self.saturate(cast, Type(DTYPES["float"] if arg is HALF else arg)), CALL
        return f"({self.type(cast.type)}){self.text(cast.arg, PREFIX)}", PREFIX

    def saturate(self, cast: ir.Cast, source: Type) -> str:
        """A conversion that clamps to the integers that both types have.

        Narrow integers are clamped as int: the NVIDIA OpenCL compiler packs pairs of 16 bits, and loses some of them.
        """
        source = Type(DTYPES["int"]) if source.integer and source.dtype.bits < 32 else source
        clip = self.dialect.clips.get(f"{source.dtype.c} {cast.type.dtype.c}")
        if clip is not None:
            return clip.format(x=self.text(cast.arg))
        low, high = bounds(source.dtype, cast.type.dtype)
        info = np.iinfo(cast.type.dtype.numpy)
        limits = {
            "low": ir.Const(low, source),
            "high": ir.Const(high, source),
            "lowest": ir.Const(max(int(low), int(info.min)), cast.type),
            "highest": ir.Const(min(int(high), int(info.max)), cast.type),
        }
        return self.dialect.saturate.format(
            type=self.type(cast.type),
            name=cast.type.dtype.c,
            x=self.text(cast.arg),
            source=self.type(source),
            **{name: self.literal(limit) for name, limit in limits.items()},
        )

    def bits(self, bits: ir.Bits) -> str:
        """A reinterpretation; half is float here, and packed into an integer on the way."""
        arg, result, x = bits.arg.type, bits.type, self.passed(bits.arg)
        if result.dtype is HALF:
            ushort = Type(DTYPES["ushort"])
            if arg != ushort:  # compilers warn where a negative constant becomes unsigned by a call
                x = self.dialect.bits.format(type=self.type(ushort), name="ushort", x=x, source=self.type(arg))
            return self.dialect.conversions["bits half"].format(x=x)
        if arg.dtype is HALF:
            arg, x = Type(DTYPES["ushort"]), self.dialect.conversions["half bits"].format(x=x)
        return self.dialect.bits.format(type=self.type(result), name=result.dtype.c, x=x, source=self.type(arg))

    def load(self, load: ir.Load) -> tuple[str, int]:
        name = self.names.of(load.memory) + (".at" if load.memory in self.structures else "")
        if isinstance(load.memory, ir.FieldParam) and load.type.dtype is HALF:
            return self.dialect.load_half.format(pointer=name, offset=self.text(load.index[0])), CALL
        return name + "".join(f"[{self.text(i)}]" for i in load.index), CALL

    def literal(self, const: ir.Const, bits: bool = False) -> str:
        """A constant in C: shortest decimal text that reads back as the same value; hexadecimal where bits are meant."""
        value, dtype = const.value, const.type.dtype
        self.doubles |= dtype.c == "double"
        if dtype is BOOL:
            return "true" if value else "false"
        if dtype.kind in "iu":
            if value == -(2 ** (dtype.bits - 1)) and dtype.bits >= 32:
                suffix = self.dialect.suffix.get(dtype.c, "")
                return f"({int(value) + 1}{suffix} - 1)"
            lanes = dtype.kind == "u" and value > 0xFFFF and value % 0x10001 == 0  # the same in both halves of a word
            number = f"{int(value):#010x}" if lanes else f"{int(value):#x}" if bits and value > 9 else f"{int(value)}"
            return f"{number}{self.dialect.suffix.get(dtype.c, '')}"
        kind = "double" if dtype.c == "double" else "float"
        if math.isnan(value):
            return self.dialect.special[f"{kind} nan"]
        if math.isinf(value):
            text = self.dialect.special[f"{kind} inf"]
            return text if value > 0 else f"-{text}"
        text = repr(float(value)) if kind == "double" else shortest(np.float32(value))
        return text + ("f" if kind == "float" else "")


def shortest(value: np.float32) -> str:
    """The fewest digits that read back as the value; the same with every version of NumPy."""
    plain = value == 0 or 1e-4 <= abs(value) < 1e8
    return (np.format_float_positional if plain else np.format_float_scientific)(value, unique=True, trim="0")


def contains(outer: DType, inner: DType) -> bool:
    """Return whether the target type holds every value of an integer or bool type."""
    if inner.kind == "b":
        return True
    a, b = np.iinfo(inner.numpy), np.iinfo(outer.numpy)
    return int(b.min) <= int(a.min) and int(a.max) <= int(b.max)


def bounds(arg: DType, result: DType) -> tuple[int | float, int | float]:
    """The values of the given type between which conversion to an integer type does not saturate."""
    info = np.iinfo(result.numpy)
    low, high = int(info.min), int(info.max)
    if arg.kind == "f":
        source = np.float32 if arg.bits < 64 else np.float64
        return float(source(low)), float(source(high))
    own = np.iinfo(arg.numpy)
    return max(low, int(own.min)), min(high, int(own.max))
