"""THE TABLE: one row per operator or builtin is all there is to know about it.

A row gives the DSL name (with an underscore in kernels), the type rule, the meaning in NumPy, C's text, and the error
bound of OpenCL 1.2 in ULP. A dialect lists only its exceptions. Functions made of others are in `expansions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuop.ir import meaning, rules
from gpuop.ir.rules import Rule

CHOICE = 3
CALL = 16  # precedence of a call or an atom; C's other levels are below


@dataclass(frozen=True, slots=True)
class Row:
    """An operator.

    Attributes:
        arity: operands.
        rule: the type rule.
        numpy: the meaning, on arrays of the operand types (of float64 for inexact floating rows).
        text: C's spelling, with `{0}` for operands; a call of the row's own name when empty.
        prec: C's precedence of that spelling.
        exact: correctly rounded everywhere, so constants fold and the reference computes in the type itself.
        ulp: the error bound of OpenCL 1.2 for float.
        alone: operands whose numbers do not take the type of the others.
    """

    name: str
    arity: int
    rule: Rule
    numpy: Callable[..., Any]
    text: str = ""
    prec: int = CALL
    exact: bool = False
    ulp: float = 0.0
    alone: tuple[int, ...] = ()

    @property
    def shown(self) -> str:
        """What users write: `+`, or `_sin`."""
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
exact("add", 2, rules.arithmetic, np.add, "{0} + {1}", 12)
exact("sub", 2, rules.arithmetic, np.subtract, "{0} - {1}", 12)
exact("mul", 2, rules.arithmetic, np.multiply, "{0} * {1}", 13)
exact("div", 2, rules.arithmetic, meaning.div, "{0} / {1}", 13)
exact("mod", 2, rules.arithmetic, meaning.mod, "{0} % {1}", 13)  # of integers; on floating values it is fmod
exact("neg", 1, rules.arithmetic, np.negative, "-{0}", 14)
exact("lt", 2, rules.compare, np.less, "{0} < {1}", 10)
exact("le", 2, rules.compare, np.less_equal, "{0} <= {1}", 10)
exact("gt", 2, rules.compare, np.greater, "{0} > {1}", 10)
exact("ge", 2, rules.compare, np.greater_equal, "{0} >= {1}", 10)
exact("eq", 2, rules.compare, np.equal, "{0} == {1}", 9)
exact("ne", 2, rules.compare, np.not_equal, "{0} != {1}", 9)
exact("and", 2, rules.bitwise, np.bitwise_and, "{0} & {1}", 8)
exact("xor", 2, rules.bitwise, np.bitwise_xor, "{0} ^ {1}", 7)
exact("or", 2, rules.bitwise, np.bitwise_or, "{0} | {1}", 6)
exact("invert", 1, rules.bitwise, np.invert, "~{0}", 14)
exact("shl", 2, rules.shift, np.left_shift, "{0} << {1}", 11)
exact("shr", 2, rules.shift, np.right_shift, "{0} >> {1}", 11)
exact("not", 1, rules.logical, np.logical_not, "!{0}", 14)
exact("choose", 3, rules.choice, np.where, "{0} ? {1} : {2}", CHOICE, alone=(0,))

# --- math, exact ------------------------------------------------------------------------------------------------
exact("sqrt", 1, rules.floating, np.sqrt)
exact("fabs", 1, rules.floating, np.abs)
exact("ceil", 1, rules.floating, np.ceil)
exact("floor", 1, rules.floating, np.floor)
exact("rint", 1, rules.floating, np.rint)
exact("round", 1, rules.floating, meaning.round_away)
exact("trunc", 1, rules.floating, np.trunc)
exact("fmax", 2, rules.floating, np.fmax)
exact("fmin", 2, rules.floating, np.fmin)
exact("fmod", 2, rules.floating, np.fmod)
exact("copysign", 2, rules.floating, np.copysign)
exact("nextafter", 2, rules.floating, np.nextafter)
exact("nan", 1, rules.nan_code, meaning.nan)
row("fma", 3, rules.floating, meaning.fma)
row("remainder", 2, rules.floating, meaning.remainder)
row("remquo_bits", 2, rules.floating_to_int, meaning.quotient_bits)
row("ldexp", 2, rules.floating_integer, np.ldexp, alone=(1,))
row("ilogb", 1, rules.floating_to_int, meaning.ilogb)
row("logb", 1, rules.floating, meaning.logb)

# --- math, within a bound ---------------------------------------------------------------------------------------
for _name, _numpy, _ulp in (
    ("acos", np.arccos, 4.0), ("acosh", np.arccosh, 4.0), ("asin", np.arcsin, 4.0), ("asinh", np.arcsinh, 4.0),
    ("atan", np.arctan, 5.0), ("atanh", np.arctanh, 5.0), ("cbrt", np.cbrt, 2.0), ("cos", np.cos, 4.0), ("cosh", np.cosh, 4.0),
    ("cospi", meaning.cospi, 4.0), ("erf", meaning.elementwise(math.erf), 16.0),
    ("erfc", meaning.elementwise(math.erfc), 16.0), ("exp", np.exp, 3.0), ("exp2", np.exp2, 3.0),
    ("exp10", lambda x: np.power(10.0, x), 3.0), ("expm1", np.expm1, 3.0), ("lgamma", meaning.lgamma, 16.0), ("log", np.log, 3.0),
    ("log10", np.log10, 3.0), ("log1p", np.log1p, 2.0), ("log2", np.log2, 3.0), ("rsqrt", lambda x: 1 / np.sqrt(x), 2.0),
    ("sin", np.sin, 4.0), ("sinh", np.sinh, 4.0), ("sinpi", meaning.sinpi, 4.0), ("tan", np.tan, 5.0), ("tanh", np.tanh, 5.0),
    ("tgamma", meaning.tgamma, 16.0),
):  # fmt: skip
    row(_name, 1, rules.floating, _numpy, ulp=_ulp)
row("atan2", 2, rules.floating, np.arctan2, ulp=6.0)
row("hypot", 2, rules.floating, np.hypot, ulp=4.0)
row("pow", 2, rules.floating, np.power, ulp=16.0)
row("powr", 2, rules.floating, meaning.powr, ulp=16.0)
row("pown", 2, rules.floating_integer, lambda x, n: np.power(x, n.astype(np.float64)), ulp=16.0, alone=(1,))
row("rootn", 2, rules.floating_integer, meaning.rootn, ulp=16.0, alone=(1,))

# --- integers ---------------------------------------------------------------------------------------------------
exact("max", 2, rules.arithmetic, np.maximum)  # of integers; on floating values it is a comparison
exact("min", 2, rules.arithmetic, np.minimum)
