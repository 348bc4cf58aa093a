"""OpenCL vectors as the lanes of CPU kernels. A bool is an int with all bits set, the result of a float comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from gpuop.codegen.c.dialect import Dialect
from gpuop.codegen.c.expressions import COMPARISONS, PREFIX, SHIFT, Expressions, contains
from gpuop.codegen.opencl import lane_calls, long_vectors, tensors, vector_access
from gpuop.codegen.opencl.lane_calls import LENGTHS, called_alone, name_in_vectors
from gpuop.codegen.opencl.lane_loads import picked
from gpuop.codegen.opencl.long_vectors import LONGEST
from gpuop.codegen.opencl.saturation import saturating
from gpuop.codegen.opencl.vector_access import gathering, loading, storing
from gpuop.ir.build import constant
from gpuop.ir.nodes import Apply, Array, Bits, Cast, Const, Expr, FieldParam, Load, Pack, Store
from gpuop.ir.ops import CALL, MIRRORED, OPS
from gpuop.ir.types import BOOL, FLOAT, HALF, INT, DType, Type

EXTREMES = ("min", "max")
SHIFTS = ("shl", "shr")  # vector by scalar, but not scalar by vector
MASKS = {8: "char", 16: "short", 32: "int", 64: "long"}

HALVES = {
    "round_half": """
// the nearest halves, as floats
float{n} round_half{n}(float{n} x)
{{
    ushort bits[{n}];
    vstore_half{n}(x, 0, (__private half *)bits);
    return vload_half{n}(0, (__private half *)bits);
}}
""",
    "round_double": """
// the nearest halves of doubles, as floats
float{n} round_double{n}(double{n} x)
{{
    ushort bits[{n}];
    vstore_half{n}(x, 0, (__private half *)bits);
    return vload_half{n}(0, (__private half *)bits);
}}
""",
    "pack_half": """
ushort{n} pack_half{n}(float{n} x)
{{
    ushort bits[{n}];
    vstore_half{n}(x, 0, (__private half *)bits);
    return vload{n}(0, bits);
}}
""",
    "unpack_half": """
float{n} unpack_half{n}(ushort{n} x)
{{
    ushort bits[{n}];
    vstore{n}(x, 0, bits);
    return vload_half{n}(0, (__private half *)bits);
}}
""",
}
QUOTIENT = """
// the signs and the low seven bits of the quotients that remainder rounds
int{n} {name}{n}({type}{n} x, {type}{n} y)
{{
    int{n} quotient;
    remquo(x, y, &quotient);
    return quotient % 128;
}}
"""


HELPERS: dict[str, str | Callable[[], str]] = {
    **long_vectors.HELPERS,
    **lane_calls.HELPERS,
    **{f"{name}{n}": text.format(n=n) for name, text in HALVES.items() for n in LENGTHS},
    **{f"remquo_bits{n}": QUOTIENT.format(n=n, name="remquo_bits", type="float") for n in LENGTHS},
    **{f"remquo_bits_double{n}": QUOTIENT.format(n=n, name="remquo_bits_double", type="double") for n in LENGTHS},
    **vector_access.HELPERS,
    **tensors.HELPERS,
}


def scalar(dtype: DType) -> str:
    """Register type of a lane."""
    return "int" if dtype is BOOL else "float" if dtype is HALF else dtype.c


class VectorExpressions(Expressions):
    """Prints vectors too, as those of OpenCL.

    Attributes:
        length: of the vectors whose functions scalar code calls; 1 where functions of scalars give the same bits.
    """

    def __init__(self, dialect: Dialect, length: int = 1) -> None:
        super().__init__(dialect)
        self.length = length

    @property
    def nearest_half(self) -> str:
        return "nearest_half" if self.length > 1 else "round_half"

    def type(self, type_: Type) -> str:
        self.doubles |= type_.dtype.c == "double"
        return self.vector(scalar(type_.dtype), type_.lanes) if type_.lanes > 1 else super().type(type_)

    def vector(self, c: str, n: int) -> str:
        """The name of a type, which the text defines if OpenCL does not."""
        if n > LONGEST:
            self.types.add(f"{c}{n}")
        return f"{c}{n}"

    def render(self, expr: Expr) -> tuple[str, int]:
        if expr.type.lanes > LONGEST:
            self.type(expr.type)
        if not isinstance(expr, Pack):
            return super().render(expr)
        return f"({self.type(expr.type)})({', '.join(map(self.text, expr.args))})", CALL

    # --- operators ----------------------------------------------------------------------------------------------

    def apply(self, expr: Apply) -> tuple[str, int]:
        n, args = expr.type.lanes, expr.args
        if n == 1:
            return self.alone(expr)
        kind, row = args[0].type.dtype, OPS[expr.op]
        if expr.op == "choose" and isinstance(args[0], Cast) and args[0].arg.type.lanes == 1:  # all lanes alike
            return super().apply(replace(expr, args=(args[0].arg, *args[1:])))
        if expr.op == "choose":
            chosen, other, mask = self.text(args[1]), self.text(args[2]), self.mask(args[0], args[1].type.dtype)
            return (f"select({other}, {chosen}, {mask})" if n <= LONGEST else f"({mask} ? {chosen} : {other})"), CALL
        if expr.op in EXTREMES and n > LONGEST:
            return f"{expr.op}_{self.type(expr.type)}({', '.join(map(self.text, args))})", CALL
        if expr.op == "nan" and kind.bits == 16:
            return f"nan(convert_uint{n}({self.text(args[0])}))", CALL
        if expr.op == "remquo_bits":
            return f"{expr.op}{'_double' * (kind.c == 'double')}{n}({', '.join(map(self.text, args))})", CALL
        if expr.op == "abs":  # the result is unsigned
            return f"as_{self.type(expr.type)}(abs({self.text(args[0])}))", CALL
        if expr.op in self.dialect.calls:
            return self.dialect.calls[expr.op].format(*map(self.text, args)), CALL
        if not row.text:
            name = expr.op if self.length == 1 else name_in_vectors(expr.op, n)
            return f"{name}({', '.join(map(self.text, args))})", CALL
        return self.infix(expr)

    def alone(self, expr: Apply) -> tuple[str, int]:
        """A scalar operation, through the function of vectors where that gives other bits."""
        if self.length == 1:
            return super().apply(expr)
        text = called_alone(expr.op, self.length, [(a.type.dtype, self.text(a)) for a in expr.args])
        return (text, CALL) if text else super().apply(expr)

    def infix(self, expr: Apply) -> tuple[str, int]:
        kind, op = expr.args[0].type.dtype, expr.op
        row = OPS[MIRRORED.get(op, op) if kind is BOOL else op]  # a true bool has all bits set, which is -1
        if row.prec == PREFIX:
            inner = self.text(expr.args[0], PREFIX)
            return row.text.format(f"({inner})" if inner.startswith(("-", "~", "!")) else inner), PREFIX
        first, second = expr.args
        left = self.operand(first if op in SHIFTS else self.unspread(first), row.prec)
        right = self.operand(self.unspread(second), row.prec, 1)
        text = row.text.format(left, right)
        if row.prec in COMPARISONS and MASKS[32 if kind in (BOOL, HALF) else kind.bits] != "int":
            return f"convert_{self.vector('int', expr.type.lanes)}({text})", CALL
        return text, row.prec

    @staticmethod
    def unspread(arg: Expr) -> Expr:
        """Between operators a scalar spreads by itself, if it is not narrower than int."""
        if (
            isinstance(arg, Cast)
            and arg.arg.type.lanes == 1
            and scalar(arg.type.dtype) in ("int", "uint", "float", "double")
        ):
            return arg.arg if arg.type.dtype is not BOOL else arg
        return arg

    def mask(self, cond: Expr, chosen: DType) -> str:
        """A condition as `select` wants it: of the size of what is chosen."""
        kind = MASKS[32 if chosen in (BOOL, HALF) else chosen.bits]
        text = self.text(cond)
        return text if kind == "int" else f"convert_{self.vector(kind, cond.type.lanes)}({text})"

    # --- conversions --------------------------------------------------------------------------------------------

    def cast(self, cast: Cast) -> tuple[str, int]:
        arg, result, n = cast.arg.type.dtype, cast.type.dtype, cast.type.lanes
        if n == 1:
            return super().cast(cast)
        if cast.arg.type.lanes == 1:
            text = self.text(cast.arg)
            if arg is BOOL:
                text = (
                    str(-int(cast.arg.value)) if isinstance(cast.arg, Const) else f"-(int){self.text(cast.arg, PREFIX)}"
                )
            return f"({self.type(cast.type)})({text})", CALL
        x = self.text(cast.arg)
        if arg is BOOL:
            x, arg = f"{self.text(cast.arg, SHIFT)} & 1", DType("int32", "int", "i", 32)
        if result is HALF:
            name = "round_double" if arg.c == "double" else self.nearest_half
            return f"{name}{n}({x if arg.kind == 'f' else f'convert_float{n}({x})'})", CALL
        if arg is HALF and result.c == "float":
            return self.render(cast.arg)
        if cast.fits:
            whole = INT.c if result.bits < INT.bits else result.c  # conversions with instructions
            inner = f"convert_{self.vector(whole, n)}({x})"
            return (inner if whole == result.c else f"convert_{self.vector(result.c, n)}({inner})"), CALL
        return self.converted(x, arg, result, n, cast.saturate and cast.arg.type.dtype is not BOOL)

    def converted(self, x: str, arg: DType, result: DType, n: int, saturate: bool) -> tuple[str, int]:
        if arg.kind == "f" and result.kind != "f":
            return f"{saturating(FLOAT if arg is HALF else arg, result, n)}({x})", CALL
        clamped = saturate and result.kind != "f" and not contains(result, arg)
        return f"convert_{self.vector(result.c, n)}{'_sat' * clamped}({x})", CALL

    def bits(self, bits: Bits) -> str:
        arg, result, n = bits.arg.type.dtype, bits.type.dtype, bits.type.lanes
        if n == 1:
            return super().bits(bits)
        x = self.text(bits.arg)
        if result is HALF:
            return f"unpack_half{n}({x if arg.c == 'ushort' else f'as_ushort{n}({x})'})"
        x = f"pack_half{n}({x})" if arg is HALF else x
        return f"as_{result.c}{n}({x})"

    # --- memory -------------------------------------------------------------------------------------------------

    def load(self, load: Load) -> tuple[str, int]:
        n, memory = load.type.lanes, load.memory
        if n == 1:
            return super().load(load)
        if isinstance(memory, FieldParam) and load.index[0].type.lanes > 1:
            at = load.index[0]
            return f"{gathering(load.type.dtype.c, n, at.type.dtype.c)}({self.names.of(memory)}, {self.text(at)})", CALL
        if load.whole:
            pointer, planes = self.neighbours(memory, load.index), load.whole // n
            return f"{tensors.loading(load.type.dtype.c, n, planes, load.ahead[0])}({pointer})", CALL
        if load.ahead:
            return picked(scalar(load.type.dtype), load.ahead, partial(self.further, load)), CALL
        if isinstance(memory, Array):
            name = loading(scalar(memory.type.dtype), n, memory.space)
            return f"{name}({self.neighbours(memory, load.index)})", CALL
        pointer, c = self.neighbours(memory, load.index[:1]), load.type.dtype.c
        if len(load.index) > 1:
            limits = ", ".join(map(self.text, load.index[1:]))
            return f"load_{'first' if len(load.index) == 2 else 'within'}_{c}{n}({pointer}, {limits})", CALL
        return (f"vload_half{n}(0, {pointer})" if c == "half" else f"{loading(c, n)}({pointer})"), CALL

    def further(self, load: Load, count: int, ahead: int) -> str:
        """So many neighbours, so far ahead of where a vector is loaded."""
        *outer, last = load.index
        place = Apply("add", (last, constant(ahead, last.type.dtype)), last.type) if ahead else last
        return self.text(Load(load.memory, (*outer, place), Type(load.type.dtype, count)))

    def stored(self, store: Store) -> str:
        """A store of a vector, or of several whose elements alternate."""
        if store.ahead:
            return self.alternating(store)
        n, c, value = store.value.type.lanes, store.value.type.dtype.c, self.text(store.value)
        if isinstance(store.memory, Array):
            name = storing(scalar(store.memory.type.dtype), n, store.memory.space)
            return f"{name}({value}, {self.neighbours(store.memory, store.index)})"
        pointer = self.neighbours(store.memory, store.index[:1])
        if len(store.index) > 1:
            return f"store_first_{c}{n}({value}, {pointer}, {self.text(store.index[1])})"
        name = f"stream_{c}{n}"
        if store.memory in self.streamed and name in HELPERS:
            return f"{name}({value}, {pointer})"
        return f"vstore_half{n}({value}, 0, {pointer})" if c == "half" else f"{storing(c, n)}({value}, {pointer})"

    def alternating(self, store: Store) -> str:
        assert isinstance(store.value, Pack)
        values, c = store.value.args, store.value.type.dtype.c
        streamed = store.memory in self.streamed
        name = tensors.storing(c, values[0].type.lanes, len(values), streamed)
        return f"{name}({', '.join(map(self.text, values))}, {self.neighbours(store.memory, store.index)})"

    def neighbours(self, memory: Array | FieldParam, index: tuple[Expr, ...]) -> str:
        """The address of the first element of a vector."""
        return f"&{self.names.of(memory)}{''.join(f'[{self.text(i)}]' for i in index)}"
