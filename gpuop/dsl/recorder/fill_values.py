"""Fill values: `border=` for reads outside, `default=` for points that nobody writes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError, described, written_out
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.ir.build import Builder, constant, fold_cast, number
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.nodes import Const, Expr
from gpuop.ir.types import BOOL, FLOAT, FieldType, Type

Fill = tuple[Const, ...]  # the stored value: one scalar, or real and imaginary part


def numeric(value: Any) -> bool:
    """True for a Python or NumPy number, complex ones included."""
    return number(value) is not None or isinstance(value, (complex, np.complexfloating))


def fill_of(kind: FieldType, source: Any, name: str) -> Fill:
    """Stored value of a number.

    Infinity saturates in integers, as in writes; floats and unorm8 store the nearest value that they hold; in complex
    fields a real number is the real part.

    Args:
        name: the name of the argument.

    Raises:
        SemanticError: no number, or one that the field's dtype does not hold.
    """
    value = complex(source) if isinstance(source, (complex, np.complexfloating)) else number(source)
    if value is None:
        instead = (
            "; write the value of a Field in the kernel, where it may change" if isinstance(source, FieldLike) else ""
        )
        raise SemanticError(f"`{name}=` wants a number, not {described(source)}{instead}")
    if kind.dtype in COMPLEX_DTYPES:
        parts = (value.real, value.imag) if isinstance(value, complex) else (value, 0.0)
        return tuple(_part(kind, part, source, name) for part in parts)
    if isinstance(value, complex):
        raise _unfit(kind, source, name)
    return (_part(kind, value, source, name),)


def _part(kind: FieldType, value: float, source: Any, name: str) -> Const:
    element = kind.element
    if element.kind != "f" and value in (-math.inf, math.inf):
        end = constant(value > 0, kind.storage)
        return end if element is BOOL else fold_cast(constant(value, FLOAT), Type(kind.storage), True)
    if not (element.holds(value) or (element is BOOL and value in (0, 1))) or not _within(kind, value):
        raise _unfit(kind, source, name)
    return constant(kind.stored(value), kind.storage)


def _within(kind: FieldType, value: float) -> bool:
    """True if a number is in the range of the field; infinities mean its limits."""
    return kind.dtype != "unorm8" or 0 <= value <= 1 or math.isinf(value)


def _unfit(kind: FieldType, source: Any, name: str) -> SemanticError:
    advice = (
        _limits(kind, name) if kind.element.kind in "iu" else "; write True or False" if kind.element is BOOL else ""
    )
    advice = "; it is a number from 0 to 1" if kind.dtype == "unorm8" else advice
    owner = "output" if name == "default" else "field"
    return SemanticError(f"{name}={written_out(source)} does not fit the {owner}'s dtype, {kind.dtype}{advice}")


def _limits(kind: FieldType, name: str) -> str:
    ends = np.iinfo(kind.array_dtype)
    return f"; its least and greatest value are {ends.min} and {ends.max}, or {name}=-math.inf and {name}=math.inf"


def uniform(fill: Fill) -> bool:
    """True if all scalars of a fill are equal."""
    return all(part.text == fill[0].text for part in fill)


def element_of_fill(build: Builder, parts: tuple[Expr, ...], element: Expr | None) -> Expr:
    """Part of a fill for one element: real or imaginary for a complex tensor, the only part for others."""
    if len(parts) == 1 or element is None:
        return parts[0]
    if isinstance(element, Const):
        return parts[int(element.value) % len(parts)]
    return build.apply("choose", build.apply("eq", build.apply("and", element, 1), 0), *parts)
