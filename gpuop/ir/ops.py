"""THE TABLE: one row per operator or builtin, with all facts about it.

A row has the DSL name (with an underscore in kernels), the type rule, the meaning in NumPy, the C text, the error bound in
ULP, and the entry of the guide. A dialect lists only its exceptions. Composed functions are in `expansions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.base.records import dataclass
from gpuop.ir import numpy_semantics, type_rules
from gpuop.ir.type_rules import Rule
from gpuop.ir.types import DType

CHOICE = 3
CALL = 16  # precedence of a call or an atom; the other C levels are below


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """An operator.

    Attributes:
        arity: operands.
        rule: the type rule.
        numpy: the meaning, on arrays of the operand types (of float64 for inexact floating rows).
        text: the C text, with `{0}` for operands; a call of the row's name if empty.
        prec: the C precedence of that text.
        exact: correctly rounded everywhere, so constants fold and the reference computes in the type itself.
        alone: operands whose numbers do not take the type of the others.
        group: the table of the guide ("integer", "math", "geometric", "common", "relational"); empty where users write an
            operator, or an expansion that has the row's name.
        ulp: the error bound of OpenCL 1.2 for float: 0 for correctly rounded, infinity where it sets none.
        double: the bound for double, where it differs.
    """

    name: str
    arity: int
    rule: Rule
    numpy: Callable[..., Any]
    text: str = ""
    prec: int = CALL
    exact: bool = False
    alone: tuple[int, ...] = ()
    group: str = ""
    ulp: float = 0.0
    double: float | None = None
    doc: str = ""

    def computed(self, args: Sequence[Any], dtype: DType) -> NDArray[Any]:
        """The operation on arrays of scalars; what devices do not round correctly is computed in float64, and rounded."""
        if not self.exact:
            args = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in args]
        return np.asarray(self.numpy(*args)).astype(dtype.numpy, copy=False)

    @property
    def shown(self) -> str:
        """Spelling for users: `+`, or `_sin`."""
        return f"_{self.name}" if self.prec in (CALL, CHOICE) else f"`{self.text.strip('{}01').strip()}`"


OPS: dict[str, Row] = {}


def row(
    name: str, arity: int, rule: Rule, numpy: Callable[..., Any], text: str = "", prec: int = CALL, **facts: Any
) -> None:
    OPS[name] = Row(name, arity, rule, numpy, text, prec, **facts)


def exact(
    name: str, arity: int, rule: Rule, numpy: Callable[..., Any], text: str = "", prec: int = CALL, **facts: Any
) -> None:
    row(name, arity, rule, numpy, text, prec, exact=True, **facts)


# --- operators --------------------------------------------------------------------------------------------------
exact("add", 2, type_rules.arithmetic, np.add, "{0} + {1}", 12)
exact("sub", 2, type_rules.arithmetic, np.subtract, "{0} - {1}", 12)
exact("mul", 2, type_rules.arithmetic, np.multiply, "{0} * {1}", 13)
exact("div", 2, type_rules.arithmetic, numpy_semantics.div, "{0} / {1}", 13)
exact("mod", 2, type_rules.arithmetic, numpy_semantics.mod, "{0} % {1}", 13)  # for integers; floating values have fmod
exact("neg", 1, type_rules.arithmetic, np.negative, "-{0}", 14)
exact("lt", 2, type_rules.compare, np.less, "{0} < {1}", 10)
exact("le", 2, type_rules.compare, np.less_equal, "{0} <= {1}", 10)
exact("gt", 2, type_rules.compare, np.greater, "{0} > {1}", 10)
exact("ge", 2, type_rules.compare, np.greater_equal, "{0} >= {1}", 10)
exact("eq", 2, type_rules.compare, np.equal, "{0} == {1}", 9)
exact("ne", 2, type_rules.compare, np.not_equal, "{0} != {1}", 9)
exact("and", 2, type_rules.bitwise, np.bitwise_and, "{0} & {1}", 8)
exact("xor", 2, type_rules.bitwise, np.bitwise_xor, "{0} ^ {1}", 7)
exact("or", 2, type_rules.bitwise, np.bitwise_or, "{0} | {1}", 6)
exact("invert", 1, type_rules.bitwise, np.invert, "~{0}", 14)
exact("shl", 2, type_rules.shift, np.left_shift, "{0} << {1}", 11)
exact("shr", 2, type_rules.shift, np.right_shift, "{0} >> {1}", 11)
exact("not", 1, type_rules.logical, np.logical_not, "!{0}", 14)
row("hidden", 1, type_rules.arithmetic, np.positive)  # a number that compilers do not know; so it does not fold either
row("loaded", 1, type_rules.arithmetic, np.positive)  # a loaded value, fixed before later computations
exact("choose", 3, type_rules.choice, np.where, "{0} ? {1} : {2}", CHOICE, alone=(0,))

# --- integers ---------------------------------------------------------------------------------------------------
exact("max", 2, type_rules.arithmetic, np.maximum)  # floating values are compared, but by `passes/fast_minmax.py`
exact("min", 2, type_rules.arithmetic, np.minimum)
# `abs` is for positions; users' absolute values are choices, as compilers take an `abs` to be no less than 0
exact("abs", 1, type_rules.integer, np.abs)
exact(
    "bytes_of", 3, type_rules.integer, numpy_semantics.bytes_of
)  # bytes of two words, selected by the digits of a third
exact("halves_max", 2, type_rules.integer, numpy_semantics.halves_max)  # on words of two unsigned 16-bit numbers
exact("halves_min", 2, type_rules.integer, numpy_semantics.halves_min)
exact(
    "mul_hi", 2, type_rules.integer, numpy_semantics.mul_hi
)  # for 64 bits; narrower integers multiply in a wider type
exact(
    "clz",
    1,
    type_rules.integer,
    numpy_semantics.clz,
    group="integer",
    doc="the number of leading zero bits of x; its width for 0",
)
exact(
    "popcount",
    1,
    type_rules.integer,
    numpy_semantics.popcount,
    group="integer",
    doc="the number of bits of x that are 1",
)

# --- math, exact ------------------------------------------------------------------------------------------------
# Each comparison, and the same with its operands exchanged.
MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}

# OpenCL allows square roots 3 ULP of error and quotients 2.5, but a build option asks for correct rounding.
_Rows = tuple[tuple[str, int, Rule, Callable[..., Any], str], ...]
_ROUNDED: _Rows = (
    ("sqrt", 1, type_rules.floating, np.sqrt, "√x"),
    ("fabs", 1, type_rules.floating, np.abs, "|x|"),
    ("ceil", 1, type_rules.floating, np.ceil, "the least integer that is not below x"),
    ("floor", 1, type_rules.floating, np.floor, "the greatest integer that is not above x"),
    ("rint", 1, type_rules.floating, np.rint, "the nearest integer, halves to even"),
    ("round", 1, type_rules.floating, numpy_semantics.round_away, "the nearest integer, halves away from zero"),
    ("trunc", 1, type_rules.floating, np.trunc, "the integer part of x"),
    (
        "fmax",
        2,
        type_rules.floating,
        numpy_semantics.quiet(np.fmax),
        "the greater of x and y; the other one where one is NaN",
    ),
    (
        "fmin",
        2,
        type_rules.floating,
        numpy_semantics.quiet(np.fmin),
        "the lesser of x and y; the other one where one is NaN",
    ),
    ("fmod", 2, type_rules.floating, np.fmod, "x - y · trunc(x / y)"),
    ("copysign", 2, type_rules.floating, np.copysign, "|x| with the sign of y"),
    ("nextafter", 2, type_rules.floating, np.nextafter, "the number of x's type that follows x in the direction of y"),
    ("fma", 3, type_rules.floating, numpy_semantics.fma, "x · y + z, rounded once"),
    ("nan", 1, type_rules.nan_code, numpy_semantics.nan, "NaN, of the code's size"),
)
_WHOLE: _Rows = (  # the reference needs float64
    (
        "remainder",
        2,
        type_rules.floating,
        numpy_semantics.remainder,
        "x - n · y, n the integer nearest to x / y, halves to even",
    ),
    ("ilogb", 1, type_rules.floating_to_int, numpy_semantics.ilogb, "the binary exponent of x as an int"),
    ("logb", 1, type_rules.floating, numpy_semantics.logb, "the binary exponent of x"),
)
for _name, _arity, _rule, _numpy, _doc in _ROUNDED:
    exact(_name, _arity, _rule, _numpy, group="math", doc=_doc)
for _name, _arity, _rule, _numpy, _doc in _WHOLE:
    row(_name, _arity, _rule, _numpy, group="math", doc=_doc)
row("ldexp", 2, type_rules.floating_integer, np.ldexp, alone=(1,), group="math", doc="x · 2ⁿ")
row("remquo_bits", 2, type_rules.floating_to_int, numpy_semantics.quotient_bits)

# --- math, within a bound ---------------------------------------------------------------------------------------
_BOUNDED: tuple[tuple[str, int, Callable[..., Any], float, str], ...] = (
    ("acos", 1, np.arccos, 4, "arc cosine, 0 … π"),
    ("acosh", 1, np.arccosh, 4, "the inverse of cosh"),
    ("asin", 1, np.arcsin, 4, "arc sine, -π/2 … π/2"),
    ("asinh", 1, np.arcsinh, 4, "the inverse of sinh"),
    ("atan", 1, np.arctan, 5, "arc tangent, -π/2 … π/2"),
    ("atanh", 1, np.arctanh, 5, "the inverse of tanh"),
    ("cbrt", 1, np.cbrt, 2, "³√x"),
    ("cos", 1, np.cos, 4, "cosine of x in radians"),
    ("cosh", 1, np.cosh, 4, "(eˣ + e⁻ˣ) / 2"),
    ("cospi", 1, numpy_semantics.cospi, 4, "cos(πx)"),
    ("erf", 1, numpy_semantics.elementwise(math.erf), 16, "2/√π · ∫₀ˣ exp(-t²) dt"),
    ("erfc", 1, numpy_semantics.elementwise(math.erfc), 16, "1 - erf(x)"),
    ("exp", 1, np.exp, 3, "eˣ"),
    ("exp2", 1, np.exp2, 3, "2ˣ"),
    ("exp10", 1, lambda x: np.power(10.0, x), 3, "10ˣ"),
    ("expm1", 1, np.expm1, 3, "eˣ - 1"),
    ("lgamma", 1, numpy_semantics.lgamma, math.inf, "log |Γ(x)|"),
    ("log", 1, np.log, 3, "the natural logarithm"),
    ("log10", 1, np.log10, 3, "the logarithm to base 10"),
    ("log1p", 1, np.log1p, 2, "log(1 + x)"),
    ("log2", 1, np.log2, 3, "the logarithm to base 2"),
    ("rsqrt", 1, lambda x: 1 / np.sqrt(x), 2, "1 / √x"),
    ("sin", 1, np.sin, 4, "sine of x in radians"),
    ("sinh", 1, np.sinh, 4, "(eˣ - e⁻ˣ) / 2"),
    ("sinpi", 1, numpy_semantics.sinpi, 4, "sin(πx)"),
    ("tan", 1, np.tan, 5, "tangent of x in radians"),
    ("tanh", 1, np.tanh, 5, "sinh(x) / cosh(x)"),
    ("tgamma", 1, numpy_semantics.tgamma, 16, "Γ(x)"),
    ("atan2", 2, np.arctan2, 6, "the angle of the point (x, y), called as _atan2(y, x)"),
    ("hypot", 2, numpy_semantics.quiet(np.hypot), 4, "√(x² + y²), which overflows only where the result does"),
    ("pow", 2, numpy_semantics.quiet(np.power), 16, "xʸ"),
    ("powr", 2, numpy_semantics.powr, 16, "xʸ of x ≥ 0; NaN of others, and where no limit exists"),
)
for _name, _arity, _numpy, _ulp, _doc in _BOUNDED:
    row(_name, _arity, type_rules.floating, _numpy, group="math", ulp=_ulp, doc=_doc)
row(
    "pown",
    2,
    type_rules.floating_integer,
    numpy_semantics.pown,
    alone=(1,),
    group="math",
    ulp=16,
    doc="xⁿ of an integer n",
)
row(
    "rootn",
    2,
    type_rules.floating_integer,
    numpy_semantics.rootn,
    alone=(1,),
    group="math",
    ulp=16,
    doc="ⁿ√x of an integer n",
)

# --- of float, as the device has them: what "fast" makes of functions and quotients ------------------------------
for _name, _function in {"exp2": np.exp2, "log2": np.log2, "sin": np.sin, "cos": np.cos, "tan": np.tan}.items():
    row(f"native_{_name}", 1, type_rules.floating, _function, ulp=math.inf)
row("native_sqrt", 1, type_rules.floating, np.sqrt)
row("native_divide", 2, type_rules.floating, np.divide, "{0} / {1}", 13)
