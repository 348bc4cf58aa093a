"""Host algebra of complex fields: pairs of floats in the kernel, real operands having imaginary part 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gpuop.dsl as k
from gpuop.dsl.field import Field
from gpuop.dsl.operator import library_call
from gpuop.errors import SemanticError
from gpuop.ir.types import FieldType

Pair = tuple[Any, Any]


def _multiply(a: Pair, b: Pair) -> Pair:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _divide(a: Pair, b: Pair) -> Pair:
    """Smith's algorithm (R. L. Smith, CACM 5(8), 1962): no overflow in the divisor's square."""
    wide = abs(b[0]) >= abs(b[1])
    ratio = k._where(wide, b[1] / b[0], b[0] / b[1])
    scale = 1 / k._where(wide, b[0] + b[1] * ratio, b[0] * ratio + b[1])
    real = k._where(wide, a[0] + a[1] * ratio, a[0] * ratio + a[1]) * scale
    return real, k._where(wide, a[1] - a[0] * ratio, a[1] * ratio - a[0]) * scale


TABLE: dict[str, tuple[str, Callable[..., Any]]] = {
    "add": ("complex64", lambda a, b: (a[0] + b[0], a[1] + b[1])),
    "subtract": ("complex64", lambda a, b: (a[0] - b[0], a[1] - b[1])),
    "multiply": ("complex64", _multiply),
    "divide": ("complex64", _divide),
    "true_divide": ("complex64", _divide),
    "reciprocal": ("complex64", lambda a: _divide((k._convert_float(1.0), k._convert_float(0.0)), a)),
    "square": ("complex64", lambda a: _multiply(a, a)),
    "negative": ("complex64", lambda a: (-a[0], -a[1])),
    "positive": ("complex64", lambda a: a),
    "absolute": ("float32", lambda a: k._hypot(a[0], a[1])),
    "equal": ("bool", lambda a, b: (a[0] == b[0]) & (a[1] == b[1])),
    "not_equal": ("bool", lambda a, b: (a[0] != b[0]) | (a[1] != b[1])),
}


def apply(name: str, values: Sequence[Any], out: FieldType) -> Field:
    """An elementwise function of complex operands: fields, of which one is complex, and numbers."""
    if name not in TABLE:
        raise SemanticError(f"{name} does not take complex64 fields")
    if out.tensor_shape:
        raise SemanticError(f"{name}: complex fields go with scalar tensors, not with {out.tensor_shape}")
    dtype, function = TABLE[name]
    fields = [v for v in values if isinstance(v, Field)]

    def body() -> None:
        result = function(*map(_pair, values))
        k._writeTensor(k._out0, k._float2(*result) if isinstance(result, tuple) else result)

    constants = tuple(None if isinstance(v, Field) else repr(v) for v in values)
    return library_call(name, (out.replace(dtype=dtype),), fields, body, ("complex", constants))[0]


def _pair(value: Any) -> Pair:
    if not isinstance(value, Field):
        number = complex(value)
        return k._convert_float(number.real), k._convert_float(number.imag)
    read = k._readTensor(value)
    return (read.x, read.y) if value.dtype == "complex64" else (k._convert_float(read), k._convert_float(0.0))
