"""Host algebra: arithmetic of fields and numbers with NumPy semantics; its operators use the public vocabulary."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import SemanticError, written_out
from gpuop.base.records import dataclass
from gpuop.dsl.fields import services
from gpuop.dsl.fields.derivative_rules import Late, with_rule
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import is_big_tensor
from gpuop.dsl.fields.from_arrays import host_array
from gpuop.dsl.operators.operator import library_call
from gpuop.dsl.recorder.value import KERNEL_NAMES
from gpuop.ir.bfloat16 import BFLOAT16
from gpuop.ir.build import bits_of, number
from gpuop.ir.dtype_names import COMPLEX_DTYPES, FLOATS, HALVES, complex_dtype, joined_dtype, values_dtype
from gpuop.ir.types import BY_NUMPY, FieldType, Shape
from gpuop.ops.call_cache import cached_call
from gpuop.ops.elementwise import complex_algebra, numpy_functions
from gpuop.ops.elementwise.numpy_functions import following_bfloat16
from gpuop.ops.elementwise.operands import Operand, beside, refuse_negative
from gpuop.ops.elementwise.precise_dtypes import LONG_INTEGERS, floating, record_steps
from gpuop.ops.layout.axes import names_of_all
from gpuop.ops.select.thresholds import first_at


@dataclass(frozen=True)
class Rule:
    """The type rule of a function.

    Attributes:
        compute: maps the common dtype to the dtype of the computation.
        result: maps that to the result's dtype.
        kinds: the NumPy kinds of valid operands.
    """

    compute: Callable[[str], str]
    result: Callable[[str], str]
    kinds: str = "biuf"


def _same(dtype: str) -> str:
    return dtype


def _number(dtype: str) -> str:
    return "int32" if dtype == "bool" else dtype


def _real(dtype: str) -> str:
    return dtype if dtype in FLOATS else "float32"


def _truth(dtype: str) -> str:
    return "bool"


ARITHMETIC, FLOATING = Rule(_number, _same), Rule(_real, _same)
COMPARISON, TEST = Rule(_same, _truth), Rule(_real, _truth)
EQUALITY, DIVISION = Rule(_same, _truth), Rule(_real, _same)
BITS, LOGIC = Rule(_same, _same, "biu"), Rule(_truth, _same)
ORDER, INTEGRAL, SHIFT = Rule(_same, _same), Rule(_number, _same), Rule(_number, _same, "biu")
INTEGER, BIT_COUNT = Rule(_same, _same, "iu"), Rule(_number, lambda dtype: "uint8", "biu")

# dtypes of results whose derivatives are rules (`derivatives.py`), not those of the text
HOLOMORPHIC = (
    "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "reciprocal", "power", "sin", "cos", "tan", "sinh", "cosh", "tanh",
    "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh",
)  # fmt: skip
RULED: dict[str, Collection[str]] = {
    **dict.fromkeys(HOLOMORPHIC, COMPLEX_DTYPES),
    **dict.fromkeys(("logaddexp", "logaddexp2", "remainder"), FLOATS),
}
WIDER = ("int32", "int64", "uint64", "float32", "float64")  # dtypes in the order of their ranges
RULES = {
    "arithmetic": ARITHMETIC, "division": DIVISION, "floating": FLOATING, "comparison": COMPARISON, "equality": EQUALITY,
    "test": TEST, "bits": BITS, "shift": SHIFT, "logic": LOGIC, "order": ORDER, "integral": INTEGRAL,
    "integer": INTEGER, "bit count": BIT_COUNT,
}  # fmt: skip


def apply(name: str, *operands: Operand) -> Field:
    """Apply an elementwise function to fields and numbers.

    Raises:
        SemanticError: incompatible shapes, or types that the function does not take.
    """
    result: Field = cached_call(name, operands, _applied)
    return _with_slopes(name, operands, result) if name in RULED else result


def length_of(squares: Field) -> Field:
    """The root of a sum of squares, whose slope is 0 at 0."""
    return with_rule(apply("sqrt", squares), "length", [squares], None, Late("elementwise.length"))


def _with_slopes(name: str, operands: Sequence[Operand], result: Field) -> Field:
    """The result of a function whose derivatives are a rule, outside of the cache, which has graphs alone."""
    if result.dtype not in RULED[name]:
        return result
    constants = tuple(None if isinstance(each, Field) else each for each in operands)
    fields = [each for each in operands if isinstance(each, Field)]
    return with_rule(result, name, fields, None, Late("elementwise.pushed", (name, constants)))


def _applied(name: str, *operands: Operand) -> Field:
    rule_name, function = numpy_functions.EVERY[name]
    rule = RULES[rule_name]
    originals, operands = operands, beside(name, operands)
    common = common_dtype(operands)
    if common in COMPLEX_DTYPES:
        return complex_algebra.apply(
            name, [_checked(name, o, common) for o in operands], _result_type(name, operands, common)
        )
    if values_dtype(common).kind not in rule.kinds:
        bits = (
            "; comparisons beside it need parentheses, as in `(f > a) & (f < b)`" if name.startswith("bitwise") else ""
        )
        raise SemanticError(f"{name} does not take {common} fields{bits}")
    computed = rule.compute(common)
    if name == "power" and values_dtype(computed).kind in "iu" and not isinstance(originals[1], Field):
        refuse_negative(originals[1])
    if rule in (COMPARISON, EQUALITY) and (beyond := _beyond(name, operands, computed)) is not None:
        return _elementwise(name, lambda same: same, [beyond], ["bool"], _result_type(name, operands, "bool"))
    values = [_checked(name, o, computed) for o in operands]
    out = _result_type(name, operands, rule.result(computed))
    if rule in (COMPARISON, EQUALITY) and computed == "float32":
        if (threshold := _threshold(name, values)) is not None:
            return _compared_with(*threshold, out)
        dtypes = _apart(values)
        if dtypes:
            return _elementwise(name, function, values, dtypes, out)
    if computed == BFLOAT16 and name == "nextafter":
        function, computed = following_bfloat16, "float32"
    elif computed in HALVES and name != "nextafter":  # NumPy rounds the result of float16, and no step before it
        values = [v if isinstance(v, Field) else BY_NUMPY[computed].values(float(v)).item() for v in values]
        return _elementwise(name, function, values, ["float32"] * len(values), out)
    long = any(isinstance(v, Field) and v.dtype in LONG_INTEGERS for v in values)
    exact = computed == "float32" and (rule in (COMPARISON, EQUALITY) or name in CANCELLING) and long
    return _elementwise(name, function, values, [computed] * len(values), out, exact)


def _beyond(name: str, operands: Sequence[Operand], computed: str) -> bool | None:
    """Return the constant result of comparing integers with a number outside their dtype; None otherwise."""
    if any(isinstance(o, Field) and values_dtype(_dtype_of(o)).kind not in "biu" for o in operands):
        return None
    numbers = [0 if isinstance(o, Field) else number(o) for o in operands]
    if all(n is None or computed == "bool" or BY_NUMPY[computed].holds(n) for n in numbers):
        return None
    compared: bool = getattr(operator, KERNEL_NAMES[name])(*numbers)
    return compared


def _apart(values: Sequence[Any]) -> list[str] | None:
    """Return the dtypes to compare uint64 and signed integers in; float32 would make different ones equal."""
    kinds = [_dtype_of(v)[0] if isinstance(v, Field) else "" for v in values]
    return ["uint64" if kind == "u" else "int64" for kind in kinds] if set(kinds) == {"u", "i"} else None


def _elementwise(
    name: str,
    function: Callable[..., Any],
    values: Sequence[Any],
    dtypes: Sequence[str],
    out: FieldType,
    exact: bool = False,
) -> Field:
    """Apply the function to operands of these dtypes, on every tensor element.

    Args:
        exact: computed in double and rounded once, on devices that have it.
    """
    fields = [v for v in values if isinstance(v, Field)]

    def write(args: Sequence[Any], dtypes: Sequence[str], place: Sequence[Any]) -> None:
        value = function(*(k._convert(v, d) for v, d in zip(args, dtypes, strict=True)))
        k._writeTensorElement(k._out0, value, *place) if place else k._writeTensor(k._out0, value)

    def written(read: Callable[[Any], Any], *place: Any) -> None:
        args = [read(v) if isinstance(v, Field) else v for v in values]
        if exact:
            record_steps("int64", lambda dtype: write(args, [dtype] * len(values), place))
        else:
            write(args, dtypes, place)

    def body() -> None:
        if is_big_tensor(out):
            with k._forEachTensorElement(out.tensor_shape):
                written(
                    lambda f: k._readTensorElement(f) if f.type.tensor_points > 1 else k._readTensor(f),
                    k._tensorElement,
                )
        else:
            written(k._readTensor)

    constants = tuple(None if isinstance(v, Field) else (type(v).__name__, repr(v)) for v in values)
    return library_call(name, (out,), fields, body, (constants, *dtypes, *["exact"] * exact))[0]


# --- integers beside floating numbers ---------------------------------------------------------------------------------

CANCELLING = ("add", "subtract", "remainder", "fmod", "floor_divide", "sin", "cos", "tan")


def _threshold(name: str, values: Sequence[Any]) -> tuple[str, Field, Any] | None:
    """Return a comparison of long integers with a number, as one with the number on the right; None for other operations."""
    fields = [isinstance(v, Field) and v.dtype in LONG_INTEGERS for v in values]
    if any(isinstance(v, Field) and not long for v, long in zip(values, fields, strict=True)) or all(fields):
        return None
    return (name, *values) if fields[0] else (TURNED[name], values[1], values[0])


TURNED = {
    "less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal",
    "equal": "equal", "not_equal": "not_equal",
}  # fmt: skip


def _compared_with(name: str, field: Field, edge: float, out: FieldType) -> Field:
    """Compare integers with a number as double represents them, by integers: this needs no double on the device."""
    least, beyond = first_at(edge, str(field.dtype)), first_at(edge, str(field.dtype), True)
    if name in ("equal", "not_equal") and beyond - least > 1:  # several integers equal that number in double
        inside = apply("logical_and", apply("greater_equal", field, least), apply("less", field, beyond))
        return inside if name == "equal" else apply("logical_not", inside)
    if edge != edge or (name in ("equal", "not_equal") and least == beyond):
        return _elementwise(name, lambda same: same, [name == "not_equal"], ["bool"], out)
    return apply(name, field, least if name in ("less", "greater_equal", "equal", "not_equal") else beyond - 1)


# --- types ------------------------------------------------------------------------------------------------------------


def _dtype_of(operand: Operand) -> str:
    return "float32" if operand.dtype == "unorm8" else str(operand.dtype)


def common_dtype(operands: Sequence[Operand]) -> str:
    """Return the NumPy common dtype, but float32 where NumPy converts integers to float64; numbers are weak."""
    fields = [o for o in operands if isinstance(o, Field)]
    dtypes = [_dtype_of(f) for f in fields]
    common = joined_dtype(*dtypes)
    if common == "float64" and "float64" not in dtypes:
        common = "float32"
    kinds = {"i" if type(o) is int else np.asarray(o).dtype.kind for o in operands if not isinstance(o, Field)}
    if "c" in kinds:
        common = complex_dtype(common)
    elif "f" in kinds and values_dtype(common).kind in "biu":
        common = "float32"
    elif kinds & set("iu") and common == "bool":
        common = "int32"
    wide = "float64" in dtypes or "complex128" in dtypes
    return "complex64" if common == "complex128" and not wide else common


def _checked(name: str, operand: Operand, dtype: str) -> Any:
    """Return the operand; a number must fit the dtype."""
    if isinstance(operand, Field):
        return operand
    number = operand if isinstance(operand, int) else np.asarray(operand)[()].item()
    if dtype not in COMPLEX_DTYPES and dtype != "bool" and not BY_NUMPY[dtype].holds(number):
        floats = values_dtype(dtype).kind == "f" or isinstance(number, float)  # integers would lose the fraction
        wide = [each for each in WIDER if BY_NUMPY[each].kind == "f"] if floats else WIDER
        wider = next((each for each in wide if BY_NUMPY[each].holds(number)), None)
        bits = bits_of(number, dtype) if name.startswith("bitwise") else ""
        advice = f"; convert the Field first, as in `f.astype({wider!r})`" if wider else ""
        advice = f"; write {bits} for its bits" if bits else advice
        raise SemanticError(f"{name}: the number {written_out(number)} does not fit {dtype}{advice}")
    return number


def _result_type(name: str, operands: Sequence[Operand], dtype: str) -> FieldType:
    fields = [o for o in operands if isinstance(o, Field)]
    grid = next((f.field_shape for f in fields if f.field_shape), Shape())
    kind = FieldType(grid, _one_tensor_shape(name, fields), dtype)
    return kind.labelled(names_of_all(name, fields)) if any(f.kind is not None for f in fields) else kind


def _one_tensor_shape(name: str, fields: Sequence[Field]) -> Shape:
    """Return the common tensor shape: equal shapes, and scalars, which broadcast."""
    distinct = list(dict.fromkeys(f.tensor_shape for f in fields if f.tensor_shape))
    if len(distinct) > 1:
        listed = " and ".join("×".join(map(str, s)) for s in distinct)
        raise SemanticError(f"{name}: the tensors differ, {listed}; they must be equal, or one side scalar")
    return distinct[0] if distinct else Shape()


# --- the rest of NumPy's names -------------------------------------------------------------------------------------------


def where(condition: Operand, a: Operand = None, b: Operand = None) -> Field:
    """numpy.where with three arguments."""
    if a is None or b is None:
        raise SemanticError("where of a Field takes three arguments: where(condition, a, b); or see `np.nonzero`")
    condition, a, b = beside("where", (condition, a, b))
    has_fields = any(isinstance(o, Field) for o in (a, b))
    computed = common_dtype((a, b)) if has_fields else _of_numbers(a, b)
    mask = condition if isinstance(condition, Field) else Field(bool(condition))
    values = [mask, _checked("where", a, computed), _checked("where", b, computed)]
    out = _result_type("where", (mask, a, b), computed)
    if computed in COMPLEX_DTYPES:
        return complex_algebra.where(mask, values[1], values[2], out)
    return _elementwise("where", k._where, values, ["bool", computed, computed], out)


def _of_numbers(a: Any, b: Any) -> str:
    """Return the dtype of two numbers: 32 bits for Python numbers; NumPy scalars keep their dtype, which Python numbers adopt.

    What only the Python number asks for, an integer beside a NumPy truth or a float beside a NumPy integer, has 32 bits too.
    """
    typed = [v for v in (a, b) if isinstance(v, np.generic)]
    if not typed:
        return host_array([a, b]).dtype.name
    joined = np.result_type(a, b).name
    if joined in [v.dtype.name for v in typed]:
        return joined
    narrow = {"float64": "float32"} if len(typed) == 2 else {"float64": "float32", "int64": "int32"}
    return narrow.get(joined, joined)


def angle(z: Operand, deg: bool = False) -> Field:
    """numpy.angle."""
    radians = apply("angle", z)
    return apply("degrees", radians) if deg else radians


def clip(a: Operand, a_min: Operand = None, a_max: Operand = None) -> Operand:
    """Return values between bounds; None leaves a side open, and so does a Python integer beyond those of an integer field."""
    if isinstance(a, Field) and values_dtype(_dtype_of(a)).kind in "iu":
        ends = np.iinfo(_dtype_of(a))
        a_min = None if type(a_min) is int and a_min <= ends.min else a_min
        a_max = None if type(a_max) is int and a_max >= ends.max else a_max
    if a_min is not None and a_max is not None:
        return apply("clip", a, a_min, a_max)
    if a_min is not None:
        return apply("maximum", a, a_min)
    return a if a_max is None else apply("minimum", a, a_max)


def copied(field: Field, kind: FieldType | None = None) -> Field:
    """Return a copy of a field, as a result; in another dtype if `kind` has one."""
    return library_call("copy", (kind or field.type,), [field], lambda: _copy(field), ())[0]


def astype(x: Field, dtype: Any) -> Field:
    """Return a field of another dtype."""
    field, kind = x, x.type.replace(dtype=dtype)
    if field.dtype in COMPLEX_DTYPES and kind.dtype not in COMPLEX_DTYPES:
        raise SemanticError(
            f"a {field.dtype} field does not convert to {kind.dtype}; take `.real`, `.imag` or `abs(f)`"
        )
    if kind.dtype in COMPLEX_DTYPES and kind.dtype != field.dtype:
        return complex_algebra.apply("positive", [field], kind)
    return field if kind == field.type else copied(field, kind)


def widened(field: Field) -> Field:
    """Return a field in a floating dtype for intermediate steps, which are not rounded to 16 bits."""
    if field.dtype in LONG_INTEGERS:
        return astype(field, "float64")
    return field if field.dtype in FLOATS and field.dtype not in HALVES else astype(field, "float32")


def narrowed(result: Field, like: Field) -> Field:
    """Return the result of steps on a widened field, in the dtype of results."""
    return result if like.dtype in COMPLEX_DTYPES else astype(result, floating(like.dtype))


def _copy(field: Field) -> None:
    if is_big_tensor(field):
        with k._forEachTensorElement(field.type.planes):
            k._writeTensorElement(k._out0, k._readTensorElement(field))
    else:
        k._writeTensor(k._out0, k._readTensor(field))


services.algebra.update({name: functools.partial(apply, name) for name in numpy_functions.EVERY})
services.algebra.update(where=where, clip=clip, angle=angle, astype=astype)
