"""NumPy functions that select values, compare them within a tolerance, round and replace them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuop.base.errors import ArgumentError, SemanticError, UnsupportedError
from gpuop.dsl.fields.derivative_rules import with_rule
from gpuop.dsl.fields.field import Field
from gpuop.dsl.recorder.value import NUMBERS
from gpuop.ir.bfloat16 import BFLOAT16
from gpuop.ir.dtype_names import COMPLEX_DTYPES, FLOATS
from gpuop.ops.create.computed_fields import filled
from gpuop.ops.elementwise import algebra
from gpuop.ops.elementwise.algebra import apply, astype, common_dtype, narrowed, where, widened
from gpuop.ops.elementwise.operands import beside
from gpuop.ops.elementwise.precise_dtypes import LONG_INTEGERS
from gpuop.ops.layout.axes import a_field, whole_number
from gpuop.ops.reduce.functions import called as reduction

Operand = Any  # a Field or a number
UNSET: Any = np._NoValue


def clip(a: Any, a_min: Any = UNSET, a_max: Any = UNSET, *, min: Any = UNSET, max: Any = UNSET) -> Any:
    """numpy.clip: bounds are `a_min` and `a_max`, or `min=` and `max=`."""
    if a_min is UNSET and a_max is UNSET:
        return algebra.clip(a, *(None if bound is UNSET else bound for bound in (min, max)))
    if a_min is UNSET or a_max is UNSET:
        raise UnsupportedError("clip: `a_min` and `a_max` go together, None for an open side; or give `min=` or `max=`")
    if min is not UNSET or max is not UNSET:
        raise ArgumentError("clip: bounds are `a_min` and `a_max`, or `min=` and `max=`, not both")
    return algebra.clip(a, a_min, a_max)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Field:
    """numpy.select: the first choice whose condition holds."""
    if isinstance(condlist, Field) or isinstance(choicelist, Field) or len(condlist) != len(choicelist):
        raise SemanticError("select takes a list of conditions and one of as many choices")
    if not condlist:
        raise SemanticError("select: there is at least one condition")
    for condition in condlist:
        if (condition.dtype if isinstance(condition, Field) else np.asarray(condition).dtype) != np.bool_:
            raise SemanticError("select: conditions are bool fields, as comparisons give them")
    beside("select", [*condlist, *choicelist, default])  # refuses other operands
    dtype = _dtype_of_all([*choicelist, default])
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = where(condition, choice, result)
    return astype(result, dtype)


def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Field:
    """numpy.choose; a Field's indices are not evaluated at the call: `mode` is "clip" or "wrap"."""
    index = a_field("choose", a)
    if out is not None or mode not in ("clip", "wrap"):
        raise SemanticError(
            'choose: indices in a Field are not known at the call: `mode` is "clip" or "wrap", and there is no `out`'
        )
    if np.dtype(index.type.array_dtype).kind not in "iub" or index.dtype == "unorm8":
        raise SemanticError(f"choose: indices are integers, not a {index.type} field")
    arg = list(choices)
    if not arg:
        raise SemanticError("choose: there is at least one choice")
    place = index % len(arg) if mode == "wrap" and len(arg) > 1 else index
    dtype, result = _dtype_of_all(arg), where(place == place, arg[-1], arg[-1])
    for n in reversed(range(len(arg) - 1)):
        result = where(place <= n, arg[n], result)
    return astype(result, dtype)


def _dtype_of_all(operands: Sequence[Operand]) -> Any:
    """Return the common dtype of all; numbers among fields are weak."""
    if any(isinstance(o, Field) for o in operands):
        return common_dtype(operands)
    return Field([complex(o) if isinstance(o, complex) else o for o in operands]).dtype


# --- rounding -----------------------------------------------------------------------------------------------------------


def around(a: Any, decimals: Any = 0, out: Any = None) -> Field:
    """numpy.around: halves are rounded to even; integers stay integers."""
    field, digits = a_field("round", a), whole_number(decimals, "`decimals` of round")
    if out is not None:
        raise SemanticError("round: a Field is rounded into a new Field, there is no `out`")
    if np.dtype(field.type.array_dtype).kind in "iu" and field.dtype != "unorm8":
        return field if digits >= 0 else _whole_tens(field, 10**-digits)
    if not digits:
        return apply("rint", field)
    scale = float(10 ** abs(digits))
    larger, smaller = ("multiply", "divide") if digits > 0 else ("divide", "multiply")
    if field.dtype == BFLOAT16:  # rounded once; float16 at each step, as in NumPy
        return astype(around(astype(field, "float32"), digits), BFLOAT16)
    return apply(smaller, apply("rint", apply(larger, field, scale)), scale)


def _whole_tens(field: Field, unit: int) -> Field:
    """Round integers to a multiple of a power of ten."""
    if unit > np.iinfo(field.type.array_dtype).max:
        return filled(field.type, 0)
    parts = apply("floor_divide", field, unit)
    rest = apply("subtract", field, apply("multiply", parts, unit))
    odd, half = apply("equal", apply("bitwise_and", parts, 1), 1), unit // 2
    up = apply("logical_or", apply("greater", rest, half), apply("logical_and", apply("equal", rest, half), odd))
    return apply("multiply", apply("add", parts, up), unit)


def fix(x: Any, out: Any = None) -> Field:
    """numpy.fix: towards zero."""
    if out is not None:
        raise SemanticError("fix: a Field is rounded into a new Field, there is no `out`")
    return apply("trunc", a_field("fix", x))


# --- tests and tolerances -------------------------------------------------------------------------------------------------


def isclose(a: Operand, b: Operand, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Field:
    """numpy.isclose; integers are compared in float64."""
    a, b = (o if isinstance(o, (Field, *NUMBERS)) else Field(o) for o in (a, b))
    same = apply("equal", a, b)
    if common_dtype((a, b)) == "bool":
        return same
    x, y = _compared(a, b)
    size = apply("multiply", rtol, apply("absolute", y)) if isinstance(y, Field) else rtol * abs(y)
    limit = apply("add", atol, size) if isinstance(size, Field) else atol + size
    near = apply("less_equal", apply("absolute", apply("subtract", x, y)), limit)
    result = apply("logical_or", same, apply("logical_and", near, _finite(y)))
    if equal_nan:
        result = apply("logical_or", result, apply("logical_and", _nan(x), _nan(y)))
    return result


def _finite(y: Operand) -> Operand:
    return apply("isfinite", y) if isinstance(y, Field) else bool(np.isfinite(y))


def _nan(x: Operand) -> Operand:
    return apply("isnan", x) if isinstance(x, Field) else bool(np.isnan(x))


def _compared(x: Operand, y: Operand) -> tuple[Operand, Operand]:
    """Return operands in the dtypes in which NumPy compares them: short integers beside a floating field adopt its dtype."""
    whole = [isinstance(v, Field) and str(v.dtype) not in (*FLOATS, "unorm8") for v in (x, y)]
    floats = isinstance(y, Field) and not whole[1]
    if whole[0] and (x.dtype in LONG_INTEGERS or not floats):
        x = astype(x, "float64")
    return _floating(x), astype(y, "float64") if whole[1] else _floating(y)


def _floating(value: Operand) -> Operand:
    if not isinstance(value, Field) or value.dtype in FLOATS:
        return value
    return astype(value, "float32")


def allclose(a: Operand, b: Operand, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Field:
    """numpy.allclose: a 0D field, which `bool` evaluates."""
    return reduction("all", isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: Any = False) -> Field:
    """numpy.array_equal: a 0D field, which `bool` evaluates."""
    one, other = _as_field("array_equal", a1), _as_field("array_equal", a2)
    return _everywhere_equal(one, other, equal_nan) if one.shape == other.shape else _false(one)


def array_equiv(a1: Any, a2: Any) -> Field:
    """numpy.array_equiv, for fields that broadcast; a 0D field, which `bool` evaluates."""
    one, other = _as_field("array_equiv", a1), _as_field("array_equiv", a2)
    try:
        np.broadcast_shapes(one.shape, other.shape)
    except ValueError:
        return _false(one)
    return _everywhere_equal(one, other, False)


def _as_field(name: str, arg: Any) -> Field:
    return arg if isinstance(arg, Field) else Field(arg)


def _false(like: Field) -> Field:
    return filled(like.type.replace(field_shape=(), tensor_shape=(), dtype="bool"), False)


def _everywhere_equal(one: Field, other: Field, equal_nan: bool) -> Field:
    same = apply("equal", one, other)
    if equal_nan:
        same = apply(
            "logical_or", same, apply("logical_and", apply("not_equal", one, one), apply("not_equal", other, other))
        )
    return reduction("all", same)


def _signed_infinity(name: str, sign: str, x: Any, out: Any = None) -> Field:
    field = a_field(name, x)
    if out is not None or field.dtype in COMPLEX_DTYPES:
        raise SemanticError(f"{name} takes fields of real numbers, and has no `out`")
    return apply("logical_and", apply("isinf", field), apply(sign, field, 0))


def isposinf(x: Any, out: Any = None) -> Field:
    """numpy.isposinf."""
    return _signed_infinity("isposinf", "greater", x, out)


def isneginf(x: Any, out: Any = None) -> Field:
    """numpy.isneginf."""
    return _signed_infinity("isneginf", "less", x, out)


def iscomplex(x: Any) -> Field:
    """numpy.iscomplex."""
    return apply("not_equal", apply("imag", a_field("iscomplex", x)), 0)


def isreal(x: Any) -> Field:
    """numpy.isreal."""
    return apply("equal", apply("imag", a_field("isreal", x)), 0)


# --- replaced -------------------------------------------------------------------------------------------------------------


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Field:
    """numpy.nan_to_num; infinities become the limits of the dtype."""
    field = a_field("nan_to_num", x)
    if np.dtype(field.type.array_dtype).kind not in "fc":
        return field
    if field.dtype in COMPLEX_DTYPES:
        raise SemanticError(f"nan_to_num does not take {field.dtype} fields; replace in `.real` and `.imag`")
    most = field.type.storage.greatest
    high, low = (most if posinf is None else posinf), (-most if neginf is None else neginf)
    _, nan, high, low = beside("nan_to_num", (field, nan, high, low))
    result = where(apply("equal", field, float("inf")), high, field)
    result = where(apply("equal", field, float("-inf")), low, result)
    return where(apply("isnan", field), nan, result)


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Field:
    """numpy.piecewise; functions are called with the whole field."""
    field = a_field("piecewise", x)
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise SemanticError(f"piecewise: {len(conditions)} conditions take as many functions, or one more")
    values = [each(field, *args, **kw) if callable(each) else each for each in funclist]
    result: Any = values[len(conditions)] if len(values) > len(conditions) else 0
    for condition, value in zip(conditions, values, strict=False):
        result = where(condition, value, result)
    return astype(result, field.dtype)


def sinc(x: Any) -> Field:
    """numpy.sinc."""
    field = a_field("sinc", x)
    angle = apply("multiply", widened(field), float(np.pi))
    zero, square = apply("equal", angle, 0), apply("multiply", angle, angle)
    near = 1 - square * (1 / 6 - square / 120)  # 1, with the derivatives that it has there
    return narrowed(where(zero, near, apply("divide", apply("sin", angle), where(zero, 1, angle))), field)


def divmod_of(x: Operand, y: Operand) -> tuple[Field, Field]:
    """numpy.divmod."""
    return apply("floor_divide", x, y), apply("remainder", x, y)


def modf(x: Operand) -> tuple[Field, Field]:
    """numpy.modf: the fraction and the whole part, both with the number's sign."""
    number = widened(x) if isinstance(x, Field) else x
    whole = apply("trunc", number)
    rest = where(apply("isinf", number), 0.0, apply("subtract", number, whole))
    signed = narrowed(apply("copysign", rest, number), x)
    if isinstance(x, Field):  # also of whole numbers, whose rest has no sign
        with_rule(signed, "modf", [x], None, lambda inputs, result, tangents: tangents[0])
    return signed, narrowed(whole, x)
