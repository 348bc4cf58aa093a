"""Placeholders for kernel values: 0D fields, and complex numbers as pairs of real and imaginary part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.dsl.recorder.recorder import current
from gpuop.dsl.recorder.storage import fetch
from gpuop.ir.build import Number, constant
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.nodes import Expr, Read
from gpuop.ir.types import FLOAT, DType, Type

COMPLEX = (complex, np.complexfloating)
TAKE_PAIRS = {
    "add",
    "sub",
    "choose",
}  # the same on pairs and on complex numbers, as are `_complexMul` and its like
PAIR_ADVICE = {
    "mul": "`*` multiplies pairs part by part; `_complexMul(a, b)` multiplies complex numbers",
    "div": "`/` divides pairs part by part; `_complexDiv(a, b)` divides complex numbers",
    "power": "`**` takes pairs part by part; powers of complex numbers are `_complexPow(a, b)`",
    "exp": "of complex numbers it is `_complexExp(z)`",
    "log": "of complex numbers it is `_complexLog(z)`",
    "sqrt": "of complex numbers it is `_complexSqrt(z)`",
    "eq": "pairs are compared part by part; write `z.x == real`, and `z.y == imaginary`",
}
OTHERWISE = "functions take pairs part by part; write it as `_float2(real, imaginary)` where that is meant"


def is_complex(value: Any) -> bool:
    """True for a complex number, or a 0D field of one, which represents its value."""
    if isinstance(value, FieldLike):
        return value.type.dtype in COMPLEX_DTYPES and not value.type.array_shape
    return isinstance(value, COMPLEX)


def field_value(value: FieldLike) -> Expr:
    """Value of a 0D field, real or complex."""
    field_type = value.type
    if field_type.field_shape or field_type.tensor_points > 1:
        raise SemanticError(
            f"a {field_type} Field is not a kernel value; read it with `_readTensor(f)` "
            "(operators give Fields too: kernels share code as plain Python functions)"
        )
    recorder = current()
    param = recorder.param(value)
    return fetch(recorder.build, param.type, Read(param, Type(param.type.storage, param.type.planes)))


def pair(value: Any, dtype: DType = FLOAT) -> Expr:
    """Pair of the real and imaginary part of a complex number."""
    return current().build.pack([constant(part, dtype) for part in (value.real, value.imag)])


def beside_complex(name: str, operands: Sequence[Any], atom: Callable[[Any], Expr | Number]) -> list[Expr | Number]:
    """Operands of a function, some of them complex: real ones become pairs, except a condition.

    Raises:
        SemanticError: the function differs between pairs and complex numbers.
    """
    if name not in TAKE_PAIRS and not name.startswith("complex"):
        raise SemanticError(f"a complex number stands beside `_{name}`: {PAIR_ADVICE.get(name, OTHERWISE)}")
    atoms = [None if is_complex(value) else atom(value) for value in operands]
    types = [a.type for a in atoms[name == "choose" :] if isinstance(a, Expr)]
    dtype = max((t.dtype for t in types if t.kind == "f"), key=lambda each: each.bits, default=FLOAT)
    first = 1 if name == "choose" else 0
    return [
        _complex(value, dtype) if a is None else _as_pair(a, dtype) if n >= first else a
        for n, (value, a) in enumerate(zip(operands, atoms, strict=True))
    ]


def _complex(value: Any, dtype: DType) -> Expr:
    return field_value(value) if isinstance(value, FieldLike) else pair(value, dtype)


def _as_pair(value: Expr | Number, dtype: DType) -> Expr:
    """A real number as a complex one; vectors are pairs already."""
    build = current().build
    if not isinstance(value, Expr):
        return build.pack([constant(value, dtype), constant(0, dtype)])
    if value.type.lanes > 1:
        return value
    return build.pack([build.cast(value, Type(dtype)), constant(0, dtype)])
