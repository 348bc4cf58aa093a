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
from gpuop.ir.types import FieldType
from gpuop.ops.elementwise import complex_functions


def _parts(test: Callable[[Any], Any], both: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """Return a test of either part."""
    return lambda z: both(test(z.x), test(z.y))


TABLE: dict[str, tuple[str, Callable[..., Any]]] = {
    "add": ("complex64", lambda a, b: a + b),
    "subtract": ("complex64", lambda a, b: a - b),
    "multiply": ("complex64", k._complexMul),
    "divide": ("complex64", k._complexDiv),
    "true_divide": ("complex64", k._complexDiv),
    "power": ("complex64", k._complexPow),
    "reciprocal": ("complex64", complex_functions.reciprocal),
    "square": ("complex64", complex_functions.square),
    "negative": ("complex64", lambda a: -a),
    "positive": ("complex64", lambda a: a),
    "conjugate": ("complex64", k._complexConj),
    "exp": ("complex64", k._complexExp),
    "log": ("complex64", k._complexLog),
    "sqrt": ("complex64", k._complexSqrt),
    "absolute": ("float32", k._complexAbs),
    "angle": ("float32", k._complexArg),
    "real": ("float32", lambda a: a.x),
    "imag": ("float32", lambda a: a.y),
    "equal": ("bool", lambda a, b: (a.x == b.x) & (a.y == b.y)),
    "not_equal": ("bool", lambda a, b: (a.x != b.x) | (a.y != b.y)),
    "isnan": ("bool", _parts(lambda x: x != x, lambda x, y: x | y)),
    "isinf": ("bool", _parts(lambda x: abs(x) == float("inf"), lambda x, y: x | y)),
    "isfinite": ("bool", _parts(lambda x: x - x == x - x, lambda x, y: x & y)),
    **complex_functions.TABLE,
}


def apply(name: str, values: Sequence[Any], out: FieldType) -> Field:
    """Apply an elementwise function to complex operands: fields, one of them complex, and numbers."""
    if name not in TABLE:
        raise SemanticError(f"{name} does not take complex64 fields")
    dtype, function = TABLE[name]
    power = name == "power"
    return _call(
        name,
        lambda *read: function(*(_complex(v, r, power) for v, r in zip(values, read, strict=True))),
        values,
        out.replace(dtype=dtype),
    )


def where(mask: Field, a: Any, b: Any, out: FieldType) -> Field:
    """numpy.where for complex operands."""

    def chosen(truth: Any, x: Any, y: Any) -> Any:
        return k._where(k._convert(truth, "bool"), _complex(a, x), _complex(b, y))

    return _call("where", chosen, (mask, a, b), out)


def combined(name: str, function: Callable[[Any, Any], Any], key: str) -> Callable[[Field, Field], Field]:
    """Apply a function of two complex values to two fields, point by point; the key identifies the function."""

    def pairs(a: Any, b: Any) -> Any:
        value = function(a, b)
        return value if isinstance(value, Value) and value.type.lanes > 1 else k._float2(value, 0)

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
        parts = (result.x, result.y) if out.dtype == "complex64" else (result,)
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
    if value.dtype != "complex64":
        return k._readTensorElement(value, element)
    return k._float2(*(k._readTensorElement(value, element * 2 + part) for part in range(2)))


def _complex(operand: Any, read: Any, power: bool = False) -> Any:
    """Return a value of an operand as a complex number; a whole exponent stays real, so that powers become products."""
    if isinstance(operand, Field):
        return read if operand.dtype == "complex64" else k._float2(read, 0)
    number = complex(read)
    if power and number.imag == 0 and number.real.is_integer():
        return k._convert_float(number.real)
    return k._float2(number.real, number.imag)
