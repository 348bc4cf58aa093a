"""Host algebra of complex fields, with the complex functions of kernels; real operands have imaginary part 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gpuop.dsl as k
from gpuop.base.errors import SemanticError
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import is_big_tensor
from gpuop.dsl.operators.operator import library_call
from gpuop.dsl.recorder.value import Value
from gpuop.ir.dtype_names import COMPLEX_DTYPES, part_dtype
from gpuop.ir.types import FieldType
from gpuop.ops.elementwise import complex_functions
from gpuop.ops.elementwise.complex_functions import COMPLEX, REAL, TRUTH


def _parts(test: Callable[[Any], Any], both: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """Return a test of either part."""
    return lambda z: both(test(z.x), test(z.y))


TABLE: dict[str, tuple[str, Callable[..., Any]]] = {
    "add": (COMPLEX, lambda a, b: a + b),
    "subtract": (COMPLEX, lambda a, b: a - b),
    "multiply": (COMPLEX, k._complexMul),
    "divide": (COMPLEX, k._complexDiv),
    "true_divide": (COMPLEX, k._complexDiv),
    "power": (COMPLEX, k._complexPow),
    "reciprocal": (COMPLEX, complex_functions.reciprocal),
    "square": (COMPLEX, complex_functions.square),
    "negative": (COMPLEX, lambda a: -a),
    "positive": (COMPLEX, lambda a: a),
    "conjugate": (COMPLEX, k._complexConj),
    "exp": (COMPLEX, k._complexExp),
    "log": (COMPLEX, k._complexLog),
    "sqrt": (COMPLEX, k._complexSqrt),
    "absolute": (REAL, k._complexAbs),
    "angle": (REAL, k._complexArg),
    "real": (REAL, lambda a: a.x),
    "imag": (REAL, lambda a: a.y),
    "equal": (TRUTH, lambda a, b: (a.x == b.x) & (a.y == b.y)),
    "not_equal": (TRUTH, lambda a, b: (a.x != b.x) | (a.y != b.y)),
    "isnan": (TRUTH, _parts(lambda x: x != x, lambda x, y: x | y)),
    "isinf": (TRUTH, _parts(lambda x: abs(x) == float("inf"), lambda x, y: x | y)),
    "isfinite": (TRUTH, _parts(lambda x: x - x == x - x, lambda x, y: x & y)),
    **complex_functions.TABLE,
}


def apply(name: str, values: Sequence[Any], out: FieldType) -> Field:
    """Apply an elementwise function to complex operands: fields, one of them complex, and numbers."""
    if name not in TABLE:
        raise SemanticError(f"{name} does not take {out.dtype} fields")
    kind, function = TABLE[name]
    power, part = name == "power", part_dtype(out.dtype)
    return _call(
        name,
        lambda *read: function(*(_complex(v, r, part, power) for v, r in zip(values, read, strict=True))),
        values,
        out.replace(dtype={COMPLEX: out.dtype, REAL: part}.get(kind, kind)),
    )


def where(mask: Field, a: Any, b: Any, out: FieldType) -> Field:
    """numpy.where for complex operands."""

    part = part_dtype(out.dtype)

    def chosen(truth: Any, x: Any, y: Any) -> Any:
        return k._where(k._convert(truth, "bool"), _complex(a, x, part), _complex(b, y, part))

    return _call("where", chosen, (mask, a, b), out)


def combined(name: str, function: Callable[[Any, Any], Any], key: str) -> Callable[[Field, Field], Field]:
    """Apply a function of two complex values to two fields, point by point; the key identifies the function."""

    def pairs(a: Any, b: Any) -> Any:
        value = function(a, b)
        return value if isinstance(value, Value) and value.type.lanes > 1 else k._vector(value, 0.0)

    return lambda a, b: _call(name, pairs, (a, b), a.type, key)


def _call(name: str, function: Callable[..., Any], values: Sequence[Any], out: FieldType, key: str = "") -> Field:
    fields = [v for v in values if isinstance(v, Field)]

    def body() -> None:
        if not out.tensor_shape:
            k._writeTensor(k._out0, function(*(k._readTensor(v) if isinstance(v, Field) else v for v in values)))
        elif is_big_tensor(out):
            with k._forEachTensorElement(out.tensor_shape):
                at_element(k._tensorElement)
        else:
            for element in range(out.tensor_points):
                at_element(element)

    def at_element(element: Any) -> None:
        result = function(*(_element(v, element) for v in values))
        parts = (result.x, result.y) if out.dtype in COMPLEX_DTYPES else (result,)
        for n, part in enumerate(parts):
            k._writeTensorElement(k._out0, part, element * len(parts) + n)

    constants = tuple(None if isinstance(v, Field) else (type(v).__name__, repr(v)) for v in values)
    return library_call(name, (out,), fields, body, ("complex", constants, key))[0]


def _element(value: Any, element: Any) -> Any:
    """Read a tensor element of an operand (scalars broadcast), with both parts of complex numbers."""
    if not isinstance(value, Field):
        return value
    if not value.tensor_shape:
        return k._readTensor(value)
    if value.dtype not in COMPLEX_DTYPES:
        return k._readTensorElement(value, element)
    return k._vector(*(k._readTensorElement(value, element * 2 + part) for part in range(2)))


def _complex(operand: Any, read: Any, part: str, power: bool = False) -> Any:
    """Return a value of an operand as a complex number; a whole exponent stays real, so that powers become products."""
    if isinstance(operand, Field):
        value = k._convert(read, part)
        return value if operand.dtype in COMPLEX_DTYPES else k._vector(value, 0.0)
    number = complex(read)
    if power and number.imag == 0 and number.real.is_integer():
        return k._convert(number.real, part)
    return k._vector(k._convert(number.real, part), k._convert(number.imag, part))
